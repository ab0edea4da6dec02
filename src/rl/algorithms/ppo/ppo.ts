import { isValueHeadParameter } from "../../../engine/nn/index.js";
import type { AdvantageResult, ScoredTrajectory } from "../algorithm-definition.js";
import { defineAlgorithm } from "../define-algorithm.js";
import { mean } from "../../../core/numbers.js";
import { sequenceKeys } from "../../../models/graphs/index.js";
import { concatenate, splitByLength } from "../shared/arrays.js";
import { discountedReturns } from "../shared/discounted-returns.js";
import { perTokenKl } from "../shared/kl.js";
import { nextKlCoef } from "../shared/kl-controller.js";
import { ppoAdvantages } from "./advantages.js";
import { ppoLoss } from "./loss.js";
import { bonusAdvantages, ExplorationBonus, type ExplorationState } from "./exploration-bonus.js";
import { exceedsRatioThreshold, exceedsTargetKl, ppoBatchMetrics, ppoMetrics } from "./metrics.js";
import { RewardScaler, INITIAL_REWARD_SCALE, type RewardScaleState } from "./reward-scaler.js";
import { ppoSettings, resolvePpoConfig, type PpoConfig } from "./settings.js";
import type { StepStates } from "./state-baseline.js";

/** State of PPO between updates. */
interface PpoState {
  /** Coefficient of the KL penalty. */
  readonly klCoef: number;
  readonly rewardScale: RewardScaleState;
  readonly exploration?: ExplorationState;
  readonly updates: number;
}

/**
 * Proximal policy optimization (Schulman et al. 2017) with a value head and a KL penalty to the
 * reference policy in the reward (Ziegler et al. 2019), as in TRL 0.7's PPOTrainer.
 */
export const ppo = defineAlgorithm({
  name: "ppo",
  title: "PPO",
  settings: ppoSettings,
  resolve: resolvePpoConfig,
  critic: true,
  klSetting: "initKlCoef",
  rollout: ({ batchSize }) => ({ kind: "turns", turns: batchSize }),
  state: {
    initial: ({ initKlCoef }): PpoState => ({
      klCoef: initKlCoef,
      rewardScale: INITIAL_REWARD_SCALE,
      updates: 0,
    }),
    update: ({ klCoef, updates, ...state }, metrics, turns, config) => ({
      klCoef: klCoef > 0 ? nextKlCoef(klCoef, metrics["objective/kl"], turns, config) : klCoef,
      ...state,
      updates: updates + 1,
    }),
  },
  advantages: computeAdvantages,
  loss: (nodes, config) => ppoLoss(nodes, config),
  metrics: ({ means }, turns) =>
    ppoMetrics(means, {
      advantages: concatenate(turns.map(({ advantages }) => advantages)),
      returns: concatenate(turns.map(({ returns }) => returns!)),
      oldValues: concatenate(turns.map(({ oldValues }) => oldValues!)),
    }),
  stepping: {
    epochs: ({ numPpoEpochs }) => numPpoEpochs,
    shouldStep: (statistics, config) => !exceedsRatioThreshold(statistics, config),
    shouldStop: exceedsTargetKl,
    trainableFilter: ({ valueWarmup }, { updates }) => (updates < valueWarmup ? isValueHeadParameter : undefined),
  },
});

/** Scales rewards, subtracts KL penalties and runs GAE. */
function computeAdvantages(
  trajectories: readonly ScoredTrajectory[],
  config: PpoConfig,
  state: PpoState,
): AdvantageResult<PpoState> {
  const { klCoef } = state;
  const rewards = new RewardScaler(config, state.rewardScale);
  rewards.observe(
    trajectories.map(({ turns, bootstrapValue }) => ({
      rewards: turns.map(({ turn }) => turn.reward),
      bootstrap: bootstrapValue,
    })),
  );
  const exploration = new ExplorationBonus(config.explorationBonus, state.exploration);
  const bonuses = exploration.add(trajectories);
  const explorationAdvantages = bonusAdvantages(bonuses, config);
  const kls = trajectories.map(({ turns }) =>
    turns.map(({ oldLogProbs, refLogProbs = oldLogProbs }) => perTokenKl(config.klPenalty, oldLogProbs, refLogProbs)),
  );
  const states = config.stateBaseline ? numberStates(trajectories) : [];
  const samples = trajectories.map(({ turns, bootstrapValue, seat }, i) => {
    let end = 0;
    return {
      seat,
      kls: concatenate(kls[i]),
      values: concatenate(turns.map(({ oldValues }) => oldValues!)),
      turns: turns.map(({ turn, oldLogProbs }, t) => ({
        end: (end += oldLogProbs.length),
        reward: rewards.apply(turn.reward),
        extraAdvantage: explorationAdvantages[i][t],
      })),
      bootstrap: bootstrapValue,
      states: states[i],
    };
  });
  const estimates = ppoAdvantages(samples, { ...config, klCoef });
  const allBonuses = trajectories.flatMap(({ turns }, i) => turns.map((_, t) => bonuses[i][t] ?? 0));
  const hasSignal = allBonuses.some((bonus) => bonus > 0) || returnsDiffer(trajectories, config);
  // Where all returns are equal, advantages are errors of the value head, which whitening would
  // enlarge to the size of any others; a policy that follows them soon stops exploring.
  const isNoise = !hasSignal && config.whitenAdvantages && config.initKlCoef === 0;
  const results = isNoise
    ? estimates.map((estimate) => ({ ...estimate, advantages: new Float64Array(estimate.advantages.length) }))
    : estimates;
  const lengths = trajectories.map(({ turns }) => turns.map(({ oldLogProbs }) => oldLogProbs.length));
  const turnStatistics = trajectories.flatMap(({ turns }, i) => {
    const penalties = splitByLength(results[i].nonScoreRewards, lengths[i]);
    return turns.map(({ turn, oldLogProbs }, t) => ({
      kls: kls[i][t],
      oldLogProbs,
      nonScoreRewards: penalties[t],
      score: turn.reward,
    }));
  });
  return {
    advantages: results.map(({ advantages }, i) => splitByLength(advantages, lengths[i])),
    returns: results.map(({ returns }, i) => splitByLength(returns, lengths[i])),
    state: { ...state, rewardScale: rewards.getState(), exploration: exploration.getState() },
    metrics: {
      ...ppoBatchMetrics(turnStatistics, klCoef),
      frac_reward_zero_std: hasSignal ? 0 : 1,
      ...(config.rewardScaling ? { "objective/reward_scale": rewards.scale } : {}),
      ...(config.explorationBonus > 0 ? { "objective/exploration_bonus": mean(allBonuses) } : {}),
    },
  };
}

/** Whether the rewards tell actions apart. */
function returnsDiffer(trajectories: readonly ScoredTrajectory[], { gamma }: Pick<PpoConfig, "gamma">): boolean {
  const returns = trajectories.flatMap(({ turns }) =>
    Array.from(
      discountedReturns(
        turns.map(({ turn }) => turn.reward),
        { gamma },
      ),
    ),
  );
  return returns.some((value) => value !== returns[0]);
}

/**
 * Numbers the prompts of turns, and those after partial trajectories; equal prompts have one
 * number.
 */
function numberStates(trajectories: readonly ScoredTrajectory[]): StepStates[] {
  const numbers = new Map<string, number>();
  const sequenceKey = sequenceKeys();
  const numberOf = (prompt: readonly number[]): number => {
    const key = sequenceKey(prompt);
    const number = numbers.get(key) ?? numbers.size;
    numbers.set(key, number);
    return number;
  };
  return trajectories.map(({ turns, bootstrapPrompt }) => ({
    states: turns.map(({ turn }) => numberOf(turn.prompt)),
    next: bootstrapPrompt && numberOf(bootstrapPrompt),
  }));
}
