import type { DecoderConfig } from "../../../engine/nn/decoder-config.js";
import { tokensThatFit } from "../../../models/weights/micro-batch-memory.js";
import {
  compareTokens,
  packedSize,
  packSharedPrefixes,
  type PackedSequences,
} from "../../../models/graphs/prefix-packing.js";
import { decisionSequences, type TurnTokens } from "./turn-batch.js";

/** Turns that one pass takes. */
export interface MicroBatch {
  readonly turnIndices: readonly number[];
  /** How their sequences are laid out. */
  readonly packed: PackedSequences;
}

/**
 * Turns in batches that take the memory of at most `maxTokens` tokens each, a lone turn more if it must be. Turns that begin alike
 * come together, since what they share is computed once.
 */
export function splitIntoMicroBatches(
  turns: readonly TurnTokens[],
  maxTokens: number,
  config: Pick<DecoderConfig, "hiddenSize" | "heads">,
): MicroBatch[] {
  const sequences = turns.map(({ prompt, tokens }) => [...prompt, ...tokens]);
  const order = turns.map((_, i) => i).sort((a, b) => compareTokens(sequences[a], sequences[b]));
  const decisionTokens = turns.map(decisionSequences);
  const packTurns = (start: number, count: number): MicroBatch => {
    const turnIndices = order.slice(start, start + count);
    const packed = packSharedPrefixes(
      turnIndices.flatMap((i) => decisionTokens[i]),
      config.hiddenSize,
    );
    return { turnIndices, packed };
  };
  const fits = ({ packed: { groups } }: MicroBatch) => tokensThatFit(packedSize(groups), config) <= maxTokens;
  const microBatches: MicroBatch[] = [];
  for (let start = 0; start < order.length; start += microBatches.at(-1)!.turnIndices.length) {
    // Batches are of like size, so that what is laid out in vain is bounded by what goes through the model.
    const maxCount = Math.min(order.length - start, 2 * (microBatches.at(-1)?.turnIndices.length ?? Infinity));
    let microBatch = packTurns(start, maxCount);
    if (maxCount > 1 && !fits(microBatch)) {
      microBatch = packTurns(start, 1);
      // The largest number of turns that fits lies between these.
      for (let [low, high] = [1, maxCount]; high - low > 1;) {
        const middle = Math.floor((low + high) / 2);
        const candidate = packTurns(start, middle);
        if (fits(candidate)) [low, microBatch] = [middle, candidate];
        else high = middle;
      }
    }
    microBatches.push(microBatch);
  }
  return microBatches;
}
