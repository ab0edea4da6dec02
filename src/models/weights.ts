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

/** Where a parameter lies: in its file, as it is there, or in memory as float32. */
type Place = { readonly location: WeightLocation; readonly dtype: DType } | { readonly values: Float32Array };

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
    this.parameters = new Map(
      [...places].map(([name, place]) => {
        const { shape } = file.entries.get(name)!;
        return [name, { kind: "frozen", dtype: "values" in place ? "float32" : place.dtype, shape }];
      }),
    );
  }

  /** Opens all tensors of a file. */
  static async open(file: WeightFile): Promise<ModelWeights> {
    const entries = [...file.entries.values()];
    const paths = new Map<string, string>();
    for (const { file: path } of entries) if (!paths.has(path)) paths.set(path, await realpath(path));
    const folders = new Set([...paths.values()].map((path) => dirname(path)));
    const inPlace = folders.size === 1 && entries.every(({ mappable, dtype }) => mappable && dtype in MAPPABLE);
    if (!inPlace)
      return new ModelWeights(
        file,
        undefined,
        await inMemory(entries, (name, target) => file.readFloat32(name, target)),
      );
    const places = entries.map(({ name, file: path, dtype, offset, byteLength }): [string, Place] => {
      const location = { file: basename(paths.get(path)!), offset, byteLength };
      return [name, { location, dtype: MAPPABLE[dtype] }];
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

  /** A parameter's values as float32. */
  async read(name: string): Promise<Float32Array> {
    const place = this.places.get(name);
    return place !== undefined && "values" in place ? place.values : this.file.readFloat32(name);
  }

  /** What a session needs to find the weights. */
  sessionOptions(): SessionOptions {
    const held = [...this.places].flatMap(([name, place]) =>
      "values" in place ? [{ name, values: place.values }] : [],
    );
    return {
      locate: ({ name }: NamedType) => {
        const place = this.places.get(name)!;
        return "values" in place
          ? { file: memoryFile(name), offset: 0, byteLength: place.values.byteLength }
          : place.location;
      },
      folder: this.folder,
      buffers: held.map(({ name, values }) => ({
        name: memoryFile(name),
        data: new Uint8Array(values.buffer, values.byteOffset, values.byteLength),
      })),
    };
  }

  async close(): Promise<void> {
    await this.file.close();
  }
}

/** The name under which graphs know a parameter that lies in memory. */
function memoryFile(name: string): string {
  return `memory:${name}`;
}

/** All entries as float32, one after another in one block that threads share. */
async function inMemory(
  entries: readonly WeightEntry[],
  read: (name: string, target: Float32Array) => Promise<unknown>,
): Promise<Map<string, Place>> {
  const memory = new SharedArrayBuffer(4 * entries.reduce((sum, { shape }) => sum + elementCount(shape), 0));
  const places = new Map<string, Place>();
  let offset = 0;
  for (const { name, shape } of entries) {
    const values = new Float32Array(memory, offset, elementCount(shape));
    offset += values.byteLength;
    await read(name, values);
    places.set(name, { values });
  }
  return places;
}
