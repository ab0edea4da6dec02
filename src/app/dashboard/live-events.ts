import { parseRecord, ROLLOUTS_FILE, METRICS_FILE } from "../../rl/tracking/index.js";
import type { LiveEvent, RunRow } from "./api.js";
import { parseEpisodeRows } from "./rollout-store.js";
import { JOB_LOG_FILE } from "../distributed/job-log-line.js";
import { parseLogLine, toLogEntry } from "./read-log.js";
import { LOG_FILE } from "../runs/run-log-line.js";
import { readLastLines, readNewLines, type FileCursor, type RunsFolder } from "./run-files.js";
import type { RunRows } from "./run-rows.js";

/** Records of one event; after a longer pause the page loads the series again. */
const MAX_RECORDS = 1_000;
/** Runs that one page can watch. */
const MAX_WATCHED = 50;

/** Positions in a run's files, as an event's id contains them. */
type RunCursors = Readonly<Partial<Record<string, FileCursor>>>;
type Cursors = Readonly<Record<string, RunCursors>>;

const FILES = [METRICS_FILE, LOG_FILE, ROLLOUTS_FILE, JOB_LOG_FILE] as const;

/**
 * New events of some runs since their cursors. Each call of `poll` returns what was appended since
 * the last one.
 */
export class LiveEvents {
  private rows = new Map<string, string>();
  private isFirst = true;

  private constructor(
    private readonly runs: RunsFolder,
    private readonly runRows: RunRows,
    private cursors: Cursors,
  ) {}

  /** Starts at the end of the runs' files, or where the id of an earlier event says. */
  static async open(runs: RunsFolder, runRows: RunRows, ids: readonly string[], lastId?: string): Promise<LiveEvents> {
    const saved = parseEventId(lastId);
    const cursors: Record<string, RunCursors> = {};
    for (const id of ids.slice(0, MAX_WATCHED)) {
      const endCursor = async (name: string) => (await readLastLines(runs, id, name))?.cursor ?? { file: 0, offset: 0 };
      cursors[id] =
        saved[id] ?? Object.fromEntries(await Promise.all(FILES.map(async (name) => [name, await endCursor(name)])));
    }
    return new LiveEvents(runs, runRows, cursors);
  }

  /** The position after the last events. */
  get id(): string {
    return Buffer.from(JSON.stringify(this.cursors)).toString("base64url");
  }

  async poll(): Promise<readonly LiveEvent[]> {
    const events: LiveEvent[] = [];
    for (const [run, cursors] of Object.entries(this.cursors)) events.push(...(await this.pollRun(run, cursors)));
    return events;
  }

  /** Returns the rows that changed since the last call; at the first call none. */
  async pollRows(): Promise<readonly LiveEvent[]> {
    const { rows } = await this.runRows.list();
    const previous = this.rows;
    this.rows = new Map(rows.map((row) => [row.id, JSON.stringify(row)]));
    const changed = rows.filter((row: RunRow) => previous.get(row.id) !== this.rows.get(row.id));
    const removed = [...previous.keys()].filter((id) => !this.rows.has(id));
    const isFirst = this.isFirst;
    this.isFirst = false;
    return isFirst || changed.length + removed.length === 0 ? [] : [{ type: "runs", rows: changed, removed }];
  }

  private async pollRun(run: string, cursors: RunCursors): Promise<LiveEvent[]> {
    const events: LiveEvent[] = [];
    const moved: Record<string, FileCursor> = {};
    for (const name of FILES) {
      const added = await readNewLines(this.runs, run, name, cursors[name]);
      if (added === undefined) continue;
      moved[name] = added.cursor;
      // A replaced file is read from its start: the page loads it again instead.
      if (added.isReset || added.lines.length > 0) events.push(toEvent(name, run, added.lines, added.isReset));
    }
    this.cursors = { ...this.cursors, [run]: { ...cursors, ...moved } };
    return events;
  }
}

function toEvent(name: (typeof FILES)[number], run: string, lines: readonly string[], isReset: boolean): LiveEvent {
  if (name === LOG_FILE)
    return { type: "log", run, entries: lines.flatMap((line) => parseLogLine(line) ?? []).map(toLogEntry) };
  if (name === JOB_LOG_FILE) return { type: "jobs", run };
  if (name === ROLLOUTS_FILE)
    return { type: "episodes", run, episodes: lines.flatMap((line) => parseEpisodeRows(line) ?? []) };
  const records = lines.slice(-MAX_RECORDS).flatMap((line) => {
    const record = parseRecord(line);
    return record === undefined ? [] : [mapFinite(record)];
  });
  return { type: "metrics", run, records, isGap: isReset || lines.length > MAX_RECORDS };
}

function mapFinite(record: Readonly<Record<string, number>>): Record<string, number | null> {
  return Object.fromEntries(
    Object.entries(record).map(([name, value]) => [name, Number.isFinite(value) ? value : null]),
  );
}

/** Reads the cursors of an event id; an id of another form gives none. */
function parseEventId(id: string | undefined): Cursors {
  if (id === undefined) return {};
  try {
    const cursors = JSON.parse(Buffer.from(id, "base64url").toString()) as Record<string, Record<string, unknown>>;
    const isCursor = (value: unknown) =>
      typeof value === "object" &&
      value !== null &&
      [(value as FileCursor).file, (value as FileCursor).offset].every(
        (number) => Number.isSafeInteger(number) && number >= 0,
      );
    return Object.values(cursors).every((files) => Object.values(files).every(isCursor)) ? (cursors as Cursors) : {};
  } catch {
    return {};
  }
}
