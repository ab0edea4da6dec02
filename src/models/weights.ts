import { realpath } from "node:fs/promises";
import { basename, dirname } from "node:path";
import type { WeightEntry, WeightFile } from "../files/index.js";
import type { CompiledGraph, NamedType, WeightLocation } from "../graph/index.js";
import type { SessionOptions } from "../runtime/runtime.js";
import { elementCount, type Tensor } from "../tensor/tensor.js";
import type { WeightBits } from "./memory.js";
import { BLOCK_SIZE, quantise } from "./quantisation.js";
import { QUANTISED_PARTS, type QuantisedParameter, type StoredParameter } from "./scope.js";
import { TemporaryWeights, type Parts } from "./temporary-weights.js";

/** Where a parameter lies: in its file, where sessions read it in place ("mapped") or where it is made from ("file"), or in memory. */
type Place =
  | { readonly kind: "mapped"; readonly location: WeightLocation; readonly parameter: StoredParameter }
  | { readonly kind: "file"; readonly parameter: StoredParameter }
  | { readonly kind: "memory"; readonly bytes: Uint8Array; readonly parameter: StoredParameter };

/** Which parameters to hold in few bits. */
export interface Quantisation {
  readonly bits: 4 | 8;
  /** Names of the matrices to quantise; those whose rows are no multiple of the block size stay as they are. */
  readonly names: ReadonlySet<string>;
  /** Stored [in, out]: turned to [out, in] on the way. */
  readonly transposed: boolean;
}

/**
 * A model's frozen parameters. Where all lie in their files as float32, every session maps them from there; what a file
 * holds otherwise is first widened, and what is wanted in few bits is rounded, into a temporary file that sessions map. Merged
 * weights are in memory, and a session of those is given all its weights there (it takes them from files or from memory, not from
 * both).
 */
export class ModelWeights {
  readonly parameters: ReadonlyMap<string, StoredParameter>;
  private temporary: Promise<TemporaryWeights | undefined> | undefined;

  private constructor(
    readonly file: WeightFile,
    private readonly folder: string | undefined,
    private readonly quantisation: Quantisation | undefined,
    private readonly places: ReadonlyMap<string, Place>,
  ) {
    this.parameters = new Map([...places].map(([name, { parameter }]) => [name, parameter]));
  }

  /** Opens all tensors of a file; some of them in few bits, where asked. */
  static async open(file: WeightFile, quantisation?: Quantisation): Promise<ModelWeights> {
    const entries = [...file.entries.values()];
    const paths = new Map<string, string>();
    for (const { file: path } of entries) if (!paths.has(path)) paths.set(path, await realpath(path));
    const folders = new Set([...paths.values()].map((path) => dirname(path)));
    const inPlace = folders.size === 1 && entries.every(({ mappable, dtype }) => mappable && dtype === "F32");
    const places = new Map<string, Place>();
    for (const entry of entries) {
      const { name, shape, offset, byteLength } = entry;
      if (quantisation !== undefined && isQuantised(entry, quantisation)) {
        const { bits, transposed } = quantisation;
        const turned = transposed ? [shape[1], shape[0]] : shape;
        places.set(name, { kind: "file", parameter: { kind: "quantised", shape: turned, bits } });
      } else if (inPlace && quantisation === undefined) {
        const location = { file: basename(paths.get(entry.file)!), offset, byteLength };
        places.set(name, { kind: "mapped", location, parameter: { kind: "frozen", shape } });
      } else {
        places.set(name, { kind: "file", parameter: { kind: "frozen", shape } });
      }
    }
    return new ModelWeights(file, [...folders][0], quantisation, places);
  }

  get bits(): WeightBits {
    return this.quantisation?.bits ?? 32;
  }

  /** The same parameters with other values for some, and further ones. */
  withReplaced(replaced: ReadonlyMap<string, Tensor<"float32">>): ModelWeights {
    const places = new Map<string, Place>();
    for (const [name, place] of this.places) {
      places.set(name, place.kind === "mapped" ? { kind: "file", parameter: place.parameter } : place);
    }
    for (const [name, { shape, data }] of replaced) {
      const bytes = new Uint8Array(share(data.byteLength));
      floats(bytes).set(data);
      places.set(name, { kind: "memory", bytes, parameter: { kind: "frozen", shape } });
    }
    return new ModelWeights(this.file, this.folder, this.quantisation, places);
  }

  /** A parameter's values as float32; those of a quantised one as they were before. */
  async read(name: string): Promise<Float32Array> {
    const place = this.places.get(name);
    return place?.kind === "memory" ? floats(place.bytes) : this.file.readFloat32(name);
  }

  /** What a session needs to find the weights of its graph; to be dropped when the session stands. */
  async sessionOptions({ weights }: CompiledGraph): Promise<SessionOptions> {
    if ([...this.places.values()].every(({ kind }) => kind === "file")) {
      const temporary = await (this.temporary ??= this.writeTemporary());
      if (temporary !== undefined)
        return { locate: ({ name }) => temporary.locations.get(name)!, folder: temporary.folder };
    }
    const used = new Set(weights.map(({ name }) => name));
    const parts = new Map<string, Uint8Array>();
    const locations = new Map<string, WeightLocation>();
    for (const [name, place] of this.places) {
      if (place.kind === "mapped") locations.set(name, place.location);
      else if (place.kind === "memory") parts.set(name, place.bytes);
      else if (partNames(name, place.parameter).some((part) => used.has(part)))
        for (const [part, bytes] of await this.parts(name)) parts.set(part, bytes);
    }
    return {
      locate: ({ name }: NamedType) =>
        locations.get(name) ?? { file: memoryFile(name), offset: 0, byteLength: parts.get(name)!.byteLength },
      folder: this.folder,
      buffers: [...used].flatMap((name) => {
        const data = parts.get(name);
        return data === undefined ? [] : [{ name: memoryFile(name), data }];
      }),
    };
  }

  private writeTemporary(): Promise<TemporaryWeights | undefined> {
    const sizes = [...this.parameters.values()].map(({ shape }) => elementCount(shape));
    return TemporaryWeights.create(this.places.keys(), Math.max(...sizes), (name, room) => this.parts(name, room));
  }

  /** What sessions read of a parameter whose file holds it otherwise. */
  private async parts(name: string, room?: Float32Array): Promise<Parts> {
    const { parameter } = this.places.get(name)!;
    const values = await this.file.readFloat32(name, room?.subarray(0, elementCount(parameter.shape)));
    if (parameter.kind === "quantised") return quantisedParts(name, values, parameter, this.quantisation!.transposed);
    return new Map([[name, new Uint8Array(values.buffer, values.byteOffset, values.byteLength)]]);
  }

  async close(): Promise<void> {
    await (await this.temporary)?.remove();
    await this.file.close();
  }
}

/** The name under which graphs know what lies in memory. */
function memoryFile(part: string): string {
  return `memory:${part}`;
}

function floats(bytes: Uint8Array): Float32Array {
  return new Float32Array(bytes.buffer, bytes.byteOffset, bytes.byteLength / 4);
}

const share = (bytes: number) => new SharedArrayBuffer(bytes);

function isQuantised({ name, shape }: WeightEntry, { names, transposed }: Quantisation): boolean {
  return names.has(name) && (transposed ? shape[0] : shape[1]) % BLOCK_SIZE === 0;
}

/** The names that graphs have for a parameter. */
function partNames(name: string, { kind }: StoredParameter): string[] {
  return kind === "quantised" ? QUANTISED_PARTS.map((part) => `${name}.${part}`) : [name];
}

/** A matrix in few bits; see quantisedMatmul. */
function quantisedParts(
  name: string,
  values: Float32Array,
  { shape: [rows, columns], bits }: QuantisedParameter,
  transposed: boolean,
): Parts {
  const { codes, scales } = quantise(transposed ? transposeMatrix(values, columns, rows) : values, bits);
  // The middle code in every place: 8 in both halves of a byte, or 128.
  const zeroPoints = new Uint8Array(Math.ceil((scales.length * bits) / 8)).fill(bits === 4 ? 0x88 : 0x80);
  return new Map([
    [`${name}.bytes`, codes],
    [`${name}.codes`, codes],
    [`${name}.scales`, new Uint8Array(scales.buffer)],
    [`${name}.zero_points`, zeroPoints],
  ]);
}

/** [rows, columns] to [columns, rows]. */
function transposeMatrix(values: Float32Array, rows: number, columns: number): Float32Array {
  const result = new Float32Array(values.length);
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++) result[column * rows + row] = values[row * columns + column];
  }
  return result;
}
