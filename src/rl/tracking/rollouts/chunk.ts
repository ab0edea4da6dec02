import { gzip } from "#platform";
import { concatBytes } from "../../../core/bytes.js";
import { LlamaGymError } from "../../../core/errors.js";
import { isJsonObject } from "../../../core/json.js";
import type { EpisodeDetail, EpisodeRow, Vocabulary } from "./rollout-record.js";

export const ROLLOUTS_FILE = "rollouts.jsonl";
const ROLLOUTS_VERSION = 1;
/** Bytes of a chunk's JSON: a chunk of 100 million tokens has less. A small file can expand to a thousand times its size. */
const MAX_CHUNK_BYTES = 256 * 2 ** 20;

/** The episodes of one update. */
export interface RolloutRecord {
  /** With `turns` and `final`; the vocabulary is shared. */
  readonly episodes: readonly Omit<EpisodeDetail, "vocabulary">[];
  readonly vocabulary: Vocabulary;
}

/** A line of rollouts.jsonl: rows of the episodes in plain JSON, everything else compressed. */
export interface RolloutLine {
  readonly version: number;
  readonly step: number;
  readonly episodes: readonly EpisodeRow[];
  /** Base64 of the gzip of the JSON of a `RolloutRecord`, whose episodes have no rows. */
  readonly data: string;
}

/** Writes the episodes of an update as a line, with its line end. */
export async function encodeChunk(step: number, { episodes, vocabulary }: RolloutRecord): Promise<string> {
  const json = JSON.stringify({ episodes: episodes.map(({ turns, final }) => ({ turns, final })), vocabulary });
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
  try {
    const value: unknown = JSON.parse(line);
    const isLine =
      isJsonObject(value) &&
      value.version === ROLLOUTS_VERSION &&
      Number.isSafeInteger(value.step) &&
      Array.isArray(value.episodes) &&
      value.episodes.every((row) => isJsonObject(row) && typeof row.id === "string") &&
      typeof value.data === "string";
    return isLine ? (value as unknown as RolloutLine) : undefined;
  } catch {
    return undefined;
  }
}

/** Returns the episodes of a line. @throws FILE_CORRUPT for damaged or too large data. */
export async function decodeChunk({ episodes: rows, data }: RolloutLine): Promise<RolloutRecord> {
  try {
    const bytes = Uint8Array.from(atob(data), (character) => character.charCodeAt(0));
    const json = await gunzip(bytes);
    const { episodes, vocabulary } = JSON.parse(new TextDecoder().decode(json)) as RolloutRecord;
    if (episodes.length !== rows.length) throw new Error(`it has ${episodes.length} episodes, not ${rows.length}`);
    return { episodes: episodes.map((episode, i) => ({ ...episode, row: rows[i] })), vocabulary };
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new LlamaGymError("FILE_CORRUPT", `A chunk of ${ROLLOUTS_FILE} cannot be read: ${reason}.`, { cause: error });
  }
}

async function gunzip(bytes: Uint8Array<ArrayBuffer>): Promise<Uint8Array<ArrayBuffer>> {
  const parts: Uint8Array[] = [];
  let size = 0;
  for await (const part of new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))) {
    size += part.length;
    if (size > MAX_CHUNK_BYTES) throw new Error(`it has more than ${MAX_CHUNK_BYTES} bytes`);
    parts.push(part);
  }
  return concatBytes(parts);
}

function toBase64(bytes: Uint8Array): string {
  let text = "";
  // More arguments than this exceed the stack.
  for (let start = 0; start < bytes.length; start += 32_768)
    text += String.fromCharCode(...bytes.subarray(start, start + 32_768));
  return btoa(text);
}
