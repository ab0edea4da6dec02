import { invalidArgument } from "../../../core/errors.js";
import type { NumberArray } from "./statistics.js";

/**
 * A turn within a sample: the tokens from the end of the previous turn to `end`, and their reward.
 */
export interface TurnSpan {
  readonly end: number;
  readonly reward: number;
}

export function turnStarts(turns: readonly TurnSpan[]): number[] {
  return turns.map((_, i) => turns[i - 1]?.end ?? 0);
}

/** Repeats each turn's value for its tokens. */
export function broadcastOverTurns(turns: readonly TurnSpan[], values: NumberArray): Float64Array {
  const starts = turnStarts(turns);
  const tokens = new Float64Array(turns.at(-1)?.end ?? 0);
  turns.forEach(({ end }, i) => tokens.fill(values[i], starts[i], end));
  return tokens;
}

/**
 * @throws INVALID_ARGUMENT unless the turns partition a sample's tokens, each with at least one
 * token.
 */
export function checkTurnSpans(turns: readonly TurnSpan[], tokens: number, sample: number): void {
  const isOrdered = turnStarts(turns).every((start, i) => turns[i].end > start);
  if (isOrdered && (turns.at(-1)?.end ?? 0) === tokens) return;
  throw invalidArgument(
    `The turns of sample ${sample} end at tokens [${turns.map(({ end }) => end).join(", ")}]; each must have a token, and ` +
      `the last must end with the ${tokens} tokens that the sample has.`,
  );
}
