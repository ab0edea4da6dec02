import { LlamaGymError } from "../../core/errors.js";
import { countElements } from "../../core/numbers.js";

/** Location and storage type of a tensor. */
export interface WeightEntry {
  /** Hugging Face name, such as `model.layers.0.self_attn.q_proj.weight`. */
  readonly name: string;
  /** Stored type: a safetensors name (F32, BF16, I64) or a GGML type (Q4_1, Q6_K). */
  readonly dtype: string;
  readonly shape: readonly number[];
  /** Path of the file with the bytes. */
  readonly file: string;
  /** Offset from the start of the file, in bytes. */
  readonly offset: number;
  readonly byteLength: number;
  /** Whether the bytes are the row-major tensor, so that they can be mapped in place. */
  readonly mappable: boolean;
}

/** Tensors of a model in one or several files of either format. */
export interface WeightFile {
  readonly path: string;
  readonly entries: ReadonlyMap<string, WeightEntry>;
  /**
   * Reads a tensor as float32, directly into `target` if given (possibly shared memory, of the
   * tensor's length), without a second copy. @throws WEIGHTS_MISMATCH for an unknown name,
   * FORMAT_UNSUPPORTED for an unsupported stored type.
   */
  readFloat32(name: string, target?: Float32Array): Promise<Float32Array>;
  /**
   * Reads a tensor as float32 in consecutive chunks of whole rows, or at once where its rows are
   * stored in another order, so that a matrix of any size is read in little memory. The memory of a
   * chunk is reused for the next one.
   * @throws as `readFloat32`.
   */
  readChunks(name: string): AsyncIterable<Float32Array<ArrayBuffer>>;
  /** Reads a tensor's bytes as stored. @throws WEIGHTS_MISMATCH for an unknown name. */
  readBytes(name: string): Promise<Uint8Array<ArrayBuffer>>;
  /** Closes the files. */
  close(): Promise<void>;
}

/** Largest number of elements in a chunk of a tensor, unless a single row has more. */
export const MAX_CHUNK_ELEMENTS = 2 ** 22;

/** Yields the first row and the number of rows of each chunk of a tensor. */
export function* splitRows({ shape }: Pick<WeightEntry, "shape">): Generator<{ start: number; count: number }> {
  const [rows = 1, ...others] = shape;
  const rowElements = countElements(others);
  const chunkRows = Math.max(1, Math.floor(MAX_CHUNK_ELEMENTS / Math.max(1, rowElements)));
  for (let start = 0; start < rows; start += chunkRows) yield { start, count: Math.min(chunkRows, rows - start) };
}

/** Returns an entry. @throws WEIGHTS_MISMATCH when there is none. */
export function getEntry<Entry extends WeightEntry>(
  entries: ReadonlyMap<string, Entry>,
  name: string,
  path: string,
): Entry {
  const entry = entries.get(name);
  if (entry !== undefined) return entry;
  throw new LlamaGymError(
    "WEIGHTS_MISMATCH",
    `${path} contains no tensor "${name}" (it contains ${entries.size} others).`,
  );
}

/** Returns `target` after checking its length, or a new array. */
export function prepareFloat32Target(entry: WeightEntry, target: Float32Array | undefined): Float32Array {
  const elements = countElements(entry.shape);
  if (target === undefined) return new Float32Array(elements);
  if (target.length === elements) return target;
  throw new LlamaGymError(
    "SHAPE_MISMATCH",
    `Tensor "${entry.name}" has ${elements} elements [${entry.shape.join(", ")}], but the target has ` +
      `${target.length}.`,
  );
}
