import { LlamaGymError } from "../../core/errors.js";
import { countElements } from "../../core/count-elements.js";

/** Where a tensor lies in its file and how it is stored there. */
export interface WeightEntry {
  /** The Hugging Face name, such as `model.layers.0.self_attn.q_proj.weight`. */
  readonly name: string;
  /** The stored type: a safetensors name (F32, BF16, I64, ...) or a GGML block type (Q4_1, Q6_K, ...). */
  readonly dtype: string;
  readonly shape: readonly number[];
  /** The path of the file that holds the bytes. */
  readonly file: string;
  /** Where the bytes begin, counted from the start of the file. */
  readonly offset: number;
  readonly byteLength: number;
  /** Whether those bytes are the tensor itself, row after row, so that they can be mapped in place. */
  readonly mappable: boolean;
}

/** A tensor in the bytes that it is stored in. */
export interface RawWeight {
  readonly dtype: string;
  /** The shape of the stored matrix; the reverse of the entry's shape when `transposed`. */
  readonly shape: readonly number[];
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** Whether the stored matrix is the transpose of the tensor (GPT-2 in GGUF). */
  readonly transposed: boolean;
}

/** The tensors of a model, from one file or several, of either format. */
export interface WeightFile {
  /** The file or folder that was opened. */
  readonly path: string;
  readonly entries: ReadonlyMap<string, WeightEntry>;
  /**
   * Reads a tensor as float32, widened or dequantised, straight into `target` when it is given (which may stand on
   * shared memory and must have the tensor's number of elements), without holding the tensor twice.
   * Throws WEIGHTS_MISMATCH for a name that is not there, FORMAT_UNSUPPORTED for a stored type that cannot be read.
   */
  readFloat32(name: string, target?: Float32Array): Promise<Float32Array>;
  /** Reads a tensor's bytes as stored: quantised blocks stay quantised. Throws as `readFloat32`. */
  readRaw(name: string): Promise<RawWeight>;
  /** Closes the files; nothing can be read afterwards. */
  close(): Promise<void>;
}

/** The entry of a name. Throws WEIGHTS_MISMATCH when there is none. */
export function getEntry<Entry extends WeightEntry>(
  entries: ReadonlyMap<string, Entry>,
  name: string,
  path: string,
): Entry {
  const entry = entries.get(name);
  if (entry !== undefined) return entry;
  throw new LlamaGymError("WEIGHTS_MISMATCH", `${path} holds no tensor "${name}" (it holds ${entries.size} others).`);
}

/** `target`, checked to have the entry's number of elements, or a new array of that size. */
export function prepareFloat32Target(entry: WeightEntry, target: Float32Array | undefined): Float32Array {
  const elements = countElements(entry.shape);
  if (target === undefined) return new Float32Array(elements);
  if (target.length === elements) return target;
  throw new LlamaGymError(
    "SHAPE_MISMATCH",
    `Tensor "${entry.name}" has ${elements} elements [${entry.shape.join(", ")}], but the target has room for ` +
      `${target.length}.`,
  );
}
