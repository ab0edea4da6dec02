import type { JsonObject } from "../../files/index.js";
import type { MetricRecord, ResumePoint, RunOutcome, SampleRow, Tracker } from "../tracker.js";
import { WandbClient } from "./client.js";
import { OnlineRun } from "./online-run.js";
import { fileRow, metricRow, type HistoryRow, type RowTime } from "./rows.js";
import { keepRowsUpTo, RunFile } from "./run-file.js";
import { filesPath, latestRunFolder, newRunFolder, runFilePath, type RunFolder } from "./run-folder.js";
import { RunWriter } from "./run-writer.js";
import type { WandbSettings } from "./settings.js";
import { writeTable } from "./table-file.js";

export interface WandbTrackerOptions extends ResumePoint {
  /** Is told, once, that the server does not take the run. */
  readonly warn: (message: string) => void;
  /** Is told where the run can be seen, or how it is sent later. */
  readonly note?: (message: string) => void;
  /** Milliseconds since 1970. Default: Date.now. */
  readonly now?: () => number;
  /** How many milliseconds rows wait to be sent together. Default: 10,000. */
  readonly interval?: number;
  /** Milliseconds to wait before each further try of a request. Default: 1, 2, 4, 8 and 8 seconds. */
  readonly retryDelays?: readonly number[];
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
  settings: WandbSettings,
  options: WandbTrackerOptions,
): Promise<Required<Tracker>> {
  const { now = Date.now, resumeFrom } = options;
  const earlier = resumeFrom === undefined ? undefined : await latestRunFolder(folder);
  if (earlier === undefined || resumeFrom === undefined) {
    const place = newRunFolder(folder, settings.mode, new Date(now()));
    const writer = new RunWriter(RunFile.create(runFilePath(place)));
    writer.begin(place.runId, settings, now());
    return new WandbTracker(place, writer, [], settings, options);
  }
  const kept = await keepRowsUpTo(runFilePath(earlier), resumeFrom);
  const writer = new RunWriter(RunFile.continue(runFilePath(earlier), kept.end), kept);
  return new WandbTracker(earlier, writer, kept.rows, settings, options);
}

class WandbTracker implements Required<Tracker> {
  private online: OnlineRun | undefined;
  private readonly now: () => number;
  private readonly startSeconds: number;

  constructor(
    private readonly place: RunFolder,
    private readonly writer: RunWriter,
    earlier: readonly HistoryRow[],
    private readonly settings: WandbSettings,
    private readonly options: WandbTrackerOptions,
  ) {
    this.now = options.now ?? Date.now;
    this.startSeconds = this.now() / 1000 - runtimeOf(earlier.at(-1));
    this.online = this.goOnline(earlier);
  }

  config(settings: JsonObject): void {
    this.writer.config(settings);
    this.tell((online) => online.setConfig(settings));
  }

  log(step: number, record: MetricRecord): void {
    this.row(metricRow(step, record, this.time()));
  }

  async samples(step: number, rows: readonly SampleRow[]): Promise<void> {
    if (rows.length === 0) return;
    const { path, value } = await writeTable(filesPath(this.place), "samples", step, rows);
    this.row(fileRow(step, "samples", value, path, this.time()));
  }

  async close(outcome: RunOutcome = "finished"): Promise<void> {
    const { runtime } = this.time();
    this.writer.end(outcome, runtime);
    const { online } = this;
    this.online = undefined;
    await online?.close(outcome, runtime).catch((error: unknown) => this.lose(error));
    if (this.settings.mode === "offline") this.options.note?.(`W&B: ${this.howToSend()}`);
  }

  private row(row: HistoryRow): void {
    this.writer.row(row);
    this.tell((online) => online.row(row));
  }

  private time(): RowTime {
    const timestamp = this.now() / 1000;
    return { timestamp, runtime: Math.round((timestamp - this.startSeconds) * 1000) / 1000 };
  }

  private goOnline(earlier: readonly HistoryRow[]): OnlineRun | undefined {
    const { mode, apiKey, baseUrl } = this.settings;
    if (mode === "offline") return undefined;
    if (apiKey === undefined) {
      this.options.warn(`W&B needs a key to take a run: set WANDB_API_KEY. ${this.howToSend()}`);
      return undefined;
    }
    const retryDelays = this.options.retryDelays ?? [1000, 2000, 4000, 8000, 8000];
    return new OnlineRun({
      client: new WandbClient({ baseUrl, apiKey, retryDelays }),
      settings: this.settings,
      runId: this.place.runId,
      filesFolder: filesPath(this.place),
      earlier,
      interval: this.options.interval ?? 10_000,
      onConnect: ({ entity, project, runId, displayName }) => {
        const path = [entity, project, "runs", runId].map(encodeURIComponent).join("/");
        this.options.note?.(`W&B shows the run "${displayName}" at ${pageOf(baseUrl)}/${path}`);
      },
    });
  }

  private tell(call: (online: OnlineRun) => void): void {
    if (this.online === undefined) return;
    try {
      call(this.online);
    } catch (error) {
      this.lose(error);
    }
  }

  private lose(error: unknown): void {
    this.online = undefined;
    this.options.warn(`${error instanceof Error ? error.message : String(error)} ${this.howToSend()}`);
  }

  private howToSend(): string {
    return `The run is kept in ${this.place.path}; send it with: wandb sync ${this.place.path}`;
  }
}

function runtimeOf(row: HistoryRow | undefined): number {
  return Number(row?.cells.find(([key]) => key === "_runtime")?.[1] ?? 0);
}

/** W&B's own service shows runs elsewhere than where it takes them; a server of one's own does both in one place. */
function pageOf(baseUrl: string): string {
  return baseUrl === "https://api.wandb.ai" ? "https://wandb.ai" : baseUrl;
}
