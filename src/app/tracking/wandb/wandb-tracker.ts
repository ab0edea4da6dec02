import type { JsonObject } from "../../../models/files/index.js";
import type { MetricRecord, ResumePoint, RunOutcome, CompletionRow, Tracker } from "../../../rl/tracking/tracker.js";
import { WandbClient } from "./wandb-client.js";
import { OnlineRun } from "./online-run.js";
import { createFileRow, createMetricRow, type HistoryRow, type RowTime } from "./history-rows.js";
import { truncateAfterStep, RunFile } from "./run-file.js";
import {
  getFilesPath,
  findLatestRunFolder,
  nameRunFolder,
  getRunFilePath,
  type WandbRunFolder,
} from "./wandb-run-folder.js";
import { RunWriter } from "./run-writer.js";
import type { WandbConfig } from "./wandb-config.js";
import { writeTable } from "./table-file.js";

export interface WandbTrackerOptions extends ResumePoint {
  /** Is told, once, that the server does not take the run. */
  readonly onWarning: (message: string) => void;
  /** Is told where the run can be seen, or how it is sent later. */
  readonly onInfo?: (message: string) => void;
  /** Milliseconds since 1970. Default: Date.now. */
  readonly now?: () => number;
  /** How many milliseconds rows wait to be sent together. Default: 10,000. */
  readonly flushIntervalMs?: number;
  /** Milliseconds to wait before each further try of a request. Default: 1, 2, 4, 8 and 8 seconds. */
  readonly retryDelaysMs?: readonly number[];
}

/**
 * Keeps a run for W&B. The run file below `folder`/wandb is written in both modes, in the form that `wandb sync` reads;
 * with mode "online" the rows also go to the server, in the background. A server that is away or refuses is said once,
 * and the file goes on. With `resumeFrom` the newest run of the folder continues under its id, and steps after it
 * are taken back; the server gets what it does not have.
 * Throws FILE_WRITE_FAILED, FILE_READ_FAILED, FILE_CORRUPT.
 */
export async function openWandbTracker(
  folder: string,
  settings: WandbConfig,
  options: WandbTrackerOptions,
): Promise<Required<Tracker>> {
  const { now = Date.now, resumeFromStep } = options;
  const existing = resumeFromStep === undefined ? undefined : await findLatestRunFolder(folder);
  if (existing === undefined || resumeFromStep === undefined) {
    const runFolder = nameRunFolder(folder, settings.mode, new Date(now()));
    const writer = new RunWriter(RunFile.create(getRunFilePath(runFolder)));
    writer.writeStart(runFolder.runId, settings, now());
    return new WandbTracker(runFolder, writer, [], settings, options);
  }
  const stored = await truncateAfterStep(getRunFilePath(existing), resumeFromStep);
  const writer = new RunWriter(RunFile.open(getRunFilePath(existing), stored.end), stored);
  return new WandbTracker(existing, writer, stored.rows, settings, options);
}

class WandbTracker implements Required<Tracker> {
  private online: OnlineRun | undefined;
  private readonly now: () => number;
  private readonly startSeconds: number;

  constructor(
    private readonly runFolder: WandbRunFolder,
    private readonly writer: RunWriter,
    previousRows: readonly HistoryRow[],
    private readonly settings: WandbConfig,
    private readonly options: WandbTrackerOptions,
  ) {
    this.now = options.now ?? Date.now;
    this.startSeconds = this.now() / 1000 - getRuntime(previousRows.at(-1));
    this.online = this.connect(previousRows);
  }

  logConfig(settings: JsonObject): void {
    this.writer.writeConfig(settings);
    this.forward((online) => online.setConfig(settings));
  }

  log(step: number, record: MetricRecord): void {
    this.writeRow(createMetricRow(step, record, this.getRowTime()));
  }

  async logCompletions(step: number, rows: readonly CompletionRow[]): Promise<void> {
    if (rows.length === 0) return;
    const { path, value } = await writeTable(getFilesPath(this.runFolder), "samples", step, rows);
    this.writeRow(createFileRow(step, "samples", value, path, this.getRowTime()));
  }

  async close(outcome: RunOutcome = "finished"): Promise<void> {
    const { runtime } = this.getRowTime();
    this.writer.finish(outcome, runtime);
    const { online } = this;
    this.online = undefined;
    await online?.close(outcome, runtime).catch((error: unknown) => this.disconnect(error));
    if (this.settings.mode === "offline") this.options.onInfo?.(`W&B: ${this.describeSync()}`);
  }

  private writeRow(added: HistoryRow): void {
    this.writer.row(added);
    this.forward((online) => online.addRow(added));
  }

  private getRowTime(): RowTime {
    const timestamp = this.now() / 1000;
    return { timestamp, runtime: Math.round((timestamp - this.startSeconds) * 1000) / 1000 };
  }

  private connect(previousRows: readonly HistoryRow[]): OnlineRun | undefined {
    const { mode, apiKey, baseUrl } = this.settings;
    if (mode === "offline") return undefined;
    if (apiKey === undefined) {
      this.options.onWarning(`W&B needs a key to take a run: set WANDB_API_KEY. ${this.describeSync()}`);
      return undefined;
    }
    const retryDelaysMs = this.options.retryDelaysMs ?? [1000, 2000, 4000, 8000, 8000];
    return new OnlineRun({
      client: new WandbClient({ baseUrl, apiKey, retryDelaysMs }),
      settings: this.settings,
      runId: this.runFolder.runId,
      filesFolder: getFilesPath(this.runFolder),
      previousRows,
      flushIntervalMs: this.options.flushIntervalMs ?? 10_000,
      onConnect: ({ entity, project, runId, displayName }) => {
        const path = [entity, project, "runs", runId].map(encodeURIComponent).join("/");
        this.options.onInfo?.(`W&B shows the run "${displayName}" at ${getWebUrl(baseUrl)}/${path}`);
      },
    });
  }

  private forward(call: (online: OnlineRun) => void): void {
    if (this.online === undefined) return;
    try {
      call(this.online);
    } catch (error) {
      this.disconnect(error);
    }
  }

  private disconnect(error: unknown): void {
    this.online = undefined;
    this.options.onWarning(`${error instanceof Error ? error.message : String(error)} ${this.describeSync()}`);
  }

  private describeSync(): string {
    return `The run is kept in ${this.runFolder.path}; send it with: wandb sync ${this.runFolder.path}`;
  }
}

function getRuntime(row: HistoryRow | undefined): number {
  return Number(row?.cells.find(([key]) => key === "_runtime")?.[1] ?? 0);
}

/** W&B's own service shows runs elsewhere than where it takes them; a server of one's own does both in one place. */
function getWebUrl(baseUrl: string): string {
  return baseUrl === "https://api.wandb.ai" ? "https://wandb.ai" : baseUrl;
}
