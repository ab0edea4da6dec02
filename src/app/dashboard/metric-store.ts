import { METRICS_FILE, parseRecord } from "../../rl/tracking/index.js";
import type { MetricSeries, Phases, SeriesResponse, XAxis } from "./api.js";
import { readNewLines, type FileCursor, type RunsFolder } from "./run-files.js";
import { yieldToEventLoop } from "#platform";

/**
 * Numbers that are kept in memory over all runs: 30 million take 240 MB; the run that was read
 * longest ago goes first.
 */
const MAX_STORED_NUMBERS = 30_000_000;
/** Names of metrics in one run: a foreign file could have a new name in every line. */
const MAX_NAMES = 2_000;
/** Points of a downsampled series; a screen has fewer pixels. */
const MAX_POINTS = 4_000;

/** A metric's values by record; NaN where a record has none. */
class Column {
  values = new Float64Array(256).fill(NaN);

  set(index: number, value: number): void {
    if (index >= this.values.length) {
      const grown = new Float64Array(Math.max(index + 1, 2 * this.values.length)).fill(NaN);
      grown.set(this.values);
      this.values = grown;
    }
    this.values[index] = value;
  }
}

/** The records of a run's metrics.jsonl as columns, read as far as the file has grown. */
class RunMetrics {
  readonly columns = new Map<string, Column>();
  count = 0;
  private cursor: FileCursor | undefined;
  private seconds = 0;
  private update: Promise<void> = Promise.resolve();

  get size(): number {
    return this.columns.size * this.count;
  }

  /** Reads what was appended since the last call. */
  async refresh(runs: RunsFolder, id: string): Promise<void> {
    this.update = this.update.catch(() => {}).then(async () => this.read(runs, id));
    return this.update;
  }

  private async read(runs: RunsFolder, id: string): Promise<void> {
    for (;;) {
      const added = await readNewLines(runs, id, METRICS_FILE, this.cursor);
      if (added === undefined || added.isReset) this.clear();
      if (added === undefined) return;
      for (const line of added.lines) this.add(line);
      this.cursor = added.cursor;
      if (!added.hasMore || (added.lines.length === 0 && !added.isReset)) return;
      await yieldToEventLoop();
    }
  }

  private clear(): void {
    this.columns.clear();
    this.count = 0;
    this.seconds = 0;
    this.cursor = undefined;
  }

  private add(line: string): void {
    const record = parseRecord(line);
    if (record === undefined || !Number.isFinite(record.step)) return;
    // Several records of a step, such as an update and its evaluation, are one.
    const steps = this.columns.get("step");
    const isSameStep = this.count > 0 && steps?.values[this.count - 1] === record.step;
    const index = isSameStep ? this.count - 1 : this.count++;
    if (Number.isFinite(record.step_time)) this.seconds += record.step_time;
    for (const [name, value] of Object.entries({ ...record, [SECONDS]: this.seconds })) {
      let column = this.columns.get(name);
      if (column === undefined && this.columns.size < MAX_NAMES) this.columns.set(name, (column = new Column()));
      column?.set(index, value);
    }
  }
}

/** Column of the seconds so far, which no metric is called. */
const SECONDS = " seconds";
const X_COLUMNS: Readonly<Record<XAxis, string>> = {
  turns: "num_turns",
  updates: "step",
  seconds: SECONDS,
  episodes: "num_episodes",
};

export interface SeriesRequest {
  /** All metrics by default. */
  readonly names?: readonly string[];
  readonly x: XAxis;
  readonly points: number;
  readonly from?: number;
  readonly to?: number;
}

/** Metrics of runs, kept in memory and read on as their files grow. */
export class MetricStore {
  private readonly metrics = new Map<string, RunMetrics>();

  constructor(private readonly runs: RunsFolder) {}

  async names(id: string): Promise<readonly string[]> {
    return [...(await this.read(id)).columns.keys()].filter((name) => name !== "step" && name !== SECONDS);
  }

  /** Returns the last value of each metric. */
  async last(id: string): Promise<Readonly<Record<string, number | null>>> {
    const { columns, count } = await this.read(id);
    return Object.fromEntries(
      Array.from(columns, ([name, { values }]) => {
        let index = Math.min(count, values.length) - 1;
        while (index > 0 && Number.isNaN(values[index])) index--;
        return [name, toNumber(values[index])] as const;
      }).filter(([name]) => name !== SECONDS),
    );
  }

  async phases(id: string): Promise<Omit<Phases, "memoryBytes">> {
    const { columns, count } = await this.read(id);
    const sum = (name: string) => columns.get(name)?.values.slice(0, count).reduce(addFinite, 0) ?? 0;
    const [total, rollout, update] = [sum("step_time"), sum("time/rollout"), sum("time/update")];
    const speed = (await this.last(id))["rollout/turns_per_second"] ?? null;
    return { rollout, update, other: Math.max(0, total - rollout - update), turnsPerSecond: speed };
  }

  async series(
    id: string,
    { names, x, points, from = -Infinity, to = Infinity }: SeriesRequest,
  ): Promise<SeriesResponse> {
    const { columns, count } = await this.read(id);
    // Fine-tuning counts no turns and episodes: updates take their place.
    const xs = columns.get(X_COLUMNS[x])?.values ?? columns.get("step")?.values ?? new Float64Array();
    const limit = Math.min(Math.max(2, Math.floor(points) || 2), MAX_POINTS);
    const shown = names ?? (await this.names(id));
    return {
      run: id,
      x,
      series: shown.map((name) =>
        downsample(name, xs, columns.get(name)?.values ?? new Float64Array(), { count, limit, from, to }),
      ),
    };
  }

  private async read(id: string): Promise<RunMetrics> {
    const metrics = this.metrics.get(id) ?? new RunMetrics();
    this.metrics.delete(id);
    this.metrics.set(id, metrics);
    await metrics.refresh(this.runs, id);
    let total = [...this.metrics.values()].reduce((sum, { size }) => sum + size, 0);
    for (const [oldId, { size }] of this.metrics) {
      if (total <= MAX_STORED_NUMBERS || oldId === id) break;
      this.metrics.delete(oldId);
      total -= size;
    }
    return metrics;
  }
}

/**
 * Merges consecutive records into at most `limit` points: the mean, with the range. The newest
 * record is a separate point.
 */
function downsample(
  name: string,
  xs: Float64Array,
  ys: Float64Array,
  { count, limit, from, to }: { count: number; limit: number; from: number; to: number },
): MetricSeries {
  const indices: number[] = [];
  const length = Math.min(count, xs.length, ys.length);
  for (let i = 0; i < length; i++) if (!Number.isNaN(ys[i]) && xs[i] >= from && xs[i] <= to) indices.push(i);
  const size = indices.length <= limit ? 1 : Math.ceil((indices.length - 1) / (limit - 1));
  if (size === 1)
    return { name, x: indices.map((i) => xs[i]), y: indices.map((i) => toNumber(ys[i])), count: indices.length };
  const merged = {
    x: [] as number[],
    y: [] as (number | null)[],
    min: [] as (number | null)[],
    max: [] as (number | null)[],
  };
  const last = indices.length - 1;
  const buckets = Array.from({ length: Math.ceil(last / size) }, (_, i) =>
    indices.slice(i * size, Math.min((i + 1) * size, last)),
  );
  for (const bucket of [...buckets, [indices[last]]]) {
    const values = bucket.map((i) => ys[i]).filter(Number.isFinite);
    merged.x.push(xs[bucket.at(-1)!]);
    merged.y.push(values.length === 0 ? null : values.reduce((a, b) => a + b, 0) / values.length);
    merged.min.push(values.length === 0 ? null : values.reduce((a, b) => Math.min(a, b)));
    merged.max.push(values.length === 0 ? null : values.reduce((a, b) => Math.max(a, b)));
  }
  return { name, ...merged, count: indices.length };
}

function addFinite(sum: number, value: number): number {
  return Number.isFinite(value) ? sum + value : sum;
}

function toNumber(value: number | undefined): number | null {
  return value !== undefined && Number.isFinite(value) ? value : null;
}
