import { concatenate } from "../shared/arrays.js";
import { centreByStep, discountedReturns } from "../shared/returns.js";
import { groupsOf } from "../shared/rewards.js";
import { whiten, type Numbers } from "../shared/statistics.js";
import { checkTurns, repeatOverTurns, type Turn } from "../shared/turns.js";
import type { ReinforceConfig } from "./config.js";

/** A sample as its advantages need it; arrays are [tokens], of tokens that the policy wrote. */
export interface ReinforceSample {
  /** Divergence from the reference at each token. */
  readonly kls: Numbers;
  /** In order; the last one ends with the last token. */
  readonly turns: readonly Turn[];
}

type AdvantageConfig = Pick<ReinforceConfig, "numGenerations" | "baseline" | "gamma" | "klCoef">;

/**
 * Advantages of REINFORCE++ (Hu et al. 2025): a token's is the return of its turn less klCoef times the divergence of its sample
 * from that token on, normalised over all tokens of the batch (deviation of the batch, n). With a "group" baseline a turn's return
 * is first compared with those of the same turn of the group, numGenerations consecutive samples.
 * Gives [tokens] for each sample; throws INVALID_ARGUMENT for turns that do not divide a sample's tokens.
 */
export function reinforceAdvantages(
  samples: readonly ReinforceSample[],
  { numGenerations, baseline, gamma, klCoef }: AdvantageConfig,
): Float64Array[] {
  samples.forEach(({ turns, kls }, i) => checkTurns(turns, kls.length, i));
  const returns = samples.map(({ turns }) =>
    discountedReturns(
      turns.map(({ reward }) => reward),
      { gamma },
    ),
  );
  const credited = baseline === "none" ? returns : groupsOf(returns, numGenerations).flatMap(centreByStep);
  const raw = samples.map(({ turns, kls }, i) => {
    const penalties = discountedReturns(kls, { gamma: 1 });
    return repeatOverTurns(turns, credited[i]).map((credit, t) => credit - klCoef * penalties[t]);
  });
  const all = whiten(concatenate(raw), { unbiased: false });
  let start = 0;
  return raw.map(({ length }) => all.subarray(start, (start += length)));
}
