import { readFile, truncate } from "node:fs/promises";
import { create, fromBinary, toBinary, type MessageInitShape } from "@bufbuild/protobuf";
import { LlamaGymError } from "../../../core/errors.js";
import { toReadError, toWriteError } from "../../../core/files/file-errors.js";
import { AppendFile } from "../../../rl/tracking/index.js";
import { getFileHeader, frameRecord, readRecords } from "./log-format.js";
import { RecordSchema, type HistoryRecord } from "./record_pb.js";
import type { HistoryRow } from "./history-rows.js";

type RecordInit = MessageInitShape<typeof RecordSchema>["recordType"];

/** A position between two records. */
export interface FileMark {
  readonly size: number;
  readonly records: number;
}

/**
 * An append-only run file (run-ID.wandb). `write` returns after the operating system has accepted
 * the record.
 */
export class RunFile {
  private constructor(
    private readonly file: AppendFile,
    private size: number,
    private records: number,
  ) {}

  /** Creates a file. @throws FILE_WRITE_FAILED, and INVALID_STATE if it exists. */
  static create(path: string): RunFile {
    const file = AppendFile.create(path);
    const header = getFileHeader();
    file.append(header);
    return new RunFile(file, header.length, 0);
  }

  /** Opens a file that ends at `end`. */
  static open(path: string, { size, records }: FileMark): RunFile {
    return new RunFile(AppendFile.open(path), size, records);
  }

  get closed(): boolean {
    return this.file.closed;
  }

  get end(): FileMark {
    return { size: this.size, records: this.records };
  }

  /** Removes the records after a mark. */
  rewind({ size, records }: FileMark): void {
    this.file.truncate(size);
    this.size = size;
    this.records = records;
  }

  write(recordType: RecordInit): void {
    const message = create(RecordSchema, { num: BigInt(++this.records), recordType });
    const bytes = frameRecord(toBinary(RecordSchema, message), this.size);
    this.file.append(bytes);
    this.size += bytes.length;
  }

  close(): void {
    this.file.close();
  }
}

/** The contents of a run file up to a step. */
export interface StoredRun {
  readonly runId: string;
  readonly rows: readonly HistoryRow[];
  /** Start of the last row. */
  readonly lastRow: FileMark;
  readonly end: FileMark;
}

/**
 * Truncates a run file at the first row of a step above `lastStep`, the exit record, or the first
 * incomplete record.
 * @throws FILE_READ_FAILED, FILE_WRITE_FAILED, and FILE_CORRUPT for a file without a run id.
 */
export async function truncateAfterStep(path: string, lastStep: number): Promise<StoredRun> {
  const bytes = await readFile(path).catch((error: unknown) => {
    throw toReadError(path, error);
  });
  const stored = readStoredRun(bytes, lastStep);
  if (stored === undefined)
    throw new LlamaGymError("FILE_CORRUPT", `${path} is damaged: it contains no run id. Delete its folder.`);
  if (stored.end.size < bytes.length) {
    await truncate(path, stored.end.size).catch((error: unknown) => {
      throw toWriteError(path, error);
    });
  }
  return stored;
}

function readStoredRun(bytes: Uint8Array, lastStep: number): StoredRun | undefined {
  let runId: string | undefined;
  let end: FileMark = { size: getFileHeader().length, records: 0 };
  let lastRow = end;
  let records = 0;
  let files: string[] = [];
  const rows: HistoryRow[] = [];
  for (const record of readRecords(bytes)) {
    const { recordType } = fromBinary(RecordSchema, record.data);
    if (recordType.case === "exit") break;
    records++;
    if (recordType.case === "run") runId = recordType.value.runId;
    // The files and summary of a row precede it and are removed with it.
    if (recordType.case === "files") files.push(...recordType.value.files.map(({ path }) => path));
    if (recordType.case === "files" || recordType.case === "summary") continue;
    if (recordType.case === "history") {
      const row = toHistoryRow(recordType.value, files);
      if (row.step > lastStep) break;
      rows.push(row);
      files = [];
      lastRow = end;
    }
    end = { size: record.end, records };
  }
  return runId === undefined ? undefined : { runId, rows, lastRow, end };
}

function toHistoryRow(history: HistoryRecord, files: readonly string[]): HistoryRow {
  const cells = history.item.map(({ key, nestedKey, valueJson }) => [key || nestedKey.join("."), valueJson] as const);
  return { step: Number(history.step?.num ?? 0n), cells, files };
}
