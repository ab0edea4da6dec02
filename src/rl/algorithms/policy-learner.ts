import { invalidArgument, LlamaGymError } from "../../core/errors.js";
import type { RandomState } from "../../core/random/random-stream.js";
import type { SettingTable } from "../../core/settings.js";
import type { Tensor } from "../../engine/tensor/index.js";
import type { PolicyBackend, TrainingNeeds } from "../../generation/index.js";
import type { Trajectory, Turn } from "../rollout/trajectory.js";
import type {
  AdvantageResult,
  AlgorithmDefinition,
  MinibatchTotals,
  ScoredTrajectory,
  TurnSample,
  UpdateConfig,
} from "./algorithm-definition.js";
import { checkState } from "./check-definition.js";
import { checkModel, checkSavedState, copiesReference, usesReference } from "./check-model.js";
import type {
  Learner,
  LearnerContext,
  LearnerState,
  Metrics,
  RolloutSpec,
  TurnInsight,
  UpdateOptions,
} from "./learner.js";
import { inspectUpdate } from "./inspect-update.js";
import { lossMetrics, rewardMetrics, type StepOutcome } from "./policy-metrics.js";
import { weighStaleAdvantages } from "./stale-trajectories.js";
import { recordedScores, scoreTrajectories, type ScoreRequest } from "./score-trajectories.js";
import { entropyFactor } from "./shared/entropy-bonus.js";
import { lossNodes, tokenInputs } from "./shared/loss-nodes.js";
import { learningRateFactor } from "./shared/update-settings.js";
import { distill } from "./teacher.js";
import {
  countTokens,
  findInformativeGroups,
  findTrained,
  groupUnits,
  minibatchTotals,
  toTurnSamples,
  withWholeUnits,
} from "./turn-samples.js";
import type { GradientTransport } from "./update/gradient-transport.js";
import { LogProbScorer } from "./update/log-prob-scorer.js";
import type { MicroBatchLoss } from "./update/micro-batch-graphs.js";
import { shuffleIntoMinibatches } from "./update/minibatches.js";
import type { ReferenceCopy } from "./update/reference-copy.js";
import { PolicyUpdater } from "./update/policy-updater.js";

type Definition<Options extends object, Config, State> = Omit<
  AlgorithmDefinition<SettingTable, Options, Config, State>,
  "klSetting"
> & { readonly klSetting?: string };

/** Progress of the schedules: factors of the learning rate and of the entropy bonus. */
interface ScheduleFactors {
  readonly learningRate: (step: number) => number;
  readonly entropy: number;
}

/** Scored trajectories and the turns to train. */
interface PreparedUpdate<State> {
  readonly scored: readonly ScoredTrajectory[];
  readonly result: AdvantageResult<State>;
  /** Whether the group of each scored trajectory has advantages other than 0. */
  readonly hasSignal: readonly boolean[];
  /** Trained trajectories. */
  readonly trajectories: readonly Trajectory[];
  /** Turns of the trained trajectories; undefined for masked ones. */
  readonly turns: readonly (TurnSample | undefined)[];
  /** The units of the trained trajectories; undefined for an algorithm without units. */
  readonly units: readonly number[] | undefined;
}

/** Returns the loss of an algorithm. */
export function createMicroBatchLoss<Options extends object, Config extends UpdateConfig, State>(
  algorithm: Definition<Options, Config, State>,
  config: Config,
): MicroBatchLoss {
  return {
    loss: (policy) => algorithm.loss(lossNodes(policy), config),
    entropy: algorithm.entropy?.(config) ?? ((config.entropyCoef ?? 0) > 0 ? "gradient" : "value"),
  };
}

function trainingNeeds<Options extends object, Config extends UpdateConfig, State>(
  algorithm: Definition<Options, Config, State>,
  config: Config,
  { temperature, isTruncatedSampling }: LearnerContext,
): TrainingNeeds {
  const { name, title = name, critic = false, stepping } = algorithm;
  return {
    title,
    critic,
    entropy: createMicroBatchLoss(algorithm, config).entropy,
    scoresEntropy: algorithm.scoresEntropy?.(config) ?? false,
    filtersParameters: stepping?.trainableFilter !== undefined,
    temperature,
    isTruncatedSampling,
  };
}

/** The part of a learner's state that is not the optimizer's; JSON. */
interface PolicyLearnerState<State> {
  readonly algorithm: State | null;
  readonly random: RandomState;
}

/**
 * Runs an `AlgorithmDefinition` on a model: scores trajectories, computes advantages, and takes
 * optimizer steps on minibatches. The decisions of a turn are always in the same micro-batch.
 */
export class PolicyLearner<Options extends object, Config extends UpdateConfig, State> implements Learner<
  PreparedUpdate<State>
> {
  private state: State;
  /** Optimizer steps of the updates whose batches are still in use, for `inspect`. */
  private readonly outcomes = new WeakMap<PreparedUpdate<State>, readonly StepOutcome[]>();

  private constructor(
    private readonly algorithm: Definition<Options, Config, State>,
    private readonly config: Config,
    private readonly context: LearnerContext,
    private readonly updater: PolicyUpdater,
    private readonly scorer: LogProbScorer,
    /** Only a reference policy that follows the trained one. */
    private readonly reference: ReferenceCopy | undefined,
  ) {
    this.state = algorithm.state?.initial(config) as State;
    this.checkState();
  }

  /** @throws INVALID_STATE for a model that the algorithm cannot train. */
  static async create<Options extends object, Config extends UpdateConfig, State>(
    policy: PolicyBackend,
    algorithm: Definition<Options, Config, State>,
    config: Config,
    context: LearnerContext,
  ): Promise<PolicyLearner<Options, Config, State>> {
    policy.checkTraining?.(trainingNeeds(algorithm, config, context));
    checkModel(policy, algorithm, config);
    if (context.distillation !== undefined && algorithm.hasTurnAdvantages === true)
      throw invalidArgument(
        `${algorithm.title ?? algorithm.name} has one advantage per turn, which a teacher's scores of tokens cannot be part of. Use ppo, grpo or reinforce.`,
      );
    const { learningRate, maxGradNorm = Infinity, valueHeadLearningRate = learningRate } = config;
    const { weightDecay = 0, adamBeta1: beta1 = 0.9, adamBeta2: beta2 = 0.999, adamEpsilon: epsilon = 1e-8 } = config;
    const valueHeadFactor = learningRate === 0 ? 1 : valueHeadLearningRate / learningRate;
    const { microBatchTokens, frozenStates } = context;
    const updater = new PolicyUpdater(policy, {
      ...createMicroBatchLoss(algorithm, config),
      optimizer: { learningRate, weightDecay, beta1, beta2, epsilon, maxGradNorm, valueHeadFactor },
      microBatchTokens,
      frozenStates,
    });
    const entropies = algorithm.scoresEntropy?.(config) ?? false;
    const alternatives = context.distillation !== undefined;
    const scorer = new LogProbScorer(policy, { microBatchTokens, frozenStates, entropies, alternatives });
    await frozenStates?.open();
    const reference =
      copiesReference(config) && usesReference(algorithm, config)
        ? await (await import("./update/reference-copy.js")).ReferenceCopy.create(policy.causalLM!)
        : undefined;
    return new PolicyLearner(algorithm, config, context, updater, scorer, reference);
  }

  get rolloutSpec(): RolloutSpec {
    const request = this.algorithm.rollout(this.config);
    if (request.kind === "turns") return request;
    return { minTurns: 0, maxResamples: 0, ...request, hasSignal: (group) => this.hasSignal(group) };
  }

  async prepare(trajectories: readonly Trajectory[]): Promise<PreparedUpdate<State>> {
    const { algorithm, config } = this;
    const scored = await scoreTrajectories(trajectories, this.scorer, this.scoreRequest());
    const { distillation, temperature } = this.context;
    const own = await algorithm.advantages(scored, config, this.state);
    const distilled = distillation === undefined ? own : await distill(scored, own, distillation, temperature);
    const result = weighStaleAdvantages(trajectories, scored, distilled);
    const hasSignal = findInformativeGroups(scored, result.advantages);
    const { units } = result;
    const trainedIndices = withWholeUnits(findTrained(scored, hasSignal, this.filtersGroups), units);
    const turns = toTurnSamples(scored, result, trainedIndices, config, (samples) =>
      algorithm.policyMasks?.(samples, config),
    );
    const trained = { trajectories: trainedIndices.map((i) => trajectories[i]) };
    return { scored, result, hasSignal, turns, ...trained, units: units && trainedIndices.map((i) => units[i]!) };
  }

  async update(prepared: PreparedUpdate<State>, { progress = 0 }: UpdateOptions = {}): Promise<Metrics> {
    const { algorithm, config } = this;
    const { scored, hasSignal, result, turns } = prepared;
    if (result.state !== undefined) this.state = result.state;
    const outcomes = await this.train(prepared, {
      learningRate: learningRateFactor(config, progress, this.updater.steps),
      entropy: entropyFactor(config, progress),
    });
    this.outcomes.set(prepared, outcomes);
    this.context.frozenStates?.endUpdate();
    const samples = turns.filter((turn) => turn !== undefined);
    const metrics = {
      ...result.metrics,
      ...(algorithm.rollout(config).kind === "groups" ? rewardMetrics(scored, hasSignal) : {}),
      ...lossMetrics(outcomes, (statistics) => algorithm.metrics?.(statistics, samples, config) ?? {}),
      ...(this.reference === undefined
        ? {}
        : { num_reference_syncs: outcomes.filter(({ movesReference }) => movesReference).length }),
    };
    this.state = algorithm.state?.update?.(this.state, metrics, turns.length, config) ?? this.state;
    return { ...metrics, ...algorithm.state?.metrics?.(this.state) };
  }

  inspect(prepared: PreparedUpdate<State>, turns: ReadonlySet<Turn>): ReadonlyMap<Turn, TurnInsight> {
    return inspectUpdate({ ...prepared, outcomes: this.outcomes.get(prepared) ?? [] }, turns, this.config);
  }

  /**
   * Computes the loss of turns as one minibatch and leaves its gradients in the model's gradient
   * buffer; takes no step.
   */
  async computeGradients(turns: readonly TurnSample[]): Promise<Readonly<Record<string, number>>> {
    const { statistics } = await this.updater.gradients.compute(
      turns.map(({ turn }) => turn),
      this.inputsOf(turns, minibatchTotals(turns, turns.length, countTokens(turns), 1)),
      { ...this.context, units: groupUnits(turns) },
    );
    return statistics;
  }

  useGradientTransport(transport: GradientTransport): void {
    this.updater.gradients.useTransport(transport);
  }

  async getState(): Promise<LearnerState> {
    this.checkState();
    const state: PolicyLearnerState<State> = { algorithm: this.state ?? null, random: this.context.random.getState() };
    return {
      optimizer: await this.updater.state(),
      frozenStates: await this.context.frozenStates?.getState(),
      reference: await this.reference?.getState(),
      state,
    };
  }

  async setState({ optimizer, frozenStates, reference, state }: LearnerState): Promise<void> {
    const { algorithm, random } = state as PolicyLearnerState<State>;
    checkSavedState(algorithm, this.state);
    await this.updater.restore(optimizer);
    if (frozenStates !== undefined) await this.context.frozenStates?.setState(frozenStates);
    if (this.reference !== undefined) {
      if (reference === undefined)
        throw new LlamaGymError(
          "RUN_INCOMPATIBLE",
          "The checkpoint has no reference policy, which `syncRefModel` needs. Resume it with the version that wrote it, or start a new run from its model.",
        );
      await this.reference.setState(reference);
    }
    if (algorithm !== null) this.state = algorithm;
    this.context.random.setState(random);
  }

  async release(): Promise<void> {
    await this.updater.release();
    await this.scorer.release();
    this.reference?.release();
    await this.context.frozenStates?.release();
    await this.context.distillation?.teacher.release();
  }

  /** Whether the members of a group differ in their returns. */
  private async hasSignal(group: readonly Trajectory[]): Promise<boolean> {
    if (this.context.distillation !== undefined) return true;
    const scored = recordedScores(group, this.scoreRequest());
    const { advantages } = await this.algorithm.advantages(scored, this.config, this.state);
    return findInformativeGroups(scored, advantages).includes(true);
  }

  /** Whether groups with equal returns are left out: no regularizer or teacher acts on them. */
  private get filtersGroups(): boolean {
    const { filterGroups = false, entropyCoef = 0 } = this.config;
    const hasRegularizer = this.algorithm.hasRegularizer?.(this.config) ?? entropyCoef > 0;
    return filterGroups && !hasRegularizer && this.context.distillation === undefined;
  }

  private checkState(): void {
    const { name, title = name } = this.algorithm;
    checkState(title, this.state);
  }

  private scoreRequest(): ScoreRequest {
    const { algorithm, config, context } = this;
    const request = algorithm.rollout(config);
    return {
      temperature: context.temperature,
      isTruncatedSampling: context.isTruncatedSampling,
      reference: usesReference(algorithm, config),
      referenceModel: this.reference?.model,
      entropies: algorithm.scoresEntropy?.(config) ?? false,
      alternatives: context.distillation !== undefined,
      values: algorithm.critic ?? false,
      groupSize: request.kind === "groups" ? request.groupSize : 1,
    };
  }

  /** Takes all optimizer steps of an update. */
  private async train(
    { trajectories, turns, units }: PreparedUpdate<State>,
    factors: ScheduleFactors,
  ): Promise<StepOutcome[]> {
    const { config, algorithm, context } = this;
    const outcomes: StepOutcome[] = [];
    const epochs = algorithm.stepping?.epochs?.(config) ?? config.numIterations ?? 1;
    for (let epoch = 0; epoch < epochs; epoch++) {
      const minibatches = shuffleIntoMinibatches(trajectories, config.miniBatchSize ?? Infinity, context.random, units);
      const meanTokens = countTokens(turns.filter((turn) => turn !== undefined)) / minibatches.length;
      for (const turnIndices of minibatches) {
        const samples = turnIndices.flatMap((i) => turns[i] ?? []);
        if (samples.length === 0) continue;
        const entropy = factors.entropy * (algorithm.entropyScale?.(config, this.state) ?? 1);
        const totals = minibatchTotals(samples, turnIndices.length, meanTokens, entropy);
        const outcome = await this.step(samples, totals, factors.learningRate(this.updater.steps));
        outcomes.push(outcome);
        const stepped = { turns: samples, perTurn: outcome.result.perTurn };
        this.state = algorithm.state?.afterStep?.(this.state, stepped, config) ?? this.state;
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
    const { config, context, state } = this;
    const { shouldStep, shouldStop, trainableFilter } = this.algorithm.stepping ?? {};
    const { refModelMixupAlpha: alpha = 1, refModelSyncSteps: syncSteps = Infinity } = config;
    let isLast = false;
    const result = await this.updater.step(
      turns.map(({ turn }) => turn),
      this.inputsOf(turns, totals),
      {
        temperature: context.temperature,
        random: context.random,
        units: groupUnits(turns),
        learningRateFactor,
        shouldStep: (statistics) => {
          isLast = shouldStop?.(statistics, config) ?? false;
          return !isLast && (shouldStep?.(statistics, config) ?? true);
        },
        trainableFilter: trainableFilter?.(config, state),
      },
    );
    const movesReference = this.reference !== undefined && !result.skipped && this.updater.steps % syncSteps === 0;
    if (movesReference) await this.reference?.sync(alpha);
    return { turns, result, isLast, movesReference };
  }

  /** Returns the inputs of the loss for a micro-batch of some of the turns. */
  private inputsOf(turns: readonly TurnSample[], totals: MinibatchTotals) {
    const { algorithm, config } = this;
    return (turnIndices: readonly number[]): Readonly<Record<string, Tensor>> => {
      const samples = turnIndices.map((i) => turns[i]);
      return { ...tokenInputs(samples, totals), ...algorithm.inputs?.(samples, totals, config) };
    };
  }
}
