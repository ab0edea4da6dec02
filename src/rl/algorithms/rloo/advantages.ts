import { concatenate, sum } from "../shared/arrays.js";
import { mapEachStep } from "../shared/discounted-returns.js";
import { turnReturns } from "../shared/returns.js";
import { mean, withoutNaN, nanMean, nanStd, STD_EPSILON, type NumberArray } from "../shared/statistics.js";
import type { AdvantageResult, ScoredTrajectory, ScoredTurn } from "../algorithm-definition.js";
import type { RlooConfig } from "./settings.js";

type AdvantageConfig = Pick<
  RlooConfig,
  "beta" | "normalizeAdvantages" | "rewardClipMin" | "rewardClipMax" | "returns" | "gamma" | "rewardSignal"
>;

/**
 * Computes advantages: the return of each turn minus the mean return of the other episodes of its
 * group at the same step (Ahmadian et al. 2024), repeated for its decisions. The rewards are
 * clipped, then reduced by beta times the KL to the reference.
 */
export function rlooAdvantages(trajectories: readonly ScoredTrajectory[], config: AdvantageConfig): AdvantageResult {
  const kls = trajectories.map(({ turns }) => turns.map(turnKl));
  const returns = trajectories.map(({ turns }, i) =>
    turnReturns(
      turns.map(({ turn }, t) => clipReward(turn.reward, config) - config.beta * kls[i][t]),
      config,
    ),
  );
  const groups = trajectories.map(({ group }) => group);
  const seats = trajectories.map(({ seat }) => seat);
  const advantages = scaleAdvantages(leaveOneOutAdvantages(returns, groups), seats, config);
  return {
    advantages: trajectories.map(({ turns }, i) =>
      turns.map(({ oldLogProbs }, t) => new Float64Array(oldLogProbs.length).fill(advantages[i][t])),
    ),
    metrics: config.beta === 0 ? {} : { kl: mean(kls.flat()) },
  };
}

/**
 * Returns log pi - log pi_ref summed over a turn's decisions; 0 where the reference was not scored.
 */
function turnKl({ oldLogProbs, refLogProbs }: ScoredTurn): number {
  return refLogProbs === undefined ? 0 : sum(oldLogProbs) - sum(refLogProbs);
}

/** Clips a reward to the configured bounds; NaN stays. */
function clipReward(
  reward: number,
  { rewardClipMin = -Infinity, rewardClipMax = Infinity }: Pick<RlooConfig, "rewardClipMin" | "rewardClipMax">,
): number {
  return Math.min(Math.max(reward, rewardClipMin), rewardClipMax);
}

/**
 * Subtracts from each return, [turns] per episode, the mean of the others of its group at the same
 * step; NaN without others.
 */
function leaveOneOutAdvantages(returns: readonly NumberArray[], groups: readonly number[]): Float64Array[] {
  const advantages: Float64Array[] = [];
  for (const group of new Set(groups)) {
    const members = groups.flatMap((other, i) => (other === group ? [i] : []));
    const values = mapEachStep(
      members.map((i) => returns[i]),
      leaveOneOut,
    );
    members.forEach((i, position) => (advantages[i] = values[position]));
  }
  return advantages;
}

/** Subtracts from each reward the mean of the others; NaN without others. */
function leaveOneOut(group: readonly number[]): number[] {
  const known = withoutNaN(group);
  const total = sum(known);
  return group.map((reward) => reward - (total - reward) / (known.length - 1));
}

/** Normalizes over the batch, in a game by seat, if configured, and replaces NaN by 0. */
function scaleAdvantages(
  advantages: readonly Float64Array[],
  seats: readonly (number | undefined)[],
  { normalizeAdvantages }: Pick<RlooConfig, "normalizeAdvantages">,
): Float64Array[] {
  const normalizers = new Map(
    [...new Set(seats)].map((seat) => {
      const all = concatenate(advantages.filter((_, i) => seats[i] === seat));
      return [seat, normalizeAdvantages ? [nanMean(all), nanStd(all) + STD_EPSILON] : [0, 1]] as const;
    }),
  );
  return advantages.map((row, i) => {
    const [center, scale] = normalizers.get(seats[i])!;
    return row.map((advantage) => (Number.isNaN(advantage) ? 0 : (advantage - center) / scale));
  });
}
