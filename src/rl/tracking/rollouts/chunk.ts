import { gzip, yieldToEventLoop } from "#platform";
import { concatBytes } from "../../../core/bytes.js";
import { LlamaGymError } from "../../../core/errors.js";
import { isJsonObject, parseBoundedJson } from "../../../core/json.js";
import type { EpisodeDetail, EpisodeRow, RecordedVocabulary } from "./rollout-record.js";

export const ROLLOUTS_FILE = "rollouts.jsonl";
const ROLLOUTS_VERSION = 2;
/**
 * Bytes that a chunk unpacks to; a small file can expand to a thousand times its size. They are
 * read part by part.
 */
const MAX_CHUNK_BYTES = 256 * 2 ** 20;
/**
 * Bytes of the JSON of one episode, or of the texts of all tokens: 100,000 tokens with all that is
 * recorded of each.
 */
const MAX_EPISODE_BYTES = 32 * 2 ** 20;
/** Bytes of the episodes that one call returns. */
const MAX_DECODED_BYTES = 64 * 2 ** 20;
/** Arrays, objects and strings of an episode, which take more memory than their JSON. */
const MAX_NODES = 1_000_000;
/** Characters of the rows of a line: those of 20,000 episodes have less. */
const MAX_ROWS_LENGTH = 8 * 2 ** 20;

/** The episodes of one update. */
export interface RolloutRecord {
  /** With `turns` and `final`; the vocabulary is shared. */
  readonly episodes: readonly Omit<EpisodeDetail, "vocabulary">[];
  readonly vocabulary: RecordedVocabulary;
}

/** A line of rollouts.jsonl: rows of the episodes in plain JSON, everything else compressed. */
export interface RolloutLine {
  readonly version: number;
  readonly step: number;
  readonly episodes: readonly EpisodeRow[];
  /** Base64 of the gzip of lines of JSON: the vocabulary, then each episode without its row. */
  readonly data: string;
}

/** Writes the episodes of an update as a line, with its line end. */
export async function encodeChunk(step: number, { episodes, vocabulary }: RolloutRecord): Promise<string> {
  const lines = [vocabulary, ...episodes.map(({ turns, final }) => ({ turns, final }))];
  const json = lines.map((line) => JSON.stringify(line)).join("\n");
  const line: RolloutLine = {
    version: ROLLOUTS_VERSION,
    step,
    episodes: episodes.map(({ row }) => row),
    data: toBase64(await gzip(json)),
  };
  return `${JSON.stringify(line)}\n`;
}

/** Parses a line without its data; undefined for an incomplete line or one of another form. */
export function parseRolloutLine(line: string): RolloutLine | undefined {
  // The data are the last field, and are not parsed: they have no quotes.
  const start = line.lastIndexOf(DATA_FIELD);
  if (start < 0 || start > MAX_ROWS_LENGTH || !line.endsWith('"}')) return undefined;
  try {
    const value = parseBoundedJson(`${line.slice(0, start)}}`, MAX_NODES);
    const isLine =
      isJsonObject(value) &&
      value.version === ROLLOUTS_VERSION &&
      Number.isSafeInteger(value.step) &&
      Array.isArray(value.episodes) &&
      value.episodes.every((row) => isJsonObject(row) && typeof row.id === "string");
    const data = line.slice(start + DATA_FIELD.length, -2);
    return isLine ? ({ ...value, data } as unknown as RolloutLine) : undefined;
  } catch {
    return undefined;
  }
}

const DATA_FIELD = ',"data":"';

/**
 * Returns the episodes of a line, or those whose index is `wanted`. Other work runs between two
 * episodes.
 * @throws FILE_CORRUPT for damaged or too large data.
 */
export async function decodeChunk(
  { episodes: rows, data }: RolloutLine,
  wanted: (index: number) => boolean = () => true,
): Promise<RolloutRecord> {
  try {
    const bytes = Uint8Array.from(atob(data), (character) => character.charCodeAt(0));
    const episodes: RolloutRecord["episodes"][number][] = [];
    let vocabulary: RecordedVocabulary | undefined;
    let decodedBytes = 0;
    let count = 0;
    for await (const line of readPackedLines(bytes, (index) => index === 0 || wanted(index - 1))) {
      const index = count++ - 1;
      if (line === undefined) continue;
      decodedBytes += line.length;
      if (decodedBytes > MAX_DECODED_BYTES)
        throw new Error(`the requested episodes have more than ${MAX_DECODED_BYTES} bytes`);
      const value = parseBoundedJson(new TextDecoder().decode(line), MAX_NODES);
      if (index < 0) vocabulary = value as RecordedVocabulary;
      else episodes.push({ ...(value as Omit<EpisodeDetail, "row" | "vocabulary">), row: rows[index] });
      await yieldToEventLoop();
    }
    if (vocabulary === undefined || count - 1 !== rows.length)
      throw new Error(`it has ${count - 1} episodes, not ${rows.length}`);
    return { episodes, vocabulary };
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new LlamaGymError("FILE_CORRUPT", `A chunk of ${ROLLOUTS_FILE} cannot be read: ${reason}.`, { cause: error });
  }
}

/** Unpacks lines; undefined for those that are not wanted, which are not kept in memory. */
async function* readPackedLines(
  bytes: Uint8Array<ArrayBuffer>,
  wanted: (index: number) => boolean,
): AsyncGenerator<Uint8Array | undefined> {
  let size = 0;
  let index = 0;
  let parts: Uint8Array[] = [];
  let length = 0;
  const keep = (part: Uint8Array) => {
    if (!wanted(index)) return;
    length += part.length;
    if (length > MAX_EPISODE_BYTES) throw new Error(`an episode has more than ${MAX_EPISODE_BYTES} bytes`);
    parts.push(part);
  };
  const take = () => {
    const line = wanted(index++) ? concatBytes(parts) : undefined;
    parts = [];
    length = 0;
    return line;
  };
  for await (const part of new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))) {
    size += part.length;
    if (size > MAX_CHUNK_BYTES) throw new Error(`it unpacks to more than ${MAX_CHUNK_BYTES} bytes`);
    let start = 0;
    for (let end = part.indexOf(LINE_END); end >= 0; end = part.indexOf(LINE_END, start)) {
      keep(part.subarray(start, end));
      yield take();
      start = end + 1;
    }
    keep(part.subarray(start));
  }
  yield take();
}

const LINE_END = 0x0a;

function toBase64(bytes: Uint8Array): string {
  let text = "";
  // More arguments than this exceed the stack.
  for (let start = 0; start < bytes.length; start += 32_768)
    text += String.fromCharCode(...bytes.subarray(start, start + 32_768));
  return btoa(text);
}
