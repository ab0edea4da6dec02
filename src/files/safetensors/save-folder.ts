import { mkdir, mkdtemp, readdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { LlamaGymError } from "../../errors.js";
import { writeFailure } from "../failure.js";
import { writeJson } from "../json.js";
import { WEIGHTS_INDEX_NAME, WEIGHTS_NAME } from "./folder.js";
import { savedByteLength, writeSafetensors, type TensorToSave } from "./writer.js";
import { elementCount } from "../../tensor/tensor.js";

/** The largest shard by default: what Transformers wrote until version 5, and what the hub handles well. */
const MAX_SHARD_BYTES = 5e9;

/** Deals tensors out to shards in their order; one that is larger than a shard gets a shard of its own. */
function dealOut(tensors: readonly TensorToSave[], maxShardBytes: number): TensorToSave[][] {
  const shards: TensorToSave[][] = [];
  let room = 0;
  for (const tensor of tensors) {
    const bytes = savedByteLength(tensor);
    if (bytes > room || shards.length === 0) {
      shards.push([]);
      room = maxShardBytes;
    }
    shards[shards.length - 1].push(tensor);
    room -= bytes;
  }
  return shards.length === 0 ? [[]] : shards;
}

/**
 * Saves a model's tensors in a folder as Transformers does: `model.safetensors`, or shards of at most `maxShardBytes`
 * (5 GB by default) with their index. All files are written before the first takes its name; what an earlier save left
 * behind is removed in the end. Throws FILE_WRITE_FAILED, SHAPE_MISMATCH, INVALID_ARGUMENT.
 */
export async function saveWeightFolder(
  folder: string,
  tensors: readonly TensorToSave[],
  { maxShardBytes = MAX_SHARD_BYTES }: { maxShardBytes?: number } = {},
): Promise<void> {
  if (!(maxShardBytes > 0)) {
    throw new LlamaGymError("INVALID_ARGUMENT", `maxShardBytes must be above 0, not ${maxShardBytes}.`);
  }
  let staging: string | undefined;
  try {
    await mkdir(folder, { recursive: true });
    staging = await mkdtemp(join(folder, ".saving-"));
    const names = await writeShards(staging, dealOut(tensors, maxShardBytes), tensors);
    for (const name of names) await rename(join(staging, name), join(folder, name));
    await removeOthers(folder, new Set(names));
  } catch (error) {
    throw writeFailure(folder, error);
  } finally {
    if (staging !== undefined) await rm(staging, { recursive: true, force: true });
  }
}

/** Writes the shards and, for more than one, their index, which comes last among the names that are given back. */
async function writeShards(
  folder: string,
  shards: readonly (readonly TensorToSave[])[],
  tensors: readonly TensorToSave[],
): Promise<string[]> {
  if (shards.length === 1) {
    await writeSafetensors(join(folder, WEIGHTS_NAME), shards[0]);
    return [WEIGHTS_NAME];
  }
  const number = (shard: number): string => String(shard).padStart(5, "0");
  const names: string[] = [];
  const weightMap: Record<string, string> = {};
  for (const [index, shard] of shards.entries()) {
    const name = `model-${number(index + 1)}-of-${number(shards.length)}.safetensors`;
    await writeSafetensors(join(folder, name), shard);
    for (const tensor of shard) weightMap[tensor.name] = name;
    names.push(name);
  }
  const metadata = {
    total_parameters: tensors.reduce((sum, { shape }) => sum + elementCount(shape), 0),
    total_size: tensors.reduce((sum, tensor) => sum + savedByteLength(tensor), 0),
  };
  await writeJson(join(folder, WEIGHTS_INDEX_NAME), { metadata, weight_map: sorted(weightMap) });
  return [...names, WEIGHTS_INDEX_NAME];
}

function sorted(weightMap: Record<string, string>): Record<string, string> {
  return Object.fromEntries(Object.entries(weightMap).sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** Removes a model's weight files that are not in `kept`, so that a loader does not find an older save. */
async function removeOthers(folder: string, kept: ReadonlySet<string>): Promise<void> {
  const ours = /^model(-\d{5}-of-\d{5})?\.safetensors(\.index\.json)?$/u;
  for (const name of await readdir(folder)) {
    if (ours.test(name) && !kept.has(name)) await rm(join(folder, name), { force: true });
  }
}
