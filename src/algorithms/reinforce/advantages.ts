import { concatenate } from "../shared/arrays.js";
import { creditReturns } from "../shared/credit.js";
import { centreByStep, discountedReturns } from "../shared/returns.js";
import { whiten, type Numbers } from "../shared/statistics.js";
import { checkTurns, repeatOverTurns, type Turn } from "../shared/turns.js";
import type { ReinforceConfig } from "./config.js";

/** A sample as its advantages need it; arrays are [tokens], of tokens that the policy wrote. */
export interface ReinforceSample {
  /** Divergence from the reference at each token. */
  readonly kls: Numbers;
  /** In order; the last one ends with the last token. */
  readonly turns: readonly Turn[];
  /** Samples that started alike have the same; only a "group" baseline asks. */
  readonly group?: number;
}

type AdvantageConfig = Pick<ReinforceConfig, "baseline" | "returns" | "gamma" | "rewardSignal" | "klCoef">;

/**
 * Advantages of REINFORCE++ (Hu et al. 2025): a token's is the credit of its turn less klCoef times the divergence of its sample
 * from that token on, normalised over all tokens of the batch (deviation of the batch, n). With a "group" baseline a turn's credit
 * is first compared with those of the same turn of the group.
 * Gives [tokens] for each sample; throws INVALID_ARGUMENT for turns that do not divide a sample's tokens.
 */
export function reinforceAdvantages(
  samples: readonly ReinforceSample[],
  { baseline, klCoef, ...credit }: AdvantageConfig,
): Float64Array[] {
  samples.forEach(({ turns, kls }, i) => checkTurns(turns, kls.length, i));
  const own = samples.map(({ turns }) =>
    creditReturns(
      turns.map(({ reward }) => reward),
      credit,
    ),
  );
  const credits = baseline === "none" ? own : centreInGroups(own, samples);
  const raw = samples.map(({ turns, kls }, i) => {
    const penalties = discountedReturns(kls, { gamma: 1 });
    return repeatOverTurns(turns, credits[i]).map((value, t) => value - klCoef * penalties[t]);
  });
  const all = whiten(concatenate(raw), { unbiased: false });
  let start = 0;
  return raw.map(({ length }) => all.subarray(start, (start += length)));
}

function centreInGroups(credits: readonly Float64Array[], samples: readonly ReinforceSample[]): Float64Array[] {
  const centred: Float64Array[] = [];
  for (const group of new Set(samples.map((sample) => sample.group))) {
    const members = samples.flatMap((sample, i) => (sample.group === group ? [i] : []));
    centreByStep(members.map((i) => credits[i])).forEach((row, place) => (centred[members[place]] = row));
  }
  return centred;
}
