import { concatenate } from "../shared/arrays.js";
import { turnReturns } from "../shared/returns.js";
import { centerByStep, discountedReturns } from "../shared/discounted-returns.js";
import { whiten, type NumberArray } from "../shared/statistics.js";
import { checkTurnSpans, broadcastOverTurns, type TurnSpan } from "../shared/turn-spans.js";
import type { ReinforceConfig } from "./settings.js";

/** A sample; arrays are [tokens], of the policy's tokens. */
export interface ReinforceSample {
  /** KL to the reference at each token. */
  readonly kls: NumberArray;
  /** In order; the last turn ends with the last token. */
  readonly turns: readonly TurnSpan[];
  /** Equal for samples that started alike; used by the "group" baseline. */
  readonly group?: number;
}

type AdvantageConfig = Pick<ReinforceConfig, "baseline" | "returns" | "gamma" | "rewardSignal" | "klCoef">;

/**
 * Computes advantages of REINFORCE++ (Hu et al. 2025), [tokens] per sample: the return of the token's turn minus klCoef
 * times the KL of the sample from the token on, normalized over all tokens of the batch (deviation with n). With a
 * "group" baseline the group's mean return at the same step is subtracted first.
 * @throws INVALID_ARGUMENT for turns that do not partition a sample's tokens.
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
