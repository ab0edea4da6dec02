import { realpath } from "node:fs/promises";
import { basename, dirname } from "node:path";
import type { WeightEntry, WeightFile } from "../files/index.js";
import type { NamedType, WeightLocation } from "../graph/index.js";
import type { SessionOptions } from "../runtime/runtime.js";
import type { DType } from "../tensor/dtype.js";
import { elementCount } from "../tensor/tensor.js";
import type { StoredParameter } from "./scope.js";

/** Stored types that a graph reads in place. */
const MAPPABLE: Readonly<Record<string, DType>> = { F32: "float32", F16: "float16", BF16: "bfloat16" };

/** The name under which graphs know the weights that were widened into memory. */
const MEMORY = "memory";

/**
 * A model's frozen parameters. Those that lie in their file as plain numbers are read there in place, by every session;
 * the others (quantised blocks of a GGUF) are dequantised once into memory that sessions share.
 */
export class ModelWeights {
  readonly parameters: ReadonlyMap<string, StoredParameter>;

  private constructor(
    readonly file: WeightFile,
    private readonly locations: ReadonlyMap<string, WeightLocation>,
    private readonly folder: string | undefined,
    private readonly memory: Uint8Array,
    parameters: ReadonlyMap<string, StoredParameter>,
  ) {
    this.parameters = parameters;
  }

  /** Opens all tensors of a file. */
  static async open(file: WeightFile): Promise<ModelWeights> {
    const entries = [...file.entries.values()];
    const paths = new Map<string, string>();
    for (const { file: path } of entries) if (!paths.has(path)) paths.set(path, await realpath(path));
    const folders = new Set([...paths.values()].map((path) => dirname(path)));
    const inPlace = (entry: WeightEntry) => entry.mappable && entry.dtype in MAPPABLE && folders.size === 1;

    const parameters = new Map<string, StoredParameter>();
    const locations = new Map<string, WeightLocation>();
    const widened: { name: string; offset: number; count: number }[] = [];
    let bytes = 0;
    for (const entry of entries) {
      const { name, dtype, shape, offset, byteLength } = entry;
      if (inPlace(entry)) {
        parameters.set(name, { kind: "frozen", dtype: MAPPABLE[dtype], shape });
        locations.set(name, { file: basename(paths.get(entry.file)!), offset, byteLength });
      } else {
        const count = elementCount(shape);
        parameters.set(name, { kind: "frozen", dtype: "float32", shape });
        locations.set(name, { file: MEMORY, offset: bytes, byteLength: 4 * count });
        widened.push({ name, offset: bytes, count });
        bytes += 4 * count;
      }
    }
    const memory = new SharedArrayBuffer(bytes);
    for (const { name, offset, count } of widened)
      await file.readFloat32(name, new Float32Array(memory, offset, count));
    return new ModelWeights(file, locations, [...folders][0], new Uint8Array(memory), parameters);
  }

  /** What a session needs to find the weights. */
  sessionOptions(): SessionOptions {
    return {
      locate: ({ name }: NamedType) => this.locations.get(name)!,
      folder: this.folder,
      buffers: this.memory.length === 0 ? [] : [{ name: MEMORY, data: this.memory }],
    };
  }

  async close(): Promise<void> {
    await this.file.close();
  }
}
