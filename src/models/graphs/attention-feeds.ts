import { type DecoderConfig, computeRopeTables } from "../../engine/nn/index.js";
import { int32, tensor, type Tensor } from "../../engine/tensor/index.js";

/**
 * Returns the head vector of each slot [groups, keyValueHeads, rows, heads per key-value head,
 * tokens].
 */
export function headIndices(
  { keyValueHeads }: Pick<DecoderConfig, "keyValueHeads">,
  heads: number,
  { groups, rows, tokens }: { readonly groups: number; readonly rows: number; readonly tokens: number },
  tokenAt: (group: number, row: number, token: number) => number,
): number[] {
  const headsPerKeyValueHead = heads / keyValueHeads;
  const indices: number[] = [];
  for (let group = 0; group < groups; group++) {
    for (let keyValueHead = 0; keyValueHead < keyValueHeads; keyValueHead++) {
      for (let row = 0; row < rows; row++) {
        for (let headOffset = 0; headOffset < headsPerKeyValueHead; headOffset++) {
          const head = keyValueHead * headsPerKeyValueHead + headOffset;
          for (let i = 0; i < tokens; i++) indices.push(tokenAt(group, row, i) * heads + head);
        }
      }
    }
  }
  return indices;
}

/**
 * Returns the graph inputs that pad rows into slots and back; a row in several slots is read from
 * the first.
 */
export function padIndexFeeds(name: string, indices: readonly number[], rowCount: number): Record<string, Tensor> {
  const inverse = new Int32Array(rowCount);
  for (let position = indices.length - 1; position >= 0; position--) inverse[indices[position]] = position;
  return { [`${name}_slots`]: int32(indices), [`${name}_inverse`]: tensor("int32", [rowCount], inverse) };
}

/** Returns each token's rotary tables, and its position for models with position embeddings. */
export function positionFeeds(
  config: DecoderConfig,
  positions: readonly number[],
  lengths: readonly number[],
): Record<string, Tensor> {
  const feeds: Record<string, Tensor> = {};
  config.ropes.forEach((rope, i) => {
    const half = rope.rotaryDim / 2;
    const { cos, sin } = computeRopeTables(rope, positions, lengths);
    feeds[`cos_${i}`] = tensor("float32", [positions.length, half], cos);
    feeds[`sin_${i}`] = tensor("float32", [positions.length, half], sin);
  });
  if (config.names.positions !== undefined) feeds.positions = int32(positions);
  return feeds;
}
