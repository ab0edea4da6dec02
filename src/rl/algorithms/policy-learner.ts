import { LlamaGymError } from "../../core/errors.js";
import type { CausalLM } from "../../models/causal-lm.js";
import type { Trajectory } from "../rollout/trajectory.js";
import type { RandomState } from "../../core/random/random-stream.js";
import type { RolloutSpec, Learner, LearnerState, Metrics, LearnerContext, UpdateOptions } from "./learner.js";
import { meanByName, concatenate, sum } from "./shared/arrays.js";
import { scheduleFactor } from "../../engine/optim/schedule.js";
import { mean, nanMean, nanStd, type NumberArray } from "./shared/statistics.js";
import type {
  AlgorithmDefinition,
  LossStatistics,
  ScoredTrajectory,
  ScoredTurn,
  MinibatchTotals,
  TurnSample,
} from "./algorithm-definition.js";
import { shuffleIntoMinibatches } from "./update/minibatches.js";
import { LogProbScorer, type TurnScores } from "./update/log-prob-scorer.js";
import { decisionIndices } from "./update/turn-batch.js";
import { PolicyUpdater, type UpdateResult } from "./update/policy-updater.js";

/** Advantages up to this are 0: what rounding leaves of equal rewards. */
const ADVANTAGE_EPSILON = 1e-6;

/**
 * An algorithm without a critic at work: GRPO, RLOO, REINFORCE++. It wants groups of whole episodes, credits their turns, leaves out
 * what teaches nothing, and takes optimiser steps on the rest. A turn is a sequence: its tokens are always in one pass.
 */
export class PolicyLearner implements Learner {
  private constructor(
    private readonly algorithm: AlgorithmDefinition,
    private readonly context: LearnerContext,
    private readonly updater: PolicyUpdater,
    private readonly scorer: LogProbScorer | undefined,
  ) {}

  /** Throws INVALID_STATE for a model that cannot be trained so. */
  static async create(
    model: CausalLM,
    algorithm: AlgorithmDefinition,
    context: LearnerContext,
  ): Promise<PolicyLearner> {
    const { config, loss, entropy, klSetting, needsEntropy } = algorithm;
    checkModel(model, algorithm);
    const { learningRate, maxGradNorm } = config;
    const { maxTokens } = context;
    const updater = new PolicyUpdater(model, {
      loss,
      entropy,
      optimizer: { learningRate, maxGradNorm },
      maxTokens,
    });
    const needsScorer = klSetting !== undefined || needsEntropy || context.isTruncatedSampling;
    const scorer = needsScorer ? await LogProbScorer.create(model, { maxTokens, entropies: needsEntropy }) : undefined;
    return new PolicyLearner(algorithm, context, updater, scorer);
  }

  get rolloutSpec(): RolloutSpec {
    const { sharesStart, isGroupRelative, config } = this.algorithm;
    const groupSize = sharesStart ? config.numGenerations : 1;
    const groups = config.batchSize / groupSize;
    const maxResamples = config.filterGroups && isGroupRelative ? config.maxRefills : 0;
    return {
      kind: "groups",
      groups,
      groupSize,
      minTurns: config.minTurns,
      maxResamples,
      hasSignal: (group) => this.hasSignal(group),
    };
  }

  async update(trajectories: readonly Trajectory[], { progress = 0 }: UpdateOptions = {}): Promise<Metrics> {
    const { algorithm } = this;
    const { config } = algorithm;
    const scored = await this.score(trajectories);
    const { advantages, metrics } = algorithm.advantages(scored);
    const hasSignal = this.informativeGroups(scored, advantages);
    const filtersGroups = config.filterGroups && !algorithm.hasRegularizer;
    const trainedIndices = scored.flatMap((trajectory, i) =>
      hasReward(trajectory) && (hasSignal[i] || !filtersGroups) ? [i] : [],
    );
    const turns = this.toTurnSamples(
      trainedIndices.map((i) => scored[i]),
      trainedIndices.map((i) => advantages[i]),
    );
    const outcomes = await this.train(
      trainedIndices.map((i) => trajectories[i]),
      turns,
      {
        learningRate: scheduleFactor(config.lrSchedulerType, progress),
        entropy: scheduleFactor(config.entropySchedulerType ?? "constant", progress),
      },
    );
    return {
      ...metrics,
      ...this.rewardMetrics(scored, hasSignal),
      ...this.lossMetrics(outcomes),
    };
  }

  async getState(): Promise<LearnerState> {
    return { optimizer: await this.updater.state(), state: this.context.random.getState() };
  }

  async setState({ optimizer, state }: LearnerState): Promise<void> {
    await this.updater.restore(optimizer);
    this.context.random.setState(state as RandomState);
  }

  async release(): Promise<void> {
    await this.updater.release();
    await this.scorer?.release();
  }

  /** Whether the episodes of a group earned different things. */
  private hasSignal(group: readonly Trajectory[]): boolean {
    const scored = this.toScoredTrajectories(group, {});
    const { advantages } = this.algorithm.advantages(scored);
    return this.informativeGroups(scored, advantages).includes(true);
  }

  /** Episodes with the log-probabilities of before the update, of the policy and of the reference. */
  private async score(trajectories: readonly Trajectory[]): Promise<ScoredTrajectory[]> {
    const { algorithm, context, scorer } = this;
    const { temperature, isTruncatedSampling } = context;
    const turns = trajectories.flatMap((trajectory) => trajectory.turns);
    const policyScores =
      isTruncatedSampling || algorithm.needsEntropy ? await scorer!.score(turns, { temperature }) : undefined;
    const referenceScores =
      algorithm.klSetting === undefined ? undefined : await scorer!.score(turns, { temperature, adapter: false });
    return this.toScoredTrajectories(trajectories, { policyScores, referenceScores });
  }

  private toScoredTrajectories(
    trajectories: readonly Trajectory[],
    { policyScores, referenceScores }: { readonly policyScores?: TurnScores; readonly referenceScores?: TurnScores },
  ): ScoredTrajectory[] {
    let turnIndex = 0;
    return trajectories.map(({ turns, end, rewardsPerFunction, group }, i) => ({
      end,
      scores: rewardsPerFunction,
      group: this.groupIndex(group, i),
      turns: turns.map((turn): ScoredTurn => {
        const index = turnIndex++;
        // What was drawn from less than the whole distribution is scored as the policy that is trained.
        const oldLogProbs =
          this.context.isTruncatedSampling && policyScores !== undefined
            ? policyScores.logProbs[index]
            : Float64Array.from(decisionIndices(turn), (token) => turn.logProbs[token]);
        return {
          turn,
          oldLogProbs,
          refLogProbs: referenceScores?.logProbs[index],
          entropies: policyScores?.entropies?.[index],
        };
      }),
    }));
  }

  /** Episodes of a loop of one's own have no group: those that ended one after the other make one. */
  private groupIndex(group: number | undefined, position: number): number {
    const { sharesStart, config } = this.algorithm;
    return sharesStart ? (group ?? Math.floor(position / config.numGenerations)) : 0;
  }

  /** For each episode, whether anything is to be learnt from its group. */
  private informativeGroups(
    scored: readonly ScoredTrajectory[],
    advantages: readonly (readonly NumberArray[])[],
  ): boolean[] {
    const groups = new Set<number>();
    scored.forEach(({ group }, i) => {
      if (advantages[i].some((turn) => Array.from(turn).some((advantage) => Math.abs(advantage) > ADVANTAGE_EPSILON)))
        groups.add(group);
    });
    return scored.map(({ group }) => groups.has(group));
  }

  /** The turns as they are trained, in order; undefined for those that are masked. */
  private toTurnSamples(
    scored: readonly ScoredTrajectory[],
    advantages: readonly (readonly NumberArray[])[],
  ): (TurnSample | undefined)[] {
    const { maskTruncatedCompletions, maskTruncatedEpisodes } = this.algorithm.config;
    const turns = scored.flatMap(({ turns, end }, i) =>
      turns.map((scoredTurn, t): TurnSample | undefined => {
        const isMasked =
          (maskTruncatedCompletions && scoredTurn.turn.finishReason === "length") ||
          (maskTruncatedEpisodes && end === "truncated");
        return isMasked ? undefined : { ...scoredTurn, advantages: advantages[i][t], policyMask: undefined };
      }),
    );
    const masks = this.algorithm.policyMasks?.(turns.filter((turn) => turn !== undefined));
    if (masks === undefined) return turns;
    let maskIndex = 0;
    return turns.map((turn) => turn && { ...turn, policyMask: masks[maskIndex++] });
  }

  /** All optimiser steps of an update. */
  private async train(
    trajectories: readonly Trajectory[],
    turns: readonly (TurnSample | undefined)[],
    factors: ScheduleFactors,
  ): Promise<StepOutcome[]> {
    const { config } = this.algorithm;
    const outcomes: StepOutcome[] = [];
    for (let iteration = 0; iteration < config.numIterations; iteration++) {
      const minibatches = shuffleIntoMinibatches(trajectories, config.miniBatchSize ?? Infinity, this.context.random);
      const meanTokens = countTokens(turns.filter((turn) => turn !== undefined)) / minibatches.length;
      for (const turnIndices of minibatches) {
        const samples = turnIndices.flatMap((i) => turns[i] ?? []);
        if (samples.length === 0) continue;
        const totals: MinibatchTotals = {
          sequences: turnIndices.length,
          tokens: countTokens(samples),
          meanTokens,
          entropyTokens: countActiveTokens(samples),
          entropyFactor: factors.entropy,
        };
        outcomes.push(await this.step(samples, totals, factors.learningRate));
      }
    }
    return outcomes;
  }

  private async step(
    turns: readonly TurnSample[],
    totals: MinibatchTotals,
    learningRateFactor: number,
  ): Promise<StepOutcome> {
    const { temperature, random } = this.context;
    const result = await this.updater.step(
      turns.map(({ turn }) => turn),
      (turnIndices) =>
        this.algorithm.inputs(
          turnIndices.map((i) => turns[i]),
          totals,
        ),
      { temperature, random, learningRateFactor },
    );
    return { turns, result };
  }

  /** Rewards of episodes under TRL's names. */
  private rewardMetrics(scored: readonly ScoredTrajectory[], hasSignal: readonly boolean[]): Metrics {
    const rewards = scored.map(({ turns }) => sum(turns.map(({ turn }) => turn.reward)));
    const byGroup = new Map<number, number[]>();
    const informative = new Set<number>();
    scored.forEach(({ group }, i) => {
      byGroup.set(group, [...(byGroup.get(group) ?? []), rewards[i]]);
      if (hasSignal[i]) informative.add(group);
    });
    return {
      reward: nanMean(rewards),
      reward_std: nanMean(Array.from(byGroup.values(), nanStd)),
      frac_reward_zero_std: 1 - informative.size / byGroup.size,
    };
  }

  private lossMetrics(outcomes: readonly StepOutcome[]): Metrics {
    const count = (skipped: boolean) => outcomes.filter(({ result }) => result.skipped === skipped).length;
    const counts = { "policy/updates": count(false), "policy/skipped_updates": count(true) };
    if (outcomes.length === 0) return counts;
    const results = outcomes.map(({ result }) => result);
    const names = Object.keys(results[0].perTurn);
    const perToken = names.map((name) => [name, concatenate(results.flatMap(({ perTurn }) => perTurn[name]))]);
    const means = meanByName(results.map(({ statistics }) => statistics));
    return {
      loss: means.loss!,
      ...this.algorithm.metrics(
        { means, perToken: Object.fromEntries(perToken) as LossStatistics["perToken"] },
        outcomes.flatMap(({ turns }) => turns),
      ),
      grad_norm: mean(results.map(({ gradNorm }) => gradNorm)),
      learning_rate: results.at(-1)!.learningRate,
      ...counts,
    };
  }
}

/** How schedules stand. */
interface ScheduleFactors {
  readonly learningRate: number;
  readonly entropy: number;
}

interface StepOutcome {
  readonly turns: readonly TurnSample[];
  readonly result: UpdateResult;
}

/** False for a reply that no reward function could score: nothing is known of what it is worth. */
function hasReward({ turns }: ScoredTrajectory): boolean {
  return turns.every(({ turn }) => !Number.isNaN(turn.reward));
}

function countTokens(turns: readonly TurnSample[]): number {
  return sum(turns.map(({ oldLogProbs }) => oldLogProbs.length));
}

function countActiveTokens(turns: readonly TurnSample[]): number {
  return sum(
    turns.map(({ policyMask, oldLogProbs }) => (policyMask === undefined ? oldLogProbs.length : sum(policyMask))),
  );
}

/** Throws INVALID_STATE for a model that the algorithm cannot train. */
function checkModel(model: CausalLM, { name, klSetting }: AlgorithmDefinition): void {
  const openHint = "Open it by AutoModelForCausalLM.fromPretrained and give it an adapter by getPeftModel";
  const problem = !model.isTrainable
    ? `nothing of it is trained. ${openHint}`
    : model.valueHead !== undefined
      ? `it has a value head, which nothing would train. ${openHint}`
      : klSetting !== undefined && model.adapter === undefined
        ? `${klSetting} weighs the divergence from the model without its adapter, but it has none: its own weights are trained. Set ${klSetting} to 0, or train an adapter`
        : undefined;
  if (problem !== undefined)
    throw new LlamaGymError("INVALID_STATE", `The model cannot be trained by ${name}: ${problem}.`);
}
