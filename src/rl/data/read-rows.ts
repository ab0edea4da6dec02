import { fs } from "#platform";
import { decodeLatin1 } from "../../core/bytes.js";
import { errorMessage, LlamaGymError } from "../../core/errors.js";
import { parseLosslessJson } from "../../core/lossless-json.js";
import { toReadError } from "../../core/files/file-errors.js";
import { parseCsv } from "./parse-csv.js";

/** Options of reading a file of rows. */
export interface ReadRowsOptions {
  /** Whether an invalid row throws (the default) or is skipped. */
  readonly onInvalidLine?: "error" | "skip";
}

/** An invalid row of a file. */
export interface InvalidLine {
  /** Number of the line, or of the row in a JSON array, from 1. */
  readonly line: number;
  /** The row in messages: "data.jsonl, line 3" or "data.json, row 3". */
  readonly name: string;
  readonly reason: string;
}

/** Invalid rows that are named one by one. */
const MAX_NAMED_ROWS = 5;

/** Returns warnings of skipped rows: the first with their reasons, and a count of the others. */
export function describeSkippedRows(reasons: readonly string[]): readonly string[] {
  const others = reasons.length - MAX_NAMED_ROWS;
  const named = reasons.slice(0, MAX_NAMED_ROWS).map((reason) => `Skipped ${reason}`);
  return others > 0 ? [...named, `Skipped ${others} more, ${reasons.length} in all.`] : named;
}

/** The columns of a row. */
export type RowFields = Readonly<Record<string, unknown>>;

/** A row that is not parsed yet. */
interface RawRow {
  readonly number: number;
  readonly unit: "line" | "row";
  readonly parse: () => unknown;
}

/** Names and first bytes of files with rows in other formats. */
const OTHER_FORMATS: Readonly<Record<string, string>> = {
  "Parquet file": "PAR1",
  "Arrow file": "ARROW1",
  "spreadsheet or ZIP archive": "PK\u0003\u0004",
  "gzip file": "\u001f\u008b",
};

const CONVERSION =
  "python -c \"import datasets; datasets.load_dataset('parquet', data_files='FILE.parquet')['train'].to_json('FILE.jsonl')\"";

/**
 * Reads rows from a JSONL file, a JSON array of objects, or a CSV or TSV file with a header, by
 * calling `read` with each row's columns and name, such as "data.jsonl, line 3"; a row for which it
 * throws is invalid. Empty lines are ignored.
 *
 * @throws FILE_NOT_FOUND, FILE_READ_FAILED, FORMAT_UNSUPPORTED for another format, and FILE_CORRUPT
 * with the row.
 */
export async function readRows<Value>(
  path: string,
  { onInvalidLine = "error" }: ReadRowsOptions,
  read: (fields: RowFields, name: string) => Value,
): Promise<{ readonly values: readonly Value[]; readonly invalidLines: readonly InvalidLine[] }> {
  const values: Value[] = [];
  const invalidLines: InvalidLine[] = [];
  try {
    for await (const { number, unit, parse } of openRows(path)) {
      const name = `${path}, ${unit} ${number}`;
      try {
        values.push(read(requireObject(parse(), unit), name));
      } catch (error) {
        const reason = errorMessage(error);
        if (onInvalidLine === "error") throw new LlamaGymError("FILE_CORRUPT", `${name}: ${reason}`, { cause: error });
        invalidLines.push({ line: number, name, reason });
      }
    }
  } catch (error) {
    throw toReadError(path, error);
  }
  return { values, invalidLines };
}

async function* openRows(path: string): AsyncGenerator<RawRow> {
  const start = await readStart(path);
  const format = Object.keys(OTHER_FORMATS).find((name) => start.startsWith(OTHER_FORMATS[name]));
  if (format !== undefined)
    throw new LlamaGymError(
      "FORMAT_UNSUPPORTED",
      `${path} is a ${format}; rows are read from JSONL, JSON and CSV files. Convert it first, for example a Parquet file with ${CONVERSION}`,
    );
  if (/\.[ct]sv$/i.test(path)) yield* readCsvRows(path);
  else if (/^(\xef\xbb\xbf)?\s*\[/.test(start)) yield* readArrayRows(path);
  else yield* readLineRows(path);
}

/** Returns the first bytes of a file as characters. */
async function readStart(path: string): Promise<string> {
  const file = await fs.open(path, "read");
  try {
    const bytes = new Uint8Array(64);
    const count = await file.read(bytes, 0);
    return decodeLatin1(bytes.subarray(0, count));
  } finally {
    await file.close();
  }
}

const removeByteOrderMark = (text: string) => text.replace(/^\uFEFF/, "");

async function* readLineRows(path: string): AsyncGenerator<RawRow> {
  let number = 0;
  let isChecked = false;
  for await (const text of fs.readLines(path)) {
    number++;
    if (!isChecked && text.includes(REPLACEMENT)) {
      await checkUtf8(path, `line ${number}`);
      isChecked = true;
    }
    if (text.trim() === "") continue;
    yield { number, unit: "line", parse: () => parseJson(removeByteOrderMark(text)) };
  }
}

async function* readArrayRows(path: string): AsyncGenerator<RawRow> {
  const rows = await parseFile(path, (text) => parseJson(text) as readonly unknown[]);
  for (const [i, row] of rows.entries()) yield { number: i + 1, unit: "row", parse: () => row };
}

async function* readCsvRows(path: string): AsyncGenerator<RawRow> {
  const separator = /\.tsv$/i.test(path) ? "\t" : ",";
  const [header, ...records] = await parseFile(path, (text) => parseCsv(text, separator));
  const columns = header?.cells ?? [];
  const twice = columns.find((column, i) => columns.indexOf(column) < i);
  if (twice !== undefined) throw fileError(path, `two columns have the name ${JSON.stringify(twice)}.`);
  for (const { line, cells } of records) {
    const parse = () => {
      if (cells.length !== columns.length)
        throw new Error(`it has ${cells.length} cells, but the header has ${columns.length} columns.`);
      // An empty cell has no value.
      return Object.fromEntries(columns.map((column, i) => [column, cells[i] === "" ? undefined : cells[i]]));
    };
    yield { number: line, unit: "line", parse };
  }
}

/** What bytes that are not UTF-8 are read as; a file may also have this character itself. */
const REPLACEMENT = "\uFFFD";
const CHUNK_BYTES = 1 << 20;

/** @throws FILE_CORRUPT for a file that is not UTF-8, in which `place` has the first such bytes. */
async function checkUtf8(path: string, place: string): Promise<void> {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  const bytes = new Uint8Array(CHUNK_BYTES);
  const file = await fs.open(path, "read");
  try {
    let position = 0;
    for (let count = -1; count !== 0; position += count) {
      count = await file.read(bytes, position);
      decoder.decode(bytes.subarray(0, count), { stream: count > 0 });
    }
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    const advice = "Convert the file, for example by iconv -f WINDOWS-1252 -t UTF-8.";
    throw fileError(path, `${place} has bytes that are not UTF-8. ${advice}`, error);
  } finally {
    await file.close();
  }
}

/** Parses the text of a whole file. @throws FILE_CORRUPT. */
async function parseFile<Rows>(path: string, parse: (text: string) => Rows): Promise<Rows> {
  const text = removeByteOrderMark(await fs.readText(path));
  const at = text.indexOf(REPLACEMENT);
  if (at >= 0) await checkUtf8(path, `line ${text.slice(0, at).split("\n").length}`);
  try {
    return parse(text);
  } catch (error) {
    throw fileError(path, errorMessage(error), error);
  }
}

const fileError = (path: string, fault: string, cause?: unknown) =>
  new LlamaGymError("FILE_CORRUPT", `${path}: ${fault}`, { cause });

function parseJson(text: string): unknown {
  try {
    return parseLosslessJson(text);
  } catch (error) {
    throw new SyntaxError(
      `invalid JSON (${errorMessage(error)}). A file has one JSON object per line, or is one array.`,
      {
        cause: error,
      },
    );
  }
}

function requireObject(value: unknown, unit: "line" | "row"): RowFields {
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as RowFields;
  throw new Error(`the ${unit} must be a JSON object, such as { "messages": [...] }.`);
}
