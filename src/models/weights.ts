import { realpath } from "node:fs/promises";
import { basename, dirname } from "node:path";
import type { WeightEntry, WeightFile } from "../files/index.js";
import type { NamedType, WeightLocation } from "../graph/index.js";
import type { SessionOptions } from "../runtime/runtime.js";
import type { DType } from "../tensor/dtype.js";
import { elementCount } from "../tensor/tensor.js";
import { BLOCK_SIZE, quantise } from "./quantisation.js";
import type { StoredParameter } from "./scope.js";

/** Stored types that a graph reads in place. */
const MAPPABLE: Readonly<Record<string, DType>> = { F32: "float32", F16: "float16", BF16: "bfloat16" };

/** Where a parameter lies: in its file, as it is there, or in memory as float32 or in blocks of few bits. */
type Place =
  | { readonly kind: "file"; readonly location: WeightLocation; readonly parameter: StoredParameter }
  | { readonly kind: "memory"; readonly parts: ReadonlyMap<string, Uint8Array>; readonly parameter: StoredParameter };

/** Which parameters to hold in few bits. */
export interface Quantisation {
  readonly bits: 4 | 8;
  /** Names of the matrices to quantise; those whose rows are no multiple of the block size stay as they are. */
  readonly names: ReadonlySet<string>;
  /** Stored [in, out]: turned to [out, in] on the way. */
  readonly transposed: boolean;
}

/**
 * A model's frozen parameters. Where all lie in their files as plain numbers they are read there in place, by every session;
 * otherwise (quantised blocks of a GGUF, merged weights) all are held once as float32, in memory that sessions share: a
 * session takes its weights from files or from memory, not from both.
 */
export class ModelWeights {
  readonly parameters: ReadonlyMap<string, StoredParameter>;

  private constructor(
    readonly file: WeightFile,
    private readonly folder: string | undefined,
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
    const inPlace = folders.size === 1 && entries.every(({ mappable, dtype }) => mappable && dtype in MAPPABLE);
    if (!inPlace || quantisation !== undefined) {
      const read = (name: string, target: Float32Array) => file.readFloat32(name, target);
      return new ModelWeights(file, undefined, await inMemory(entries, read, quantisation));
    }
    const places = entries.map(({ name, file: path, dtype, shape, offset, byteLength }): [string, Place] => {
      const location = { file: basename(paths.get(path)!), offset, byteLength };
      return [name, { kind: "file", location, parameter: { kind: "frozen", dtype: MAPPABLE[dtype], shape } }];
    });
    return new ModelWeights(file, [...folders][0], new Map(places));
  }

  /** The same parameters with other values for some. */
  async withReplaced(replaced: ReadonlyMap<string, Float32Array>): Promise<ModelWeights> {
    const places = await inMemory([...this.file.entries.values()], async (name, target) => {
      const values = replaced.get(name);
      if (values === undefined) await this.file.readFloat32(name, target);
      else target.set(values);
    });
    return new ModelWeights(this.file, undefined, places);
  }

  /** A parameter's values as float32; those of a quantised one as they were before. */
  async read(name: string): Promise<Float32Array> {
    const place = this.places.get(name);
    if (place?.kind !== "memory" || place.parameter.kind === "quantised") return this.file.readFloat32(name);
    return floats(place.parts.get(name)!);
  }

  /** What a session needs to find the weights. */
  sessionOptions(): SessionOptions {
    const locations = new Map<string, WeightLocation>();
    const buffers: { name: string; data: Uint8Array }[] = [];
    for (const [name, place] of this.places) {
      if (place.kind === "file") {
        locations.set(name, place.location);
        continue;
      }
      for (const [part, data] of place.parts) {
        buffers.push({ name: memoryFile(part), data });
        locations.set(part, { file: memoryFile(part), offset: 0, byteLength: data.byteLength });
      }
    }
    return { locate: ({ name }: NamedType) => locations.get(name)!, folder: this.folder, buffers };
  }

  async close(): Promise<void> {
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

/** All entries in memory that threads share: as float32, or in few bits. */
async function inMemory(
  entries: readonly WeightEntry[],
  read: (name: string, target: Float32Array) => Promise<unknown>,
  quantisation?: Quantisation,
): Promise<Map<string, Place>> {
  const places = new Map<string, Place>();
  for (const { name, shape } of entries) {
    const bytes = new Uint8Array(share(4 * elementCount(shape)));
    await read(name, floats(bytes));
    const inFeatures = quantisation?.transposed === true ? shape[0] : shape[1];
    if (quantisation?.names.has(name) === true && inFeatures % BLOCK_SIZE === 0) {
      places.set(name, quantised(name, floats(bytes), shape, quantisation));
    } else {
      places.set(name, {
        kind: "memory",
        parts: new Map([[name, bytes]]),
        parameter: { kind: "frozen", dtype: "float32", shape },
      });
    }
  }
  return places;
}

function quantised(
  name: string,
  values: Float32Array,
  shape: readonly number[],
  { bits, transposed }: Quantisation,
): Place {
  const [rows, columns] = transposed ? [shape[1], shape[0]] : shape;
  const { codes, scales } = quantise(transposed ? transposeMatrix(values, columns, rows) : values, bits, share);
  // The middle code in every place: 8 in both halves of a byte, or 128.
  const zeroPoints = new Uint8Array(share(Math.ceil((scales.length * bits) / 8))).fill(bits === 4 ? 0x88 : 0x80);
  const parts = new Map([
    [`${name}.bytes`, codes],
    [`${name}.codes`, codes],
    [`${name}.scales`, new Uint8Array(scales.buffer)],
    [`${name}.zero_points`, zeroPoints],
  ]);
  return { kind: "memory", parts, parameter: { kind: "quantised", shape: [rows, columns], bits } };
}

/** [rows, columns] to [columns, rows]. */
function transposeMatrix(values: Float32Array, rows: number, columns: number): Float32Array {
  const result = new Float32Array(values.length);
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++) result[column * rows + row] = values[row * columns + column];
  }
  return result;
}
