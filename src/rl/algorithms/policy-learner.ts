import type { RandomState } from "../../core/random/random-stream.js";
import type { SettingTable } from "../../core/settings.js";
import { scheduleFactor } from "../../engine/optim/schedule.js";
import type { CausalLM } from "../../models/causal-lm.js";
import type { Trajectory } from "../rollout/trajectory.js";
import type {
  AdvantageResult,
  AlgorithmDefinition,
  MinibatchTotals,
  ScoredTrajectory,
  TurnSample,
  UpdateConfig,
} from "./algorithm-definition.js";
import { checkModel, usesReference } from "./check-model.js";
import type { Learner, LearnerContext, LearnerState, Metrics, RolloutSpec, UpdateOptions } from "./learner.js";
import { lossMetrics, rewardMetrics, type StepOutcome } from "./policy-metrics.js";
import { recordedScores, scoreTrajectories, type ScoreRequest } from "./score-trajectories.js";
import { sum } from "./shared/arrays.js";
import { lossNodes, tokenInputs } from "./shared/loss-nodes.js";
import { LogProbScorer } from "./update/log-prob-scorer.js";
import { shuffleIntoMinibatches } from "./update/minibatches.js";
import { PolicyUpdater } from "./update/policy-updater.js";

/** Advantages up to this magnitude are rounding errors of equal rewards. */
const ADVANTAGE_EPSILON = 1e-6;

type Definition<Options extends object, Config, State> = AlgorithmDefinition<SettingTable, Options, Config, State>;

/** Progress of the schedules: factors of the learning rate and of the entropy bonus. */
interface ScheduleFactors {
  readonly learningRate: number;
  readonly entropy: number;
}

/** The part of a learner's state that is not the optimizer's; JSON. */
interface PolicyLearnerState<State> {
  readonly algorithm: State | null;
  readonly random: RandomState;
}

/**
 * Runs an `AlgorithmDefinition` on a model: scores trajectories, computes advantages, and takes optimizer steps on minibatches.
 * The decisions of a turn are always in the same micro-batch.
 */
export class PolicyLearner<Options extends object, Config extends UpdateConfig, State> implements Learner {
  private state: State;

  private constructor(
    private readonly algorithm: Definition<Options, Config, State>,
    private readonly config: Config,
    private readonly context: LearnerContext,
    private readonly updater: PolicyUpdater,
    private readonly scorer: LogProbScorer | undefined,
  ) {
    this.state = algorithm.state?.initial(config) as State;
  }

  /** @throws INVALID_STATE for a model that the algorithm cannot train. */
  static async create<Options extends object, Config extends UpdateConfig, State>(
    model: CausalLM,
    algorithm: Definition<Options, Config, State>,
    config: Config,
    context: LearnerContext,
  ): Promise<PolicyLearner<Options, Config, State>> {
    checkModel(model, algorithm, config);
    const { learningRate, maxGradNorm = Infinity, entropyCoef = 0 } = config;
    const { microBatchTokens, isTruncatedSampling } = context;
    const updater = new PolicyUpdater(model, {
      loss: (policy) => algorithm.loss(lossNodes(policy), config),
      entropy: algorithm.entropy?.(config) ?? (entropyCoef > 0 ? "gradient" : "value"),
      optimizer: { learningRate, maxGradNorm },
      microBatchTokens,
    });
    const entropies = algorithm.scoresEntropy?.(config) ?? false;
    const needsScorer =
      algorithm.critic === true || usesReference(algorithm, config) || entropies || isTruncatedSampling;
    const scorer = needsScorer ? await LogProbScorer.create(model, { microBatchTokens, entropies }) : undefined;
    return new PolicyLearner(algorithm, config, context, updater, scorer);
  }

  get rolloutSpec(): RolloutSpec {
    const request = this.algorithm.rollout(this.config);
    if (request.kind === "turns") return request;
    return { minTurns: 0, maxResamples: 0, ...request, hasSignal: (group) => this.hasSignal(group) };
  }

  async update(trajectories: readonly Trajectory[], { progress = 0 }: UpdateOptions = {}): Promise<Metrics> {
    const { algorithm, config, scorer } = this;
    const scored = await scoreTrajectories(trajectories, scorer, this.scoreRequest());
    const result = algorithm.advantages(scored, config, this.state);
    if (result.state !== undefined) this.state = result.state;
    const hasSignal = findInformativeGroups(scored, result.advantages);
    const trainedIndices = this.trainedTrajectories(scored, hasSignal);
    const turns = this.toTurnSamples(scored, result, trainedIndices);
    const outcomes = await this.train(
      trainedIndices.map((i) => trajectories[i]),
      turns,
      {
        learningRate: scheduleFactor(config.lrSchedulerType ?? "constant", progress),
        entropy: scheduleFactor(config.entropySchedulerType ?? "constant", progress),
      },
    );
    const samples = turns.filter((turn) => turn !== undefined);
    const metrics = {
      ...result.metrics,
      ...(algorithm.rollout(config).kind === "groups" ? rewardMetrics(scored, hasSignal) : {}),
      ...lossMetrics(outcomes, (statistics) => algorithm.metrics?.(statistics, samples, config) ?? {}),
    };
    this.state = algorithm.state?.update?.(this.state, metrics, turns.length, config) ?? this.state;
    return metrics;
  }

  async getState(): Promise<LearnerState> {
    const state: PolicyLearnerState<State> = { algorithm: this.state ?? null, random: this.context.random.getState() };
    return { optimizer: await this.updater.state(), state };
  }

  async setState({ optimizer, state }: LearnerState): Promise<void> {
    const { algorithm, random } = state as PolicyLearnerState<State>;
    await this.updater.restore(optimizer);
    if (algorithm !== null) this.state = algorithm;
    this.context.random.setState(random);
  }

  async release(): Promise<void> {
    await this.updater.release();
    await this.scorer?.release();
  }

  /** Whether the members of a group differ in their returns. */
  private hasSignal(group: readonly Trajectory[]): boolean {
    const scored = recordedScores(group, this.scoreRequest());
    const { advantages } = this.algorithm.advantages(scored, this.config, this.state);
    return findInformativeGroups(scored, advantages).includes(true);
  }

  private scoreRequest(): ScoreRequest {
    const { algorithm, config, context } = this;
    const request = algorithm.rollout(config);
    return {
      temperature: context.temperature,
      isTruncatedSampling: context.isTruncatedSampling,
      reference: usesReference(algorithm, config),
      entropies: algorithm.scoresEntropy?.(config) ?? false,
      values: algorithm.critic ?? false,
      groupSize: request.kind === "groups" ? request.groupSize : 1,
    };
  }

  /** Indices of trajectories that are trained: those with a reward, whose group has a signal or a regularizer acts on. */
  private trainedTrajectories(scored: readonly ScoredTrajectory[], hasSignal: readonly boolean[]): number[] {
    const { filterGroups = false, entropyCoef = 0 } = this.config;
    const hasRegularizer = this.algorithm.hasRegularizer?.(this.config) ?? entropyCoef > 0;
    const isFiltered = filterGroups && !hasRegularizer;
    return scored.flatMap((trajectory, i) => (hasReward(trajectory) && (hasSignal[i] || !isFiltered) ? [i] : []));
  }

  /** Turns of the trained trajectories in order; undefined for masked ones. */
  private toTurnSamples(
    scored: readonly ScoredTrajectory[],
    { advantages, returns }: AdvantageResult<State>,
    trainedIndices: readonly number[],
  ): (TurnSample | undefined)[] {
    const { maskTruncatedCompletions = false, maskTruncatedEpisodes = false } = this.config;
    const turns = trainedIndices.flatMap((i) =>
      scored[i].turns.map((scoredTurn, t): TurnSample | undefined => {
        const isMasked =
          (maskTruncatedCompletions && scoredTurn.turn.finishReason === "length") ||
          (maskTruncatedEpisodes && scored[i].end === "truncated");
        if (isMasked) return undefined;
        return { ...scoredTurn, advantages: advantages[i][t], returns: returns?.[i][t], policyMask: undefined };
      }),
    );
    const samples = turns.filter((turn) => turn !== undefined);
    const masks = this.algorithm.policyMasks?.(samples, this.config);
    if (masks === undefined) return turns;
    let maskIndex = 0;
    return turns.map((turn) => turn && { ...turn, policyMask: masks[maskIndex++] });
  }

  /** Takes all optimizer steps of an update. */
  private async train(
    trajectories: readonly Trajectory[],
    turns: readonly (TurnSample | undefined)[],
    factors: ScheduleFactors,
  ): Promise<StepOutcome[]> {
    const { config, algorithm, context } = this;
    const outcomes: StepOutcome[] = [];
    const epochs = algorithm.stepping?.epochs?.(config) ?? config.numIterations ?? 1;
    for (let epoch = 0; epoch < epochs; epoch++) {
      const minibatches = shuffleIntoMinibatches(trajectories, config.miniBatchSize ?? Infinity, context.random);
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
        const outcome = await this.step(samples, totals, factors.learningRate);
        outcomes.push(outcome);
        if (outcome.isLast) return outcomes;
      }
    }
    return outcomes;
  }

  private async step(
    turns: readonly TurnSample[],
    totals: MinibatchTotals,
    learningRateFactor: number,
  ): Promise<StepOutcome> {
    const { algorithm, config, context, state } = this;
    const { shouldStep, shouldStop, trainableFilter } = algorithm.stepping ?? {};
    let isLast = false;
    const result = await this.updater.step(
      turns.map(({ turn }) => turn),
      (turnIndices) => {
        const samples = turnIndices.map((i) => turns[i]);
        return { ...tokenInputs(samples, totals), ...algorithm.inputs?.(samples, totals, config) };
      },
      {
        temperature: context.temperature,
        random: context.random,
        learningRateFactor,
        shouldStep: (statistics) => {
          isLast = shouldStop?.(statistics, config) ?? false;
          return !isLast && (shouldStep?.(statistics, config) ?? true);
        },
        trainableFilter: trainableFilter?.(config, state),
      },
    );
    return { turns, result, isLast };
  }
}

/** Returns, for each trajectory, whether any advantage of its group is not 0. */
function findInformativeGroups(
  scored: readonly ScoredTrajectory[],
  advantages: AdvantageResult["advantages"],
): boolean[] {
  const groups = new Set<number>();
  scored.forEach(({ group }, i) => {
    if (advantages[i].some((turn) => Array.from(turn).some((advantage) => Math.abs(advantage) > ADVANTAGE_EPSILON)))
      groups.add(group);
  });
  return scored.map(({ group }) => groups.has(group));
}

/** False for a completion that no reward function scored. */
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
