import { commonLength, compare } from "./rows.js";
import type { TurnTokens } from "./turn-batch.js";

/**
 * Numbers of turns in batches of at most about `maxTokens` tokens each, a lone turn more if it must be. Turns that begin alike
 * come together, since what they share is computed once.
 */
export function budgetBatches(turns: readonly TurnTokens[], maxTokens: number): number[][] {
  const sequences = turns.map(({ prompt, tokens }) => [...prompt, ...tokens]);
  const order = turns.map((_, i) => i).sort((a, b) => compare(sequences[a], sequences[b]));
  const batches: number[][] = [];
  let count = Infinity;
  let last: readonly number[] = [];
  for (const i of order) {
    const sequence = sequences[i];
    // Other actions' texts stand behind the same prompt.
    const { scored, tokens } = turns[i];
    const others = scored?.candidates.reduce((sum, { length }) => sum + length, -tokens.length) ?? 0;
    const added = sequence.length - commonLength(last, sequence) + others;
    if (count + added > maxTokens) {
      batches.push([]);
      count = sequence.length + others;
    } else {
      count += added;
    }
    batches.at(-1)!.push(i);
    last = sequence;
  }
  return batches;
}
