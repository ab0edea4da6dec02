import { LazyPromise } from "../../core/promise-cache.js";
import { fs, system } from "#platform";
import type { WeightEntry, WeightFile } from "../files/index.js";
import type { CodeType, CompiledGraph, NamedTensorType, WeightLocation } from "../../engine/graph/index.js";
import { getRuntimeVersion, type Runtime, type SessionOptions } from "../../engine/runtime/index.js";
import { alignOffset, appendPackedForms, packsWeights } from "./packed-weights.js";
import { countElements } from "../../core/numbers.js";
import type { WeightBits } from "./estimate-model-memory.js";
import { BLOCK_SIZE } from "./quantize.js";
import { getPartNames, type QuantizedParameter, type StoredParameter } from "./stored-parameter.js";
import { convertWeight, listParts, type WritePart } from "./convert-weight.js";
import { MappedWeightFile } from "./mapped-weight-file.js";
import { openCachedWeights, WEIGHTS_FILE, type MappedWeights, type WriteWeights } from "./weight-cache.js";

/** Smaller weights are converted in less time than a cache takes to check. */
const MIN_CACHED_BYTES = 2 ** 24;

/** A parameter that is computed whenever it is read, such as one with a merged adapter. */
export interface ComputedWeight {
  readonly shape: readonly number[];
  /** Computes the values in consecutive chunks of whole rows. */
  readonly readChunks: () => AsyncIterable<Float32Array>;
}

/** Storage of a parameter: mapped in place from its file, converted from its file, or computed. */
type WeightStorage =
  | { readonly kind: "mapped"; readonly location: WeightLocation; readonly parameter: StoredParameter }
  | { readonly kind: "file"; readonly parameter: StoredParameter }
  | { readonly kind: "computed"; readonly weight: ComputedWeight; readonly parameter: StoredParameter };

/** Which parameters to quantize. */
export interface QuantizationConfig {
  readonly bits: 4 | 8;
  /**
   * Whether 8 bits have a scale per output and are multiplied as whole numbers, which CPUs do
   * faster.
   */
  readonly scalesPerOutput: boolean;
  /** Type of codes with a scale per output that the processor multiplies. */
  readonly codeType: CodeType;
  /** Matrices to quantize; those whose rows do not fit into blocks are left as they are. */
  readonly names: ReadonlySet<string>;
  /**
   * The output matrix [vocabulary, width] if it is quantized, to 8 bits with a scale per output.
   */
  readonly head: string | undefined;
  /** Whether matrices are stored [in, out] and must be transposed. */
  readonly transposed: boolean;
}

/**
 * A model's frozen parameters. Float32 files are mapped in place; other formats are widened,
 * quantized parameters rounded and merged ones computed into a temporary file that sessions map.
 * Where it does not fit, sessions get all weights in memory.
 */
export class ModelWeights {
  readonly parameters: ReadonlyMap<string, StoredParameter>;
  private mapped: LazyPromise<MappedWeights | undefined> | undefined;

  private constructor(
    readonly file: WeightFile,
    private readonly folder: string | undefined,
    private readonly quantization: QuantizationConfig | undefined,
    private readonly storageByName: ReadonlyMap<string, WeightStorage>,
    /** Names of the tables of `withTables`. */
    readonly tables: readonly string[] = [],
  ) {
    this.parameters = new Map([...storageByName].map(([name, { parameter }]) => [name, parameter]));
  }

  /** Opens all tensors of a file, quantized as configured. */
  static async open(file: WeightFile, quantization?: QuantizationConfig): Promise<ModelWeights> {
    const entries = [...file.entries.values()];
    const paths = new Map<string, string>();
    for (const { file: path } of entries) if (!paths.has(path)) paths.set(path, await fs.realpath(path));
    const folders = new Set([...paths.values()].map((path) => fs.dirname(path)));
    const isMappable = folders.size === 1 && entries.every(({ mappable, dtype }) => mappable && dtype === "F32");
    const storageByName = new Map<string, WeightStorage>();
    for (const entry of entries) {
      const { name, shape, offset, byteLength } = entry;
      const quantized = quantization && chooseQuantizedForm(entry, quantization);
      if (quantized !== undefined) {
        storageByName.set(name, { kind: "file", parameter: quantized });
      } else if (isMappable && quantization === undefined) {
        const location = { file: fs.basename(paths.get(entry.file)!), offset, byteLength };
        storageByName.set(name, { kind: "mapped", location, parameter: { kind: "frozen", shape } });
      } else {
        storageByName.set(name, { kind: "file", parameter: { kind: "frozen", shape } });
      }
    }
    return new ModelWeights(file, [...folders][0], quantization, storageByName);
  }

  get bits(): WeightBits {
    return this.quantization?.bits ?? 32;
  }

  /** Returns the parameters with some replaced or added. */
  withReplaced(replaced: ReadonlyMap<string, ComputedWeight>): ModelWeights {
    const storageByName = new Map<string, WeightStorage>();
    for (const [name, storage] of this.storageByName)
      storageByName.set(name, storage.kind === "mapped" ? { kind: "file", parameter: storage.parameter } : storage);
    for (const [name, weight] of replaced)
      storageByName.set(name, { kind: "computed", weight, parameter: { kind: "frozen", shape: weight.shape } });
    return new ModelWeights(this.file, this.folder, this.quantization, storageByName);
  }

  /** Returns the parameters with another embedding or output matrix. */
  withTables(
    tables: ReadonlyMap<string, { readonly shape: readonly number[]; readonly data: Float32Array }>,
  ): ModelWeights {
    async function* readChunks(data: Float32Array): AsyncGenerator<Float32Array> {
      yield await Promise.resolve(data);
    }
    const computed = [...tables].map(
      ([name, { shape, data }]) => [name, { shape, readChunks: () => readChunks(data) }] as const,
    );
    const { file, folder, quantization, storageByName } = this.withReplaced(new Map(computed));
    return new ModelWeights(file, folder, quantization, storageByName, [...tables.keys()]);
  }

  /**
   * Returns the shape in which `read` returns a parameter; matrices of some architectures are [in,
   * out].
   */
  shape(name: string): readonly number[] {
    const storage = this.storageByName.get(name);
    return storage?.kind === "computed" ? storage.weight.shape : this.file.entries.get(name)!.shape;
  }

  /**
   * Reads a parameter as float32, into `target` if given; quantized ones at their original
   * precision.
   */
  async read(name: string, target?: Float32Array): Promise<Float32Array> {
    const storage = this.storageByName.get(name);
    if (storage?.kind !== "computed") return this.file.readFloat32(name, target);
    const values = target ?? new Float32Array(countElements(storage.weight.shape));
    let offset = 0;
    for await (const chunk of storage.weight.readChunks()) {
      values.set(chunk, offset);
      offset += chunk.length;
    }
    return values;
  }

  /** Reads a parameter as `read` does, in consecutive chunks of whole rows. */
  readChunks(name: string): AsyncIterable<Float32Array> {
    const storage = this.storageByName.get(name);
    return storage?.kind === "computed" ? storage.weight.readChunks() : this.file.readChunks(name);
  }

  /**
   * Returns what a session needs to load the weights of its graph. Release it once the session is
   * created.
   */
  async getSessionOptions({ weights }: Pick<CompiledGraph, "weights">, runtime: Runtime): Promise<SessionOptions> {
    // A file in the memory of a page would be one more copy.
    if (system.opensFilesNatively && [...this.storageByName.values()].every(({ kind }) => kind !== "mapped")) {
      this.mapped ??= new LazyPromise(() => this.convert(runtime));
      const mapped = await this.mapped.get();
      if (mapped !== undefined) return { locate: ({ name }) => mapped.locations.get(name)!, folder: mapped.folder };
    }
    const used = new Set(weights.map(({ name }) => name));
    const buffers = new Map<string, Uint8Array>();
    const locations = new Map<string, WeightLocation>();
    for (const [name, storage] of this.storageByName) {
      if (storage.kind === "mapped") locations.set(name, storage.location);
      else if (getPartNames(name, storage.parameter).some((part) => used.has(part)))
        for (const [part, bytes] of await this.readParts(name)) buffers.set(part, bytes);
    }
    return {
      locate: ({ name }: NamedTensorType) =>
        locations.get(name) ?? { file: memoryFileName(name), offset: 0, byteLength: buffers.get(name)!.byteLength },
      folder: this.folder,
      buffers: [...used].flatMap((name) => {
        const data = buffers.get(name);
        return data === undefined ? [] : [{ name: memoryFileName(name), data }];
      }),
    };
  }

  /**
   * Converts the weights into a file: one of the cache, which later processes map as well, or a
   * temporary one.
   */
  private async convert(runtime: Runtime): Promise<MappedWeights | undefined> {
    const packs = packsWeights(runtime);
    const size = [...this.parameters]
      .flatMap(([name, parameter]) => listParts(name, parameter))
      // The packed form of a matrix takes as much as its codes.
      .reduce((sum, { byteLength, sameAs }) => sum + (sameAs === undefined || packs ? byteLength : 0), 0);
    const write: WriteWeights = (path) => this.writeParts(path, runtime);
    const isStored = [...this.storageByName.values()].every(({ kind }) => kind === "file");
    if (isStored && size >= MIN_CACHED_BYTES) {
      const { file, bits, quantization } = this;
      const conversion = quantization && {
        ...quantization,
        names: [...quantization.names],
        packed: packs && (await getRuntimeVersion()),
      };
      const cached = await openCachedWeights({ file, bits, conversion, size, write });
      if (cached !== undefined) return cached;
    }
    return MappedWeightFile.create(write);
  }

  private async writeParts(path: string, runtime: Runtime): Promise<Map<string, WeightLocation>> {
    const locations = new Map<string, WeightLocation>();
    const target = await fs.open(path, "create");
    let end = 0;
    try {
      for (const [name, parameter] of this.parameters) {
        for (const { part, byteLength, sameAs } of listParts(name, parameter)) {
          // A matrix as it is, which ONNX Runtime would pack next to those that have packed forms.
          const isVariable = parameter.shape.length > 1 && (part === name || parameter.kind === "int8Head");
          const own = { file: WEIGHTS_FILE, offset: end, byteLength, ...(isVariable ? { isVariable } : {}) };
          locations.set(part, locations.get(sameAs ?? part) ?? own);
          if (sameAs === undefined) end = alignOffset(end + byteLength);
        }
        await this.convertParameter(name, (part, bytes, offset) =>
          target.write(bytes, locations.get(part)!.offset + offset),
        );
      }
      if (packsWeights(runtime))
        await appendPackedForms({ runtime, path, target, end, locations, parameters: this.parameters });
    } finally {
      await target.close();
    }
    return locations;
  }

  /** Converts a parameter to tensors in memory. */
  private async readParts(name: string): Promise<Map<string, Uint8Array>> {
    const parts = new Map<string, Uint8Array>();
    for (const { part, byteLength, sameAs } of listParts(name, this.parameters.get(name)!))
      parts.set(part, parts.get(sameAs ?? part) ?? new Uint8Array(byteLength));
    await this.convertParameter(name, async (part, bytes, offset) => parts.get(part)!.set(bytes, offset));
    return parts;
  }

  private async convertParameter(name: string, write: WritePart): Promise<void> {
    const transposed = this.quantization?.transposed ?? false;
    await convertWeight(name, this.parameters.get(name)!, this.readChunks(name), { transposed, write });
  }

  async close(): Promise<void> {
    await (await this.mapped?.peek())?.remove();
    await this.file.close();
  }
}

/** File name of in-memory data in graphs. */
function memoryFileName(part: string): string {
  return `memory:${part}`;
}

/** Returns the form in which a tensor is quantized; undefined for those that are not. */
function chooseQuantizedForm(
  { name, shape }: WeightEntry,
  { bits, names, head, transposed, scalesPerOutput, codeType }: QuantizationConfig,
): QuantizedParameter | undefined {
  if (name === head) return { kind: "int8Head", shape, codeType };
  if (!names.has(name)) return undefined;
  const outInShape = transposed ? [shape[1], shape[0]] : shape;
  if (scalesPerOutput) return { kind: "int8", shape: outInShape, codeType };
  return outInShape[1] % BLOCK_SIZE === 0 ? { kind: "quantized", shape: outInShape, bits } : undefined;
}
