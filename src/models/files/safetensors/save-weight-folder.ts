import { fs } from "#platform";
import { LlamaGymError } from "../../../core/errors.js";
import { toWriteError } from "../../../core/files/file-errors.js";
import { writeJson } from "../../../core/files/json-file.js";
import { getTemporaryPath, removeAbandonedFiles } from "../../../core/files/temporary-path.js";
import { WEIGHTS_INDEX_NAME, WEIGHTS_NAME } from "./open-weight-folder.js";
import { getSavedByteLength, writeSafetensors, type TensorToSave } from "./write-safetensors.js";
import { countElements } from "../../../core/numbers.js";

/** Default shard size, as in Transformers 4 and recommended for the hub. */
const MAX_SHARD_BYTES = 5e9;

/** Assigns tensors to shards in order; a tensor larger than a shard gets its own. */
function assignShards(tensors: readonly TensorToSave[], maxShardBytes: number): TensorToSave[][] {
  const shards: TensorToSave[][] = [];
  let remainingBytes = 0;
  for (const tensor of tensors) {
    const bytes = getSavedByteLength(tensor);
    if (bytes > remainingBytes || shards.length === 0) {
      shards.push([]);
      remainingBytes = maxShardBytes;
    }
    shards[shards.length - 1].push(tensor);
    remainingBytes -= bytes;
  }
  return shards.length === 0 ? [[]] : shards;
}

/**
 * Saves a model's tensors as Transformers does: `model.safetensors`, or shards of at most
 * `maxShardBytes` (default 5 GB) with their index. Files are renamed into place after all are
 * written; files of an earlier save are removed. Returns the names of the files.
 * @throws FILE_WRITE_FAILED, SHAPE_MISMATCH, INVALID_ARGUMENT.
 */
export async function saveWeightFolder(
  folder: string,
  tensors: readonly TensorToSave[],
  { maxShardBytes = MAX_SHARD_BYTES }: { maxShardBytes?: number } = {},
): Promise<string[]> {
  if (!(maxShardBytes > 0))
    throw new LlamaGymError("INVALID_ARGUMENT", `\`maxShardBytes\` must be > 0, got ${maxShardBytes}.`);
  let staging: string | undefined;
  try {
    await fs.makeFolder(folder);
    await removeAbandonedFiles(folder);
    staging = getTemporaryPath(fs.join(folder, "weights"));
    await fs.makeFolder(staging);
    const names = await writeShards(staging, assignShards(tensors, maxShardBytes), tensors);
    for (const name of names) await fs.rename(fs.join(staging, name), fs.join(folder, name));
    await removeStaleFiles(folder, new Set(names));
    return names;
  } catch (error) {
    throw toWriteError(folder, error);
  } finally {
    if (staging !== undefined) await fs.remove(staging);
  }
}

/** Writes the shards and, if several, their index; returns the file names, the index last. */
async function writeShards(
  folder: string,
  shards: readonly (readonly TensorToSave[])[],
  tensors: readonly TensorToSave[],
): Promise<string[]> {
  if (shards.length === 1) {
    await writeSafetensors(fs.join(folder, WEIGHTS_NAME), shards[0]);
    return [WEIGHTS_NAME];
  }
  const padShardNumber = (shard: number): string => String(shard).padStart(5, "0");
  const names: string[] = [];
  const weightMap: Record<string, string> = {};
  for (const [index, shard] of shards.entries()) {
    const name = `model-${padShardNumber(index + 1)}-of-${padShardNumber(shards.length)}.safetensors`;
    await writeSafetensors(fs.join(folder, name), shard);
    for (const tensor of shard) weightMap[tensor.name] = name;
    names.push(name);
  }
  const metadata = {
    total_parameters: tensors.reduce((sum, { shape }) => sum + countElements(shape), 0),
    total_size: tensors.reduce((sum, tensor) => sum + getSavedByteLength(tensor), 0),
  };
  const sorted = Object.entries(weightMap).sort(([a], [b]) => (a < b ? -1 : 1));
  await writeJson(fs.join(folder, WEIGHTS_INDEX_NAME), { metadata, weight_map: Object.fromEntries(sorted) });
  return [...names, WEIGHTS_INDEX_NAME];
}

/** Removes weight files of an earlier save. */
async function removeStaleFiles(folder: string, currentFiles: ReadonlySet<string>): Promise<void> {
  const weightFilePattern = /^model(-\d{5}-of-\d{5})?\.safetensors(\.index\.json)?$/u;
  for (const name of await fs.list(folder)) {
    if (weightFilePattern.test(name) && !currentFiles.has(name)) await fs.remove(fs.join(folder, name));
  }
}
