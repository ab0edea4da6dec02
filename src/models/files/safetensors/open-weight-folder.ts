import { isJsonObject } from "../../../core/json.js";
import { fs } from "#platform";
import { LlamaGymError } from "../../../core/errors.js";
import { corruptFileError, toReadError } from "../../../core/files/file-errors.js";
import { formatJson, readJson } from "../../../core/files/json-file.js";
import { getEntry, type WeightEntry, type WeightFile } from "../weight-file.js";
import { SafetensorsFile } from "./safetensors-file.js";

/** Transformers' names of weight files. */
export const WEIGHTS_NAME = "model.safetensors";
export const WEIGHTS_INDEX_NAME = "model.safetensors.index.json";

/** Tensors of several safetensors files. */
class ShardedWeights implements WeightFile {
  constructor(
    readonly path: string,
    readonly entries: ReadonlyMap<string, WeightEntry>,
    private readonly shards: ReadonlyMap<string, SafetensorsFile>,
  ) {}

  private getShard(name: string): SafetensorsFile {
    const { file } = getEntry(this.entries, name, this.path);
    return this.shards.get(file)!;
  }

  async readFloat32(name: string, target?: Float32Array): Promise<Float32Array> {
    return this.getShard(name).readFloat32(name, target);
  }

  readChunks(name: string): AsyncIterable<Float32Array<ArrayBuffer>> {
    return this.getShard(name).readChunks(name);
  }

  async readBytes(name: string): Promise<Uint8Array<ArrayBuffer>> {
    return this.getShard(name).readBytes(name);
  }

  async close(): Promise<void> {
    await Promise.all([...this.shards.values()].map((shard) => shard.close()));
  }
}

/**
 * Reads the file of each tensor from a `model.safetensors.index.json`. @throws FILE_NOT_FOUND, and
 * FILE_CORRUPT when a name leads out of the folder.
 */
export async function readWeightMap(indexPath: string): Promise<Map<string, string>> {
  const { weight_map: weightMap } = await readJson(indexPath);
  if (!isJsonObject(weightMap)) throw corruptFileError(indexPath, "it has no weight_map object");
  const files = new Map<string, string>();
  for (const [tensor, file] of Object.entries(weightMap)) {
    if (typeof file !== "string" || !/^[^/\\]+\.safetensors$/u.test(file))
      throw corruptFileError(
        indexPath,
        `it places the tensor "${tensor}" in ${formatJson(file)}, not in a .safetensors file`,
      );
    files.set(tensor, file);
  }
  return files;
}

async function openShards(folder: string): Promise<WeightFile> {
  const weightMap = await readWeightMap(fs.join(folder, WEIGHTS_INDEX_NAME));
  const shards = new Map<string, SafetensorsFile>();
  try {
    for (const name of new Set(weightMap.values())) {
      const path = fs.join(folder, name);
      shards.set(path, await SafetensorsFile.open(path));
    }
    const entries = new Map<string, WeightEntry>();
    for (const [tensor, name] of weightMap) {
      const entry = shards.get(fs.join(folder, name))?.entries.get(tensor);
      if (entry === undefined)
        throw corruptFileError(
          fs.join(folder, WEIGHTS_INDEX_NAME),
          `it places the tensor "${tensor}" in ${name}, which lacks it`,
        );
      entries.set(tensor, entry);
    }
    return new ShardedWeights(folder, entries, shards);
  } catch (error) {
    await Promise.all([...shards.values()].map((shard) => shard.close()));
    throw error;
  }
}

function noWeightsError(folder: string, names: readonly string[]): LlamaGymError {
  const pickled = names.find((name) => /\.(bin|pt|pth|ckpt|h5|msgpack)$/u.test(name));
  if (pickled !== undefined) {
    return new LlamaGymError(
      "FORMAT_UNSUPPORTED",
      `${folder} has weights only as ${pickled}. Convert them to safetensors, for example with Transformers: ` +
        `AutoModelForCausalLM.from_pretrained(folder).save_pretrained(folder).`,
    );
  }
  return new LlamaGymError(
    "FILE_NOT_FOUND",
    `${folder} contains no weights: expected ${WEIGHTS_NAME} or ${WEIGHTS_INDEX_NAME} with its shards.`,
  );
}

/**
 * Opens the weights of a Hugging Face model folder: `model.safetensors`, shards by their index, or
 * the only safetensors file. @throws FILE_NOT_FOUND, FILE_CORRUPT, FORMAT_UNSUPPORTED.
 */
export async function openWeightFolder(folder: string): Promise<WeightFile> {
  const names = await fs.list(folder).catch((error: unknown) => {
    throw toReadError(folder, error);
  });
  // An index next to one file is left from an earlier save: Transformers reads the file.
  if (names.includes(WEIGHTS_NAME)) return SafetensorsFile.open(fs.join(folder, WEIGHTS_NAME));
  if (names.includes(WEIGHTS_INDEX_NAME)) return openShards(folder);
  const others = names.filter((name) => name.endsWith(".safetensors") && !name.startsWith("adapter_"));
  if (others.length === 1) return SafetensorsFile.open(fs.join(folder, others[0]));
  throw noWeightsError(folder, names);
}
