import {
  cast,
  dim,
  input,
  less,
  mul,
  neg,
  reduceSum,
  scatterAddRows,
  square,
  sub,
  type Node,
} from "../../../engine/graph/index.js";
import { int32, type Tensor } from "../../../engine/tensor/index.js";
import type { LossResult } from "../../../models/graphs/index.js";
import { invalidArgument } from "../../../core/errors.js";
import { mean } from "../../../core/numbers.js";
import { choice, defineSettings, integer, number, resolveSettings, type Settings } from "../../../core/settings.js";
import type { AdvantageResult, MinibatchTotals, ScoredTrajectory, TurnSample } from "../algorithm-definition.js";
import { defineAlgorithm } from "../define-algorithm.js";
import { sum } from "../shared/arrays.js";
import { groupRollout } from "../shared/group-rollout.js";
import { logSigmoid } from "../shared/clipped-surrogate.js";
import type { LossNodes } from "../shared/loss-nodes.js";
import { floatVector, repeatEach } from "../shared/sequence-nodes.js";
import {
  LR_SCHEDULE,
  MAX_COMPLETION_LENGTH,
  MAX_GRAD_NORM,
  optimizerSettings,
  resolveBatchSize,
  updateSettings,
} from "../shared/update-settings.js";

const TRL = "TRL 1.16";
const { batchSize, minTurns, miniBatchSize, filterGroups, maxResamples } = updateSettings;

/** Settings of online DPO (Guo et al. 2024) and where each default comes from. */
const onlineDpoSettings = defineSettings({
  numGenerations: integer({
    default: 2,
    min: 2,
    description: "Number of generations per group, of which the best and the worst are a pair.",
    source: TRL,
  }),
  batchSize,
  minTurns,
  miniBatchSize,
  filterGroups,
  maxResamples,
  numIterations: integer({ default: 1, min: 1, description: "Number of optimization epochs per update.", source: TRL }),
  learningRate: number({ common: true, default: 5e-7, min: 0, description: "Learning rate of AdamW.", source: TRL }),
  lrSchedulerType: LR_SCHEDULE,
  ...optimizerSettings,
  maxGradNorm: MAX_GRAD_NORM,
  beta: number({
    default: 0.1,
    above: 0,
    description: "Strength of the KL constraint to the reference policy; for ipo the regularization τ.",
    source: TRL,
  }),
  lossType: choice({
    default: "sigmoid",
    choices: ["sigmoid", "ipo"],
    description: "Loss of a pair.",
    source: TRL,
  }),
  missingEosPenalty: number({
    above: 0,
    description: "Amount subtracted from the return of an episode with a truncated completion.",
    source: TRL,
  }),
  maxCompletionLength: MAX_COMPLETION_LENGTH,
});

/** Resolved settings of online DPO. */
export type OnlineDpoConfig = Settings<typeof onlineDpoSettings>;
/** Settings of online DPO; defaults fill in the rest. */
export type OnlineDpoOptions = Partial<OnlineDpoConfig>;

/** Resolves online DPO's settings. @throws INVALID_ARGUMENT for invalid settings. */
export function resolveOnlineDpoConfig(options: OnlineDpoOptions = {}): OnlineDpoConfig {
  const config = resolveSettings("Online DPO", onlineDpoSettings, options);
  const { numGenerations, miniBatchSize: size } = config;
  if (size !== undefined && size < 2)
    throw invalidArgument(`Online DPO's miniBatchSize is ${size}, and a pair has at least 2 turns. Raise it.`);
  return { ...config, batchSize: resolveBatchSize("Online DPO", options.batchSize, numGenerations, config.batchSize) };
}

/**
 * Direct preference optimization on pairs of rollouts: of each group of episodes that start alike,
 * the one with the highest return is chosen over the one with the lowest.
 */
export const onlineDpo = defineAlgorithm({
  name: "online-dpo",
  title: "Online DPO",
  settings: onlineDpoSettings,
  resolve: resolveOnlineDpoConfig,
  klSetting: "beta",
  hasTurnAdvantages: true,
  entropy: () => "none",
  rollout: (config) => groupRollout(config, { groupSize: config.numGenerations, isGroupRelative: true }),
  advantages: pairAdvantages,
  loss: pairLoss,
  inputs: pairInputs,
  metrics: ({ means }) => ({
    "rewards/chosen": means.chosenReward!,
    "rewards/rejected": means.rejectedReward!,
    "rewards/margins": means.chosenReward! - means.rejectedReward!,
    "rewards/accuracies": means.accuracy!,
    "logps/chosen": means.chosenLogProb!,
    "logps/rejected": means.rejectedLogProb!,
  }),
});

/**
 * Pairs the best and the worst episode of each group, with advantages of 1 and -1. Without
 * `filterGroups`, of equal ones the first is chosen over the last, as in TRL.
 */
export function pairAdvantages(
  trajectories: readonly ScoredTrajectory[],
  { beta, filterGroups: skipsTies, missingEosPenalty = 0 }: OnlineDpoConfig,
): AdvantageResult {
  const returns = trajectories.map(({ turns }) => {
    const isTruncated = turns.some(({ turn }) => turn.finishReason === "length");
    return sum(turns.map(({ turn }) => turn.reward)) - (isTruncated ? missingEosPenalty : 0);
  });
  const signs = new Map<number, 1 | -1>();
  const margins: number[] = [];
  for (const members of membersByGroup(trajectories)) {
    // A completion that no reward function scored is in no pair.
    const known = members.filter((i) => !Number.isNaN(returns[i]));
    const best = known.reduce((found, i) => (returns[i] > returns[found] ? i : found), known[0]);
    const worst = known.reduce((found, i) => (i !== best && returns[i] <= returns[found] ? i : found), best);
    const isPair = known.length > 1 && best !== worst && (returns[best] > returns[worst] || !skipsTies);
    if (!isPair) continue;
    signs.set(best, 1).set(worst, -1);
    margins.push(returns[best] - returns[worst]);
  }
  return {
    advantages: trajectories.map(({ turns }, i) =>
      turns.map(({ oldLogProbs }) => new Float64Array(oldLogProbs.length).fill(signs.get(i) ?? 0)),
    ),
    units: trajectories.map(({ group }, i) => (signs.has(i) ? group : undefined)),
    metrics: {
      ...(margins.length === 0 ? {} : { "objective/scores_margin": mean(margins) }),
      ...klMetrics(trajectories, beta),
    },
  };
}

function membersByGroup(trajectories: readonly ScoredTrajectory[]): number[][] {
  const groups = new Map<number, number[]>();
  trajectories.forEach(({ group }, i) => groups.set(group, [...(groups.get(group) ?? []), i]));
  return [...groups.values()];
}

/** Means over episodes under TRL's names; none where the reference was not scored. */
function klMetrics(trajectories: readonly ScoredTrajectory[], beta: number): Record<string, number> {
  const kls = trajectories.map(({ turns }) =>
    sum(turns.map(({ oldLogProbs, refLogProbs }) => (refLogProbs ? sum(oldLogProbs) - sum(refLogProbs) : NaN))),
  );
  if (kls.length === 0 || kls.some(Number.isNaN)) return {};
  const logProbs = trajectories.map(({ turns }) => sum(turns.map(({ oldLogProbs }) => sum(oldLogProbs))));
  return {
    "objective/kl": mean(kls),
    "objective/entropy": -mean(logProbs),
    "objective/non_score_reward": -beta * mean(kls),
  };
}

const pairs = dim("pairs");

/**
 * Builds the loss as TRL's OnlineDPOTrainer does: a sum over pairs weighted by 1 / (pairs of the
 * optimizer step), of sums over the decisions of each episode. Statistics are means over pairs.
 */
function pairLoss(
  { selected, logProbs, perToken }: Pick<LossNodes, "selected" | "logProbs" | "perToken">,
  { beta, lossType }: Pick<OnlineDpoConfig, "beta" | "lossType">,
): LossResult {
  const pairIndex = input("pairIndex", "int32", [selected]);
  const isChosen = perToken("isChosen");
  const weights = input("pairWeights", "float32", [pairs]);
  const perPair = (x: Node, mask: Node) => scatterAddRows(mul(x, mask), pairIndex, pairs);
  const average = (x: Node) => reduceSum(mul(x, weights));
  const isRejected = sub(1, isChosen);
  const ratios = sub(logProbs, perToken("refLogProbs"));
  const [chosen, rejected] = [perPair(ratios, isChosen), perPair(ratios, isRejected)];
  const logits = sub(chosen, rejected);
  const losses = lossType === "ipo" ? square(sub(logits, 1 / (2 * beta))) : neg(logSigmoid(mul(logits, beta)));
  return {
    loss: average(losses),
    statistics: {
      chosenReward: mul(average(chosen), beta),
      rejectedReward: mul(average(rejected), beta),
      accuracy: average(cast(less(rejected, chosen), "float32")),
      chosenLogProb: average(perPair(logProbs, isChosen)),
      rejectedLogProb: average(perPair(logProbs, isRejected)),
    },
  };
}

/** Returns the inputs of `pairLoss` for the turns of whole pairs. */
export function pairInputs(
  turns: readonly TurnSample[],
  { units = 0 }: Pick<MinibatchTotals, "units">,
): Record<string, Tensor> {
  const present = [...new Set(turns.map(({ unit }) => unit!))];
  const lengths = turns.map(({ oldLogProbs }) => oldLogProbs.length);
  return {
    pairIndex: int32(
      repeatEach(
        turns.map(({ unit }) => present.indexOf(unit!)),
        lengths,
      ),
    ),
    isChosen: floatVector(
      repeatEach(
        turns.map(({ advantages }) => (advantages[0] > 0 ? 1 : 0)),
        lengths,
      ),
    ),
    pairWeights: floatVector(present.map(() => 1 / Math.max(units, present.length))),
  };
}
