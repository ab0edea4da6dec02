import { readFile, truncate } from "node:fs/promises";
import { create, fromBinary, toBinary, type MessageInitShape } from "@bufbuild/protobuf";
import { LlamaGymError } from "../../errors.js";
import { readFailure, writeFailure } from "../../files/failure.js";
import { AppendFile } from "../append-file.js";
import { fileHeader, framed, recordsOf } from "./log-format.js";
import { RecordSchema, type HistoryRecord } from "./record_pb.js";
import type { HistoryRow } from "./rows.js";

type RecordInit = MessageInitShape<typeof RecordSchema>["recordType"];

/** A place between two records. */
export interface Mark {
  readonly size: number;
  readonly records: number;
}

/** A run file (run-ID.wandb), which grows record by record. Each is with the system when `write` returns. */
export class RunFile {
  private constructor(
    private readonly file: AppendFile,
    private size: number,
    private records: number,
  ) {}

  /** Begins a file. Throws FILE_WRITE_FAILED, and INVALID_STATE where there is one. */
  static create(path: string): RunFile {
    const file = AppendFile.create(path);
    const header = fileHeader();
    file.append(header);
    return new RunFile(file, header.length, 0);
  }

  /** Goes on behind `end`; the file must end there. */
  static continue(path: string, { size, records }: Mark): RunFile {
    return new RunFile(AppendFile.continue(path), size, records);
  }

  get closed(): boolean {
    return this.file.closed;
  }

  get end(): Mark {
    return { size: this.size, records: this.records };
  }

  /** Takes back the records behind `mark`. */
  rewind({ size, records }: Mark): void {
    this.file.cut(size);
    this.size = size;
    this.records = records;
  }

  write(recordType: RecordInit): void {
    const message = create(RecordSchema, { num: BigInt(++this.records), recordType });
    const bytes = framed(toBinary(RecordSchema, message), this.size);
    this.file.append(bytes);
    this.size += bytes.length;
  }

  close(): void {
    this.file.close();
  }
}

/** What a run file held up to a step. */
export interface KeptRun {
  readonly runId: string;
  readonly rows: readonly HistoryRow[];
  /** Where the last row begins. */
  readonly lastRow: Mark;
  readonly end: Mark;
}

/**
 * Cuts a run file where the first row of a step above `lastStep` begins, or the run's end is noted, or a record is
 * broken. Throws FILE_READ_FAILED, FILE_WRITE_FAILED, and FILE_CORRUPT when the file does not say which run it is.
 */
export async function keepRowsUpTo(path: string, lastStep: number): Promise<KeptRun> {
  const bytes = await readFile(path).catch((error: unknown) => {
    throw readFailure(path, error);
  });
  const kept = keptOf(bytes, lastStep);
  if (kept === undefined) {
    throw new LlamaGymError("FILE_CORRUPT", `${path} is damaged: it does not say which run it is. Remove its folder.`);
  }
  if (kept.end.size < bytes.length) {
    await truncate(path, kept.end.size).catch((error: unknown) => {
      throw writeFailure(path, error);
    });
  }
  return kept;
}

function keptOf(bytes: Uint8Array, lastStep: number): KeptRun | undefined {
  let runId: string | undefined;
  let end: Mark = { size: fileHeader().length, records: 0 };
  let lastRow = end;
  let records = 0;
  let files: string[] = [];
  const rows: HistoryRow[] = [];
  for (const record of recordsOf(bytes)) {
    const { recordType } = fromBinary(RecordSchema, record.data);
    if (recordType.case === "exit") break;
    records++;
    if (recordType.case === "run") runId = recordType.value.runId;
    // A row's files and summary stand before it, and go with it.
    if (recordType.case === "files") files.push(...recordType.value.files.map(({ path }) => path));
    if (recordType.case === "files" || recordType.case === "summary") continue;
    if (recordType.case === "history") {
      const row = rowOf(recordType.value, files);
      if (row.step > lastStep) break;
      rows.push(row);
      files = [];
      lastRow = end;
    }
    end = { size: record.end, records };
  }
  return runId === undefined ? undefined : { runId, rows, lastRow, end };
}

function rowOf(history: HistoryRecord, files: readonly string[]): HistoryRow {
  const cells = history.item.map(({ key, nestedKey, valueJson }) => [key || nestedKey.join("."), valueJson] as const);
  return { step: Number(history.step?.num ?? 0n), cells, files };
}
