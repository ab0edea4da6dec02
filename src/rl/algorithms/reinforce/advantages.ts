import { concatenate } from "../shared/arrays.js";
import { turnReturns } from "../shared/returns.js";
import { centerByStep, discountedReturns } from "../shared/discounted-returns.js";
import { whiten, type NumberArray } from "../shared/statistics.js";
import { checkTurnSpans, broadcastOverTurns, type TurnSpan } from "../shared/turn-spans.js";
import type { ReinforceConfig } from "./settings.js";

/** A sample as its advantages need it; arrays are [tokens], of tokens that the policy wrote. */
export interface ReinforceSample {
  /** Divergence from the reference at each token. */
  readonly kls: NumberArray;
  /** In order; the last one ends with the last token. */
  readonly turns: readonly TurnSpan[];
  /** Samples that started alike have the same; only a "group" baseline asks. */
  readonly group?: number;
}

type AdvantageConfig = Pick<ReinforceConfig, "baseline" | "returns" | "gamma" | "rewardSignal" | "klCoef">;

/**
 * Advantages of REINFORCE++ (Hu et al. 2025): a token's is the credit of its turn less klCoef times the divergence of its sample
 * from that token on, normalized over all tokens of the batch (deviation of the batch, n). With a "group" baseline a turn's credit
 * is first compared with those of the same turn of the group.
 * Gives [tokens] for each sample; throws INVALID_ARGUMENT for turns that do not divide a sample's tokens.
 */
export function reinforceAdvantages(
  samples: readonly ReinforceSample[],
  { baseline, klCoef, ...returnConfig }: AdvantageConfig,
): Float64Array[] {
  samples.forEach(({ turns, kls }, i) => checkTurnSpans(turns, kls.length, i));
  const rawReturns = samples.map(({ turns }) =>
    turnReturns(
      turns.map(({ reward }) => reward),
      returnConfig,
    ),
  );
  const returns = baseline === "none" ? rawReturns : subtractGroupMean(rawReturns, samples);
  const raw = samples.map(({ turns, kls }, i) => {
    const penalties = discountedReturns(kls, { gamma: 1 });
    return broadcastOverTurns(turns, returns[i]).map((value, t) => value - klCoef * penalties[t]);
  });
  const all = whiten(concatenate(raw), { unbiased: false });
  let start = 0;
  return raw.map(({ length }) => all.subarray(start, (start += length)));
}

function subtractGroupMean(returns: readonly Float64Array[], samples: readonly ReinforceSample[]): Float64Array[] {
  const centered: Float64Array[] = [];
  for (const group of new Set(samples.map((sample) => sample.group))) {
    const members = samples.flatMap((sample, i) => (sample.group === group ? [i] : []));
    centerByStep(members.map((i) => returns[i])).forEach((row, position) => (centered[members[position]] = row));
  }
  return centered;
}
