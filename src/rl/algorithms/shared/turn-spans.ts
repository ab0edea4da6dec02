import { invalidArgument } from "../../../core/errors.js";
import type { NumberArray } from "./statistics.js";

/** A reply within a sample: the tokens up to `end` (and from the end of the turn before), and the reward that followed them. */
export interface TurnSpan {
  readonly end: number;
  readonly reward: number;
}

/** Where each turn starts. */
export function turnStarts(turns: readonly TurnSpan[]): number[] {
  return turns.map((_, i) => turns[i - 1]?.end ?? 0);
}

/** A turn's value for each of its tokens. */
export function broadcastOverTurns(turns: readonly TurnSpan[], values: NumberArray): Float64Array {
  const starts = turnStarts(turns);
  const tokens = new Float64Array(turns.at(-1)?.end ?? 0);
  turns.forEach(({ end }, i) => tokens.fill(values[i], starts[i], end));
  return tokens;
}

/** Throws INVALID_ARGUMENT unless the turns divide a sample's tokens, one token or more for each. */
export function checkTurnSpans(turns: readonly TurnSpan[], tokens: number, sample: number): void {
  const isOrdered = turnStarts(turns).every((start, i) => turns[i].end > start);
  if (isOrdered && (turns.at(-1)?.end ?? 0) === tokens) return;
  throw invalidArgument(
    `The turns of sample ${sample} end at tokens [${turns.map(({ end }) => end).join(", ")}]; each must have a token, and ` +
      `the last must end with the ${tokens} tokens that the sample has.`,
  );
}
