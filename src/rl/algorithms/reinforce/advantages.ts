import { turnReturns } from "../shared/returns.js";
import { centerByStep, discountedReturns } from "../shared/discounted-returns.js";
import type { NumberArray } from "../shared/statistics.js";
import { checkTurnSpans, broadcastOverTurns, type TurnSpan } from "../shared/turn-spans.js";
import { whitenBySeat } from "../shared/whiten-by-seat.js";
import type { ReinforceConfig } from "./settings.js";

/** A sample; arrays are [tokens], of the policy's tokens. */
export interface ReinforceSample {
  /** KL to the reference at each token. */
  readonly kls: NumberArray;
  /** In order; the last turn ends with the last token. */
  readonly turns: readonly TurnSpan[];
  /** Equal for samples that started alike; used by the "group" baseline. */
  readonly group?: number;
  /** The seat in a game; samples are normalized by seat. */
  readonly seat?: number | undefined;
  /** Mean return of the seat before the sample; used by the "seat" baseline. */
  readonly seatBaseline?: number;
}

type AdvantageConfig = Pick<ReinforceConfig, "baseline" | "returns" | "gamma" | "rewardSignal" | "klCoef">;

/**
 * Computes advantages of REINFORCE++ (Hu et al. 2025), [tokens] per sample: the return of the
 * token's turn minus klCoef times the KL of the sample from the token on, normalized over all
 * tokens of the batch, in a game of the seat (deviation with n). With a "group" baseline the
 * group's mean return at the same step is subtracted first, with "seat" the seat's mean.
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
  const returns = {
    none: () => rawReturns,
    group: () => subtractGroupMean(rawReturns, samples),
    seat: () => rawReturns.map((row, i) => row.map((value) => value - (samples[i].seatBaseline ?? 0))),
  }[baseline]();
  const raw = samples.map(({ turns, kls }, i) => {
    const penalties = discountedReturns(kls, { gamma: 1 });
    return broadcastOverTurns(turns, returns[i]).map((value, t) => value - klCoef * penalties[t]);
  });
  return whitenBySeat(
    raw,
    samples.map(({ seat }) => seat),
    { unbiased: false },
  );
}

function subtractGroupMean(returns: readonly Float64Array[], samples: readonly ReinforceSample[]): Float64Array[] {
  const centered: Float64Array[] = [];
  for (const group of new Set(samples.map((sample) => sample.group))) {
    const members = samples.flatMap((sample, i) => (sample.group === group ? [i] : []));
    centerByStep(members.map((i) => returns[i])).forEach((row, position) => (centered[members[position]] = row));
  }
  return centered;
}
