import type { DecoderConfig } from "../../nn/config.js";
import { memoryInTokens } from "../../models/pass-memory.js";
import { compare, extent, layRows, type LaidRows } from "./rows.js";
import { sequencesOf, type TurnTokens } from "./turn-batch.js";

/** Turns that one pass takes. */
export interface Batch {
  readonly numbers: readonly number[];
  /** How their sequences are laid out. */
  readonly laid: LaidRows;
}

/**
 * Turns in batches that take the memory of at most `maxTokens` tokens each, a lone turn more if it must be. Turns that begin alike
 * come together, since what they share is computed once.
 */
export function budgetBatches(
  turns: readonly TurnTokens[],
  maxTokens: number,
  config: Pick<DecoderConfig, "hiddenSize" | "heads">,
): Batch[] {
  const sequences = turns.map(({ prompt, tokens }) => [...prompt, ...tokens]);
  const order = turns.map((_, i) => i).sort((a, b) => compare(sequences[a], sequences[b]));
  const rows = turns.map(sequencesOf);
  const lay = (from: number, count: number): Batch => {
    const numbers = order.slice(from, from + count);
    const laid = layRows(
      numbers.flatMap((i) => rows[i]),
      config.hiddenSize,
    );
    return { numbers, laid };
  };
  const fits = ({ laid: { groups } }: Batch) => memoryInTokens(extent(groups), config) <= maxTokens;
  const batches: Batch[] = [];
  for (let from = 0; from < order.length; from += batches.at(-1)!.numbers.length) {
    // Batches are of like size, so that what is laid out in vain is bounded by what goes through the model.
    const most = Math.min(order.length - from, 2 * (batches.at(-1)?.numbers.length ?? Infinity));
    let batch = lay(from, most);
    if (most > 1 && !fits(batch)) {
      batch = lay(from, 1);
      // The largest number of turns that fits lies between these.
      for (let [low, high] = [1, most]; high - low > 1;) {
        const middle = Math.floor((low + high) / 2);
        const tried = lay(from, middle);
        if (fits(tried)) [low, batch] = [middle, tried];
        else high = middle;
      }
    }
    batches.push(batch);
  }
  return batches;
}
