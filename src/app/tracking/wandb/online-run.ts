import { readFile } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import { toReadError } from "../../../core/files/file-errors.js";
import type { JsonObject } from "../../../core/json.js";
import type { RunOutcome } from "../../../rl/tracking/index.js";
import type { WandbClient } from "./wandb-client.js";
import { checkResumable, createUpload, upsertRun, type RemoteRun } from "./queries.js";
import { mergeRows, serializeObject, type HistoryRow } from "./history-rows.js";
import type { WandbConfig } from "./wandb-config.js";

export interface OnlineRunOptions {
  readonly client: WandbClient;
  readonly settings: WandbConfig;
  readonly runId: string;
  /** Whether a run that the server has may be continued; without it, such a run is overwritten. */
  readonly resume: WandbConfig["resume"];
  /** Folder of the files that rows refer to. */
  readonly filesFolder: string;
  /** Rows that a resumed run logged before; those that the server lacks are sent. */
  readonly previousRows: readonly HistoryRow[];
  /** Milliseconds to collect rows before a request. */
  readonly flushIntervalMs: number;
  /** Called with the server's record of the run once it exists. */
  readonly onConnect: (run: RemoteRun) => void;
}

const MAX_ROWS_PER_REQUEST = 1000;

/**
 * Sends a run to a W&B server in the background; only `close` waits for the network. After a failed
 * request, the next call throws TRACKING_FAILED.
 */
export class OnlineRun {
  private config: JsonObject | undefined;
  private pendingRows: HistoryRow[];
  private readonly summary = new Map<string, string>();
  private run: RemoteRun | undefined;
  private offset = 0;
  private timer: NodeJS.Timeout | undefined;
  private sendQueue: Promise<void> = Promise.resolve();
  private failure: unknown;

  constructor(private readonly options: OnlineRunOptions) {
    this.pendingRows = [...options.previousRows];
    this.updateSummary(options.previousRows);
    this.schedule(0);
  }

  /**
   * Sets the run's settings; sent with the first request if set in the same tick as the
   * constructor, otherwise separately.
   */
  setConfig(config: JsonObject): void {
    this.throwIfFailed();
    this.config = config;
    if (this.run !== undefined) this.enqueue(async () => void (await this.upsert()));
  }

  addRow(added: HistoryRow): void {
    this.throwIfFailed();
    const last = this.pendingRows.at(-1);
    if (last?.step === added.step) this.pendingRows[this.pendingRows.length - 1] = mergeRows(last, added);
    else this.pendingRows.push(added);
    this.schedule(this.options.flushIntervalMs);
  }

  /** Sends pending rows and the exit code. `runtime` is in seconds. @throws TRACKING_FAILED */
  async close(outcome: RunOutcome, runtime: number): Promise<void> {
    clearTimeout(this.timer);
    this.options.client.abortRetries();
    this.summary.set("_wandb", serializeObject([["runtime", String(Math.round(runtime))]]));
    this.enqueue(async () => this.sendRows(0));
    this.enqueue(async () => this.postFileStream({ complete: true, exitcode: outcome === "finished" ? 0 : 1 }));
    await this.sendQueue;
    this.throwIfFailed();
  }

  private throwIfFailed(): void {
    if (this.failure !== undefined) throw this.failure;
  }

  private schedule(delay: number): void {
    this.timer ??= setTimeout(() => {
      this.timer = undefined;
      this.enqueue(async () => this.sendRows(1));
    }, delay).unref();
  }

  private enqueue(work: () => Promise<void>): void {
    this.sendQueue = this.sendQueue.then(async () => {
      if (this.failure !== undefined) return;
      try {
        await work();
      } catch (error) {
        this.failure = error;
        clearTimeout(this.timer);
      }
    });
  }

  /**
   * Sends all but the newest `keepNewest` rows; later cells may still be merged into the newest
   * row.
   */
  private async sendRows(keepNewest: number): Promise<void> {
    const run = await this.ensureConnected();
    while (this.pendingRows.length > keepNewest) {
      const rows = this.pendingRows.splice(0, Math.min(MAX_ROWS_PER_REQUEST, this.pendingRows.length - keepNewest));
      const uploaded = [...new Set(rows.flatMap(({ files }) => files))];
      for (const file of uploaded) await this.upload(run, file);
      this.updateSummary(rows);
      const content = rows.map(({ cells }) => serializeObject(cells));
      await this.postFileStream({
        files: {
          "wandb-history.jsonl": { offset: this.offset, content },
          "wandb-summary.json": { offset: 0, content: [serializeObject(this.summary)] },
        },
        ...(uploaded.length === 0 ? {} : { uploaded }),
      });
      this.offset += rows.length;
    }
  }

  /**
   * Registers the run once. Resumed runs are deterministic, so steps that the server has are not
   * sent again.
   */
  private async ensureConnected(): Promise<RemoteRun> {
    if (this.run !== undefined) return this.run;
    const { client, runId, settings, resume } = this.options;
    if (resume === "must" || resume === "never") await checkResumable(client, runId, settings, resume);
    const run = await this.upsert();
    this.run = run;
    if (resume !== undefined) {
      this.offset = run.historyLines;
      this.pendingRows = this.pendingRows.filter(({ step }) => step > run.lastStep);
    }
    this.options.onConnect(run);
    return run;
  }

  /** Keeps the newest value of each key, which the server shows in its table of runs. */
  private updateSummary(rows: readonly HistoryRow[]): void {
    for (const { cells } of rows) for (const [key, json] of cells) this.summary.set(key, json);
  }

  private upsert(): Promise<RemoteRun> {
    const { client, runId, settings } = this.options;
    return upsertRun(client, runId, settings, hostname(), this.config);
  }

  private async upload(run: RemoteRun, file: string): Promise<void> {
    const { client, filesFolder } = this.options;
    const path = join(filesFolder, ...file.split("/"));
    const content = await readFile(path).catch((error: unknown) => {
      throw toReadError(path, error);
    });
    const { url, headers } = await createUpload(client, run, file);
    await client.upload(url, headers, content);
  }

  private async postFileStream(body: object): Promise<void> {
    const { entity, project, runId } = await this.ensureConnected();
    const path = [entity, project, runId].map(encodeURIComponent).join("/");
    await this.options.client.post(`/files/${path}/file_stream`, body);
  }
}
