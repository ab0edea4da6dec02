import { LlamaGymError } from "../../core/errors.js";
import { countElements } from "../../core/count-elements.js";

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
  /** Reads a tensor's bytes as stored. @throws WEIGHTS_MISMATCH for an unknown name. */
  readBytes(name: string): Promise<Uint8Array<ArrayBuffer>>;
  /** Closes the files. */
  close(): Promise<void>;
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
