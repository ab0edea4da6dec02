import { z } from "zod";
import { LOG_FILE, runLogLine, type RunLogLine } from "../runs/run-log-line.js";
import type { LogEntry } from "./api.js";
import { readNewLines, type FileCursor, type RunsFolder } from "./run-files.js";

/** Lines of a log that are kept: a run of several days writes some thousand. */
const MAX_ENTRIES = 5_000;
/** Characters of a message that are shown. */
const MAX_MESSAGE_LENGTH = 4_000;

const text = z.string().transform((value) => value.slice(0, MAX_MESSAGE_LENGTH));
const entrySchema = runLogLine.extend({ message: text });

/** Parses a line of log.jsonl; undefined for one of another form. */
export function parseLogLine(line: string): RunLogLine | undefined {
  try {
    return entrySchema.safeParse(JSON.parse(line)).data;
  } catch {
    return undefined;
  }
}

/** Reads the last lines of a run's log. */
export async function readLog(runs: RunsFolder, id: string): Promise<readonly RunLogLine[]> {
  const lines: RunLogLine[] = [];
  let cursor: FileCursor | undefined;
  for (;;) {
    const added = await readNewLines(runs, id, LOG_FILE, cursor);
    if (added === undefined) return [];
    for (const line of added.lines) lines.push(parseLogLine(line) ?? unreadable(line));
    lines.splice(0, lines.length - MAX_ENTRIES);
    cursor = added.cursor;
    if (!added.hasMore || added.lines.length === 0) return lines;
  }
}

export function toLogEntry({ time, step, kind, message, page, request, ok }: RunLogLine): LogEntry {
  return { timeMs: time, step, kind, message, page, request, ok };
}

function unreadable(line: string): RunLogLine {
  return { time: 0, step: 0, kind: "warning", message: `A line of ${LOG_FILE} cannot be read: ${line.slice(0, 100)}` };
}
