import { errorMessage } from "../../../core/errors.js";
import type { JsonObject } from "../../../core/json.js";
import type { MetricRecord, ResumePoint, RunOutcome, CompletionRow, Tracker } from "../../../rl/tracking/index.js";
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

/** Options of `openWandbTracker`. */
export interface WandbTrackerOptions extends ResumePoint {
  /** Receives one warning if the server rejects the run or is unreachable. */
  readonly onWarning: (message: string) => void;
  /** Receives the run's URL, or the command that uploads it later. */
  readonly onInfo?: (message: string) => void;
  /** Returns milliseconds since 1970. Default Date.now. */
  readonly now?: () => number;
  /** Milliseconds to collect rows before a request. Default 10,000. */
  readonly flushIntervalMs?: number;
  /** Milliseconds before each retry of a request. Default 1, 2, 4, 8 and 8 seconds. */
  readonly retryDelaysMs?: readonly number[];
}

/**
 * Tracks a run in Weights & Biases. Writes the run file below `folder`/wandb in both modes, in the
 * format of `wandb sync`; in mode "online" it also sends rows to the server in the background. If
 * the server is unreachable or rejects the run, it warns once and keeps writing the file. With
 * `resumeFromStep`, it continues the newest run of the folder under its id, removes later steps,
 * and sends the rows that the server lacks.
 * @throws FILE_WRITE_FAILED, FILE_READ_FAILED, FILE_CORRUPT
 */
export async function openWandbTracker(
  folder: string,
  settings: WandbConfig,
  options: WandbTrackerOptions,
): Promise<Required<Omit<Tracker, "logRollout">>> {
  const { now = Date.now, resumeFromStep } = options;
  const existing = resumeFromStep === undefined ? undefined : await findLatestRunFolder(folder);
  if (existing === undefined || resumeFromStep === undefined) {
    const runFolder = nameRunFolder(folder, settings, new Date(now()));
    const writer = new RunWriter(RunFile.create(getRunFilePath(runFolder)));
    writer.writeStart(runFolder.runId, settings, now());
    return new WandbTracker(runFolder, writer, [], settings, options);
  }
  const stored = await truncateAfterStep(getRunFilePath(existing), resumeFromStep);
  const writer = new RunWriter(RunFile.open(getRunFilePath(existing), stored.end), stored);
  return new WandbTracker(existing, writer, stored.rows, settings, options);
}

class WandbTracker implements Required<Omit<Tracker, "logRollout">> {
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
    const { path, value } = await writeTable(getFilesPath(this.runFolder), "completions", step, rows);
    this.writeRow(createFileRow(step, "completions", value, path, this.getRowTime()));
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
    this.writer.writeRow(added);
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
      this.options.onWarning(`W&B needs an API key: set WANDB_API_KEY. ${this.describeSync()}`);
      return undefined;
    }
    const retryDelaysMs = this.options.retryDelaysMs ?? [1000, 2000, 4000, 8000, 8000];
    return new OnlineRun({
      client: new WandbClient({ baseUrl, apiKey, retryDelaysMs }),
      settings: this.settings,
      runId: this.runFolder.runId,
      resume: this.options.resumeFromStep === undefined ? this.settings.resume : "allow",
      filesFolder: getFilesPath(this.runFolder),
      previousRows,
      flushIntervalMs: this.options.flushIntervalMs ?? 10_000,
      onConnect: ({ entity, project, runId, displayName }) => {
        const path = [entity, project, "runs", runId].map(encodeURIComponent).join("/");
        this.options.onInfo?.(`W&B run "${displayName}": ${getWebUrl(baseUrl)}/${path}`);
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
    this.options.onWarning(`${errorMessage(error)} ${this.describeSync()}`);
  }

  private describeSync(): string {
    return `The run is stored in ${this.runFolder.path}; upload it with: wandb sync ${this.runFolder.path}`;
  }
}

function getRuntime(row: HistoryRow | undefined): number {
  return Number(row?.cells.find(([key]) => key === "_runtime")?.[1] ?? 0);
}

/**
 * Returns the address of the web interface: wandb.ai for W&B's service, the same address for a
 * self-hosted server.
 */
function getWebUrl(baseUrl: string): string {
  return baseUrl === "https://api.wandb.ai" ? "https://wandb.ai" : baseUrl;
}
