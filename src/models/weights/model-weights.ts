import { LazyPromise } from "../../core/promise-cache.js";
import { fs } from "#platform";
import type { WeightEntry, WeightFile } from "../files/index.js";
import type { CompiledGraph, NamedTensorType, WeightLocation } from "../../engine/graph/index.js";
import type { SessionOptions } from "../../engine/runtime/index.js";
import { viewBytes } from "../../core/bytes.js";
import { countElements } from "../../core/count-elements.js";
import type { WeightBits } from "./estimate-model-memory.js";
import { BLOCK_SIZE, quantize, quantizeColumns, roundRows } from "./quantize.js";
import { getPartNames, type QuantizedParameter, type StoredParameter } from "../model-parameter-scope.js";
import { MappedWeightFile, type TensorParts } from "./mapped-weight-file.js";

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
  /** Whether 8 bits have a scale per output and are multiplied as whole numbers, which CPUs do faster. */
  readonly scalesPerOutput: boolean;
  /** Matrices to quantize; those whose rows do not fit into blocks are left as they are. */
  readonly names: ReadonlySet<string>;
  /** The output matrix [vocabulary, width] if it is quantized, to 8 bits with a scale per output. */
  readonly head: string | undefined;
  /** Whether matrices are stored [in, out] and must be transposed. */
  readonly transposed: boolean;
}

/**
 * A model's frozen parameters. Float32 files are mapped in place; other formats are widened, quantized parameters
 * rounded and merged ones computed into a temporary file that sessions map. Where it does not fit, sessions get all
 * weights in memory.
 */
export class ModelWeights {
  readonly parameters: ReadonlyMap<string, StoredParameter>;
  private readonly mappedFile = new LazyPromise(() => this.writeMappedFile());

  private constructor(
    readonly file: WeightFile,
    private readonly folder: string | undefined,
    private readonly quantization: QuantizationConfig | undefined,
    private readonly storageByName: ReadonlyMap<string, WeightStorage>,
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

  /** Returns the shape in which `read` returns a parameter; matrices of some architectures are [in, out]. */
  shape(name: string): readonly number[] {
    const storage = this.storageByName.get(name);
    return storage?.kind === "computed" ? storage.weight.shape : this.file.entries.get(name)!.shape;
  }

  /** Reads a parameter as float32, into `target` if given; quantized ones at their original precision. */
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

  /** Returns what a session needs to load the weights of its graph. Release it once the session is created. */
  async getSessionOptions({ weights }: CompiledGraph): Promise<SessionOptions> {
    if ([...this.storageByName.values()].every(({ kind }) => kind !== "mapped")) {
      const mappedFile = await this.mappedFile.get();
      if (mappedFile !== undefined)
        return { locate: ({ name }) => mappedFile.locations.get(name)!, folder: mappedFile.folder };
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

  private writeMappedFile(): Promise<MappedWeightFile | undefined> {
    const sizes = [...this.parameters.values()].map(({ shape }) => countElements(shape));
    return MappedWeightFile.create(this.storageByName.keys(), Math.max(...sizes), (name, scratch) =>
      this.readParts(name, scratch),
    );
  }

  /** Reads a parameter as the tensors that sessions use. */
  private async readParts(name: string, scratch?: Float32Array): Promise<TensorParts> {
    const { parameter } = this.storageByName.get(name)!;
    const values = await this.read(name, scratch?.subarray(0, countElements(parameter.shape)));
    if (parameter.kind === "frozen" || parameter.kind === "trainable") return new Map([[name, viewBytes(values)]]);
    return quantizeParts(name, values, parameter, this.quantization!.transposed);
  }

  async close(): Promise<void> {
    await (await this.mappedFile.peek())?.remove();
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
  { bits, names, head, transposed, scalesPerOutput }: QuantizationConfig,
): QuantizedParameter | undefined {
  if (name === head) return { kind: "int8Head", shape };
  if (!names.has(name)) return undefined;
  const outInShape = transposed ? [shape[1], shape[0]] : shape;
  if (scalesPerOutput) return { kind: "int8", shape: outInShape };
  return outInShape[1] % BLOCK_SIZE === 0 ? { kind: "quantized", shape: outInShape, bits } : undefined;
}

/** Quantizes a matrix; see quantizedMatmul and int8WeightMatmul. Rounds the values of an output matrix in place. */
export function quantizeParts(
  name: string,
  values: Float32Array,
  parameter: QuantizedParameter,
  transposed: boolean,
): TensorParts {
  const [rows, columns] = parameter.shape;
  const partNames = getPartNames(name, parameter);
  if (parameter.kind === "int8Head") {
    const { codes, scales } = roundRows(values, columns);
    return new Map([codes, scales, values].map((part, i) => [partNames[i], viewBytes(part)]));
  }
  if (parameter.kind === "int8") {
    const { codes, scales } = quantizeColumns(transposed ? values : transposeMatrix(values, rows, columns), rows);
    return new Map([codes, scales].map((part, i) => [partNames[i], viewBytes(part)]));
  }
  const { bits } = parameter;
  const { codes, scales } = quantize(transposed ? transposeMatrix(values, columns, rows) : values, bits);
  // The middle code: 8 in both halves of a byte, or 128.
  const zeroPoints = new Uint8Array(Math.ceil((scales.length * bits) / 8)).fill(bits === 4 ? 0x88 : 0x80);
  return new Map([codes, codes, viewBytes(scales), zeroPoints].map((part, i) => [partNames[i], part]));
}

/** Transposes [rows, columns] to [columns, rows]. */
export function transposeMatrix(values: Float32Array, rows: number, columns: number): Float32Array {
  const result = new Float32Array(values.length);
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++) result[column * rows + row] = values[row * columns + column];
  }
  return result;
}
