import { readFile } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import { readFailure } from "../../files/failure.js";
import type { JsonObject } from "../../files/index.js";
import type { RunOutcome } from "../tracker.js";
import type { WandbClient } from "./client.js";
import { uploadAddress, upsertRun, type RemoteRun } from "./queries.js";
import { mergedRow, objectJson, type HistoryRow } from "./rows.js";
import type { WandbSettings } from "./settings.js";

export interface OnlineRunOptions {
  readonly client: WandbClient;
  readonly settings: WandbSettings;
  readonly runId: string;
  /** Where the files that rows speak of lie. */
  readonly filesFolder: string;
  /** What a resumed run has logged before; sent as far as the server lacks it. */
  readonly earlier: readonly HistoryRow[];
  /** How many milliseconds rows wait for others to be sent with. */
  readonly interval: number;
  /** Is told the run, as the server knows it, once it does. */
  readonly onConnect: (run: RemoteRun) => void;
}

/** How many rows one request carries at most. */
const ROWS_A_REQUEST = 1000;

/**
 * Sends a run to a W&B server behind the training's back: nothing here waits for the network except `close`. When the
 * server does not take it, the next call throws TRACKING_FAILED.
 */
export class OnlineRun {
  private config: JsonObject | undefined;
  private waiting: HistoryRow[];
  private readonly summary = new Map<string, string>();
  private run: RemoteRun | undefined;
  private offset = 0;
  private timer: NodeJS.Timeout | undefined;
  private sending: Promise<void> = Promise.resolve();
  private failure: unknown;

  constructor(private readonly options: OnlineRunOptions) {
    this.waiting = [...options.earlier];
    this.summarise(options.earlier);
    this.schedule(0);
  }

  /** Goes out with the run's first request when it comes in the same turn as the run; else with one of its own. */
  setConfig(config: JsonObject): void {
    this.check();
    this.config = config;
    if (this.run !== undefined) this.enqueue(async () => void (await this.upsert()));
  }

  row(row: HistoryRow): void {
    this.check();
    const last = this.waiting.at(-1);
    if (last?.step === row.step) this.waiting[this.waiting.length - 1] = mergedRow(last, row);
    else this.waiting.push(row);
    this.schedule(this.options.interval);
  }

  /** Sends what waits and notes the end. Throws TRACKING_FAILED. `runtime` is in seconds. */
  async close(outcome: RunOutcome, runtime: number): Promise<void> {
    clearTimeout(this.timer);
    this.options.client.hurry();
    this.summary.set("_wandb", objectJson([["runtime", String(Math.round(runtime))]]));
    this.enqueue(async () => this.sendRows(0));
    this.enqueue(async () => this.stream({ complete: true, exitcode: outcome === "finished" ? 0 : 1 }));
    await this.sending;
    this.check();
  }

  private check(): void {
    if (this.failure !== undefined) throw this.failure;
  }

  private schedule(delay: number): void {
    this.timer ??= setTimeout(() => {
      this.timer = undefined;
      this.enqueue(async () => this.sendRows(1));
    }, delay).unref();
  }

  private enqueue(work: () => Promise<void>): void {
    this.sending = this.sending.then(async () => {
      if (this.failure !== undefined) return;
      try {
        await work();
      } catch (error) {
        this.failure = error;
        clearTimeout(this.timer);
      }
    });
  }

  /** Sends all but the newest `back` rows: to the newest one more may be added. */
  private async sendRows(back: number): Promise<void> {
    const run = await this.connected();
    while (this.waiting.length > back) {
      const rows = this.waiting.splice(0, Math.min(ROWS_A_REQUEST, this.waiting.length - back));
      const uploaded = [...new Set(rows.flatMap(({ files }) => files))];
      for (const file of uploaded) await this.upload(run, file);
      this.summarise(rows);
      const content = rows.map(({ cells }) => objectJson(cells));
      await this.stream({
        files: {
          "wandb-history.jsonl": { offset: this.offset, content },
          "wandb-summary.json": { offset: 0, content: [objectJson(this.summary)] },
        },
        ...(uploaded.length === 0 ? {} : { uploaded }),
      });
      this.offset += rows.length;
    }
  }

  /** A resumed run is deterministic: what the server has of its steps is what would be sent again. */
  private async connected(): Promise<RemoteRun> {
    if (this.run !== undefined) return this.run;
    const run = await this.upsert();
    this.run = run;
    this.offset = run.historyLines;
    this.waiting = this.waiting.filter(({ step }) => step > run.lastStep);
    this.options.onConnect(run);
    return run;
  }

  /** The newest value of each key, which is what the server shows in its table of runs. */
  private summarise(rows: readonly HistoryRow[]): void {
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
      throw readFailure(path, error);
    });
    const { url, headers } = await uploadAddress(client, run, file);
    await client.upload(url, headers, content);
  }

  private async stream(body: object): Promise<void> {
    const { entity, project, runId } = await this.connected();
    const path = [entity, project, runId].map(encodeURIComponent).join("/");
    await this.options.client.post(`/files/${path}/file_stream`, body);
  }
}
