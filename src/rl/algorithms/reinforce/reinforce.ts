import type { AdvantageResult, ScoredTrajectory, ScoredTurn } from "../algorithm-definition.js";
import { defineAlgorithm } from "../define-algorithm.js";
import { concatenate, splitByLength, sum } from "../shared/arrays.js";
import { groupRollout } from "../shared/group-rollout.js";
import { perTokenKl } from "../shared/kl.js";
import { mean, type NumberArray } from "../shared/statistics.js";
import { reinforceAdvantages } from "./advantages.js";
import { computeSeatBaselines, INITIAL_SEAT_BASELINE, type SeatBaselineState } from "./seat-baseline.js";
import { reinforceLoss } from "./loss.js";
import { reinforceSettings, resolveReinforceConfig, type ReinforceConfig } from "./settings.js";

/** REINFORCE++ (Hu et al. 2025) on the turns of complete episodes. */
export const reinforce = defineAlgorithm({
  name: "reinforce",
  title: "REINFORCE++",
  settings: reinforceSettings,
  resolve: resolveReinforceConfig,
  klSetting: "klCoef",
  rollout: (config) =>
    groupRollout(config, { groupSize: config.numGenerations, isGroupRelative: config.baseline === "group" }),
  state: { initial: () => INITIAL_SEAT_BASELINE },
  advantages: computeAdvantages,
  loss: reinforceLoss,
  metrics: ({ means }) => ({
    entropy: means.entropy!,
    "policy/approxkl_avg": means.approxKl!,
    "policy/clipfrac_avg": means.clipFraction!,
    "val/ratio": means.ratio!,
  }),
});

function computeAdvantages(
  trajectories: readonly ScoredTrajectory[],
  config: ReinforceConfig,
  seatBaseline: SeatBaselineState,
): AdvantageResult<SeatBaselineState> {
  const { baselines, state } = computeSeatBaselines(
    trajectories.map(({ seat, turns }) => ({ seat, rewards: turns.map(({ turn }) => turn.reward) })),
    seatBaseline,
    config.biasCorrection,
  );
  const kls = trajectories.map(({ turns }) => turns.map((turn) => tokenKls(turn, config)));
  const samples = trajectories.map(({ turns, group, seat }, i) => {
    let end = 0;
    return {
      group,
      seat,
      seatBaseline: baselines[i],
      kls: concatenate(kls[i]),
      turns: turns.map(({ turn, oldLogProbs }) => ({ end: (end += oldLogProbs.length), reward: turn.reward })),
    };
  });
  const advantages = reinforceAdvantages(samples, config);
  return {
    advantages: trajectories.map(({ turns }, i) =>
      splitByLength(
        advantages[i],
        turns.map(({ oldLogProbs }) => oldLogProbs.length),
      ),
    ),
    ...(config.baseline === "seat" ? { state } : {}),
    metrics: config.klCoef === 0 ? {} : { "objective/kl": mean(kls.flatMap((turns) => turns.map(sum))) },
  };
}

/** Returns the KL to the reference at each decision; 0 where the reference was not scored. */
function tokenKls({ oldLogProbs, refLogProbs }: ScoredTurn, { klPenalty }: ReinforceConfig): NumberArray {
  return refLogProbs === undefined
    ? new Float64Array(oldLogProbs.length)
    : perTokenKl(klPenalty, oldLogProbs, refLogProbs);
}
