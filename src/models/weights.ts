import { realpath } from "node:fs/promises";
import { basename, dirname } from "node:path";
import type { WeightEntry, WeightFile } from "../files/index.js";
import type { CompiledGraph, NamedType, WeightLocation } from "../graph/index.js";
import type { SessionOptions } from "../runtime/runtime.js";
import type { DType } from "../tensor/dtype.js";
import type { Tensor } from "../tensor/tensor.js";
import { BLOCK_SIZE, quantise } from "./quantisation.js";
import type { StoredParameter } from "./scope.js";
import { WidenedFile } from "./widened-file.js";

/** Stored types that a graph reads in place. */
const MAPPABLE: Readonly<Record<string, DType>> = { F32: "float32", F16: "float16", BF16: "bfloat16" };

/**
 * Where a parameter lies: in its file, where sessions read it in place ("mapped") or from where it is widened ("file"), or in memory, in parts that sessions know by name.
 */
type Place =
  | { readonly kind: "mapped"; readonly location: WeightLocation; readonly parameter: StoredParameter }
  | { readonly kind: "file"; readonly parameter: StoredParameter }
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
 * A model's frozen parameters. Where all lie in their files as plain numbers, every session maps them from there; what a file
 * holds in blocks is first widened into a temporary file and mapped from that. Merged and quantised weights are in memory, and
 * a session of those is given all its weights there (it takes them from files or from memory, not from both).
 */
export class ModelWeights {
  readonly parameters: ReadonlyMap<string, StoredParameter>;
  private widenedFile: Promise<WidenedFile | undefined> | undefined;

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
    const places = new Map<string, Place>();
    for (const entry of entries) {
      const { name, shape, offset, byteLength } = entry;
      if (quantisation !== undefined && isQuantised(entry, quantisation)) {
        places.set(name, quantised(name, await file.readFloat32(name), shape, quantisation));
      } else if (inPlace && quantisation === undefined) {
        const location = { file: basename(paths.get(entry.file)!), offset, byteLength };
        places.set(name, {
          kind: "mapped",
          location,
          parameter: { kind: "frozen", dtype: MAPPABLE[entry.dtype], shape },
        });
      } else {
        places.set(name, { kind: "file", parameter: { kind: "frozen", dtype: "float32", shape } });
      }
    }
    return new ModelWeights(file, [...folders][0], places);
  }

  /** The same parameters with other values for some, and further ones. */
  withReplaced(replaced: ReadonlyMap<string, Tensor<"float32">>): ModelWeights {
    const places = new Map<string, Place>();
    for (const [name, place] of this.places) {
      const parameter = { kind: "frozen", dtype: "float32", shape: place.parameter.shape } as const;
      places.set(name, place.kind === "mapped" ? { kind: "file", parameter } : place);
    }
    for (const [name, { shape, data }] of replaced) {
      const bytes = new Uint8Array(share(data.byteLength));
      floats(bytes).set(data);
      const parameter = { kind: "frozen", dtype: "float32", shape } as const;
      places.set(name, { kind: "memory", parts: new Map([[name, bytes]]), parameter });
    }
    return new ModelWeights(this.file, this.folder, places);
  }

  /** A parameter's values as float32; those of a quantised one as they were before. */
  async read(name: string): Promise<Float32Array> {
    const place = this.places.get(name);
    if (place?.kind !== "memory" || place.parameter.kind === "quantised") return this.file.readFloat32(name);
    return floats(place.parts.get(name)!);
  }

  /** What a session needs to find the weights of its graph; to be dropped when the session stands. */
  async sessionOptions({ weights }: CompiledGraph): Promise<SessionOptions> {
    if ([...this.places.values()].every(({ kind }) => kind === "file")) {
      this.widenedFile ??= WidenedFile.create(this.file);
      const widened = await this.widenedFile;
      if (widened !== undefined) return { locate: ({ name }) => widened.locations.get(name)!, folder: widened.folder };
    }
    const parts = new Map<string, Uint8Array>();
    const locations = new Map<string, WeightLocation>();
    for (const [name, place] of this.places) {
      if (place.kind === "mapped") locations.set(name, place.location);
      else if (place.kind === "memory") for (const [part, data] of place.parts) parts.set(part, data);
      else if (weights.some((weight) => weight.name === name)) parts.set(name, await this.widened(name));
    }
    const used = weights.filter(({ name }) => parts.has(name));
    return {
      locate: ({ name }: NamedType) =>
        locations.get(name) ?? { file: memoryFile(name), offset: 0, byteLength: parts.get(name)!.byteLength },
      folder: this.folder,
      buffers: used.map(({ name }) => ({ name: memoryFile(name), data: parts.get(name)! })),
    };
  }

  private async widened(name: string): Promise<Uint8Array> {
    const values = await this.file.readFloat32(name);
    return new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
  }

  async close(): Promise<void> {
    await (await this.widenedFile)?.remove();
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
