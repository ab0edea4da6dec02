import { mkdir, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { LlamaGymError } from "../../errors.js";
import { writeFailure } from "../failure.js";
import { writeJson } from "../json.js";
import { elementCount } from "../weights.js";
import { WEIGHTS_INDEX_NAME, WEIGHTS_NAME } from "./folder.js";
import { savedByteLength, writeSafetensors, type TensorToSave } from "./writer.js";

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
 * (5 GB by default) with their index. What an earlier save left behind is removed when the new files are whole.
 * Throws FILE_WRITE_FAILED, SHAPE_MISMATCH, INVALID_ARGUMENT.
 */
export async function saveWeightFolder(
  folder: string,
  tensors: readonly TensorToSave[],
  { maxShardBytes = MAX_SHARD_BYTES }: { maxShardBytes?: number } = {},
): Promise<void> {
  if (!(maxShardBytes > 0)) {
    throw new LlamaGymError("INVALID_ARGUMENT", `maxShardBytes must be above 0, not ${maxShardBytes}.`);
  }
  const shards = dealOut(tensors, maxShardBytes);
  const count = String(shards.length).padStart(5, "0");
  const nameOf = (shard: number): string =>
    shards.length === 1 ? WEIGHTS_NAME : `model-${String(shard + 1).padStart(5, "0")}-of-${count}.safetensors`;
  try {
    await mkdir(folder, { recursive: true });
  } catch (error) {
    throw writeFailure(folder, error);
  }
  const weightMap: Record<string, string> = {};
  for (const [index, shard] of shards.entries()) {
    await writeSafetensors(join(folder, nameOf(index)), shard);
    for (const { name } of shard) weightMap[name] = nameOf(index);
  }
  const kept = new Set(Object.values(weightMap));
  kept.add(nameOf(0));
  if (shards.length > 1) {
    const metadata = {
      total_parameters: tensors.reduce((sum, { shape }) => sum + elementCount(shape), 0),
      total_size: tensors.reduce((sum, tensor) => sum + savedByteLength(tensor), 0),
    };
    await writeJson(join(folder, WEIGHTS_INDEX_NAME), { metadata, weight_map: sorted(weightMap) });
    kept.add(WEIGHTS_INDEX_NAME);
  }
  await removeOthers(folder, kept);
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
