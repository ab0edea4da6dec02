import { LlamaGymError } from "../../../core/errors.js";
import type { CausalLM } from "../../../models/causal-lm.js";
import { isValueHeadParameter } from "../../../engine/nn/value-head.js";
import type { Trajectory, Turn } from "../../rollout/trajectory.js";
import type { RandomState } from "../../../core/random/random-stream.js";
import type { RolloutSpec, Learner, LearnerState, Metrics, LearnerContext, UpdateOptions } from "../learner.js";
import { shuffleIntoMinibatches } from "../update/minibatches.js";
import { LogProbScorer } from "../update/log-prob-scorer.js";
import { decisionIndices } from "../update/turn-batch.js";
import { PolicyUpdater } from "../update/policy-updater.js";
import { perTokenKl } from "../shared/kl.js";
import { createKlController, type KlController, type KlControllerState } from "../shared/kl-controller.js";
import { meanByName, concatenate, sum } from "../shared/arrays.js";
import { scheduleFactor } from "../../../engine/optim/schedule.js";
import { mean } from "../shared/statistics.js";
import { ppoAdvantages } from "./advantages.js";
import { resolvePpoConfig, type PpoConfig, type PpoOptions } from "./settings.js";
import { ppoInputs, ppoLoss, type PpoTokens } from "./loss.js";
import { exceedsRatioThreshold, exceedsTargetKl, ppoMetrics, type PpoStatistics } from "./metrics.js";
import { RewardScaler, type RewardScaleState } from "./reward-scaler.js";

/** What is known of a turn's decisions before an update; arrays have one entry for each. */
interface ScoredTurn {
  readonly turn: Turn;
  readonly oldLogProbs: Float64Array;
  readonly oldValues: Float64Array;
  readonly kls: Float64Array;
}

interface ScoredTrajectory {
  readonly turns: readonly ScoredTurn[];
  /** Value of the state in which it was cut; 0 where the episode ended. */
  readonly bootstrap: number;
}

/** A turn ready to be trained. */
type PpoTurn = PpoTokens & { readonly turn: Turn };

/** How schedules stand. */
interface ScheduleFactors {
  /** Whether only the value head learns yet. */
  readonly isValueWarmup: boolean;
  readonly learningRate: number;
  /** Undefined without an entropy bonus. */
  readonly entropy: number | undefined;
}

/** What a checkpoint keeps of PPO besides the optimiser. */
interface PpoState {
  readonly kl: KlControllerState;
  readonly rewards: RewardScaleState;
  readonly updates: number;
  readonly random: RandomState;
}

/**
 * Proximal policy optimisation (Schulman et al. 2017) with a value head and a KL penalty to the reference policy (Ziegler et al.
 * 2019), as TRL 0.7 defines it for LlamaGym.
 */
export class PpoLearner implements Learner {
  private rewards: RewardScaler;
  private updates = 0;

  private constructor(
    readonly config: PpoConfig,
    private readonly context: LearnerContext,
    private readonly updater: PolicyUpdater,
    private readonly scorer: LogProbScorer,
    private kl: KlController,
  ) {
    this.rewards = new RewardScaler(config);
  }

  /** Throws INVALID_ARGUMENT for settings out of range, INVALID_STATE for a model that cannot be trained so. */
  static async create(model: CausalLM, options: PpoOptions, context: LearnerContext): Promise<PpoLearner> {
    const config = resolvePpoConfig(options);
    checkModel(model, config);
    const { learningRate, maxGradNorm = Infinity, entropyCoef } = config;
    const { maxTokens } = context;
    const updater = new PolicyUpdater(model, {
      loss: (nodes) => ppoLoss(nodes, config),
      entropy: entropyCoef === 0 ? "value" : "gradient",
      optimizer: { learningRate, maxGradNorm },
      maxTokens,
    });
    const scorer = await LogProbScorer.create(model, { maxTokens });
    return new PpoLearner(config, context, updater, scorer, createKlController(config));
  }

  get rolloutSpec(): RolloutSpec {
    return { kind: "turns", turns: this.config.batchSize };
  }

  async update(trajectories: readonly Trajectory[], { progress = 0 }: UpdateOptions = {}): Promise<Metrics> {
    const { config, kl, context } = this;
    const factors: ScheduleFactors = {
      isValueWarmup: this.updates < config.valueWarmup,
      learningRate: scheduleFactor(config.lrSchedulerType, progress),
      entropy: config.entropyCoef === 0 ? undefined : scheduleFactor(config.entropySchedulerType, progress),
    };
    const { turns, metrics } = this.prepare(await this.score(trajectories));
    const results: Awaited<ReturnType<PpoLearner["step"]>>[] = [];
    const shouldStop = () => results.at(-1)?.exceedsTargetKl === true;
    for (let epoch = 0; epoch < config.numPpoEpochs && !shouldStop(); epoch++) {
      for (const turnIndices of shuffleIntoMinibatches(trajectories, config.miniBatchSize, context.random)) {
        if (shouldStop()) break;
        results.push(
          await this.step(
            turnIndices.map((i) => turns[i]),
            factors,
          ),
        );
      }
    }
    if (kl.value > 0) kl.update(metrics["objective/kl"], turns.length);
    this.updates++;
    return {
      ...metrics,
      ...ppoMetrics(meanByName(results.map(({ sums }) => sums)), concatTokens(turns)),
      grad_norm: mean(results.map(({ gradNorm }) => gradNorm)),
      learning_rate: results.at(-1)!.learningRate,
      "policy/updates": results.filter(({ skipped }) => !skipped).length,
      "policy/skipped_updates": results.filter(({ skipped, exceedsTargetKl }) => skipped && !exceedsTargetKl).length,
    };
  }

  async getState(): Promise<LearnerState> {
    const state: PpoState = {
      kl: this.kl.getState(),
      rewards: this.rewards.getState(),
      updates: this.updates,
      random: this.context.random.getState(),
    };
    return { optimizer: await this.updater.state(), state };
  }

  async setState({ optimizer, state }: LearnerState): Promise<void> {
    const { kl, rewards, updates, random } = state as PpoState;
    await this.updater.restore(optimizer);
    this.kl = createKlController(this.config, kl);
    this.rewards = new RewardScaler(this.config, rewards);
    this.updates = updates;
    this.context.random.setState(random);
  }

  async release(): Promise<void> {
    await this.updater.release();
    await this.scorer.release();
  }

  /** Log-probabilities, values and divergences of before the update. */
  private async score(trajectories: readonly Trajectory[]): Promise<ScoredTrajectory[]> {
    const { temperature, isTruncatedSampling } = this.context;
    const turns = trajectories.flatMap((trajectory) => trajectory.turns);
    // What was drawn from less than the whole distribution is scored as the policy that is trained.
    const rescored = turns.filter((turn) => isTruncatedSampling || !hasSampledValues(turn));
    const partial = trajectories.filter(({ bootstrapPrompt }) => bootstrapPrompt !== undefined);
    const bootstrapTurns = partial.map(({ bootstrapPrompt }) => ({
      prompt: bootstrapPrompt!,
      tokens: [],
      allowedTokens: undefined,
    }));
    const policyScores = await this.scorer.score([...rescored, ...bootstrapTurns], { temperature });
    const referenceScores =
      this.kl.value === 0 ? undefined : await this.scorer.score(turns, { temperature, adapter: false });
    const rescoredIndices = new Map(rescored.map((turn, index) => [turn, index]));
    let turnIndex = 0;
    const scoreTurn = (turn: Turn): ScoredTurn => {
      const decisions = decisionIndices(turn);
      const atDecisions = (values: readonly number[]) => Float64Array.from(decisions, (token) => values[token]);
      const index = rescoredIndices.get(turn);
      const oldLogProbs = isTruncatedSampling ? policyScores.logProbs[index!] : atDecisions(turn.logProbs);
      const oldValues = index === undefined ? atDecisions(turn.values!) : policyScores.values![index];
      const refLogProbs = referenceScores?.logProbs[turnIndex++] ?? oldLogProbs;
      return { turn, oldLogProbs, oldValues, kls: perTokenKl(this.config.klPenalty, oldLogProbs, refLogProbs) };
    };
    return trajectories.map((trajectory) => ({
      turns: trajectory.turns.map(scoreTurn),
      bootstrap:
        trajectory.bootstrapPrompt === undefined
          ? 0
          : policyScores.values![rescored.length + partial.indexOf(trajectory)][0],
    }));
  }

  /** Advantages and returns of all turns. */
  private prepare(trajectories: readonly ScoredTrajectory[]): { turns: PpoTurn[]; metrics: Metrics } {
    const rewardsOf = (turns: readonly ScoredTurn[]) => turns.map(({ turn }) => turn.reward);
    this.rewards.observe(trajectories.map(({ turns, bootstrap }) => ({ rewards: rewardsOf(turns), bootstrap })));
    const samples = trajectories.map(({ turns, bootstrap }) => {
      let end = 0;
      return {
        kls: concatenate(turns.map(({ kls }) => kls)),
        values: concatenate(turns.map(({ oldValues }) => oldValues)),
        turns: turns.map(({ turn, kls }) => ({ end: (end += kls.length), reward: this.rewards.apply(turn.reward) })),
        bootstrap,
      };
    });
    const klCoef = this.kl.value;
    const advantages = ppoAdvantages(samples, { ...this.config, klCoef });
    const turns = trajectories.flatMap((trajectory, i) =>
      trajectory.turns.map(({ turn, oldLogProbs, oldValues }, t): PpoTurn => {
        const { end } = samples[i].turns[t];
        const slice = (values: Float64Array) => values.subarray(end - oldLogProbs.length, end);
        return {
          turn,
          oldLogProbs,
          oldValues,
          advantages: slice(advantages[i].advantages),
          returns: slice(advantages[i].returns),
        };
      }),
    );
    const scoredTurns = trajectories.flatMap((trajectory) => trajectory.turns);
    return {
      turns,
      metrics: {
        ...(klCoef === 0 ? {} : { "objective/kl": mean(scoredTurns.map(({ kls }) => sum(kls))) }),
        "objective/kl_coef": klCoef,
        "objective/entropy": -mean(scoredTurns.map(({ oldLogProbs }) => sum(oldLogProbs))),
        "ppo/mean_scores": mean(turns.map(({ turn }) => turn.reward)),
        ...(this.config.rewardScaling ? { "ppo/reward_scale": this.rewards.scale } : {}),
        "ppo/mean_non_score_reward": mean(concatenate(advantages.map(({ nonScoreRewards }) => nonScoreRewards))),
      },
    };
  }

  /** One optimiser step on a minibatch; none where the policy has moved too far from the one that played. */
  private async step(turns: readonly PpoTurn[], factors: ScheduleFactors) {
    const { config, context } = this;
    const totalTokens = turns.reduce((count, { oldLogProbs }) => count + oldLogProbs.length, 0);
    const { statistics, ...result } = await this.updater.step(
      turns.map(({ turn }) => turn),
      // Decisions stand by turns in a batch, as they do in each turn's arrays.
      (turnIndices) =>
        ppoInputs(concatTokens(turnIndices.map((i) => turns[i])), {
          total: totalTokens,
          entropyFactor: factors.entropy,
        }),
      {
        temperature: context.temperature,
        random: context.random,
        learningRateFactor: factors.learningRate,
        shouldStep: (sums) => !exceedsRatioThreshold(sums, config) && !exceedsTargetKl(sums, config),
        trainableFilter: factors.isValueWarmup ? isValueHeadParameter : undefined,
      },
    );
    const sums = statistics as PpoStatistics;
    return { ...result, sums, exceedsTargetKl: exceedsTargetKl(sums, config) };
  }
}

/** Whether the values of a turn's decisions were read as it was sampled. */
function hasSampledValues(turn: Turn): boolean {
  const { values } = turn;
  return values !== undefined && decisionIndices(turn).every((token) => !Number.isNaN(values[token]));
}

/** Throws INVALID_STATE for a model that PPO cannot train. */
function checkModel(model: CausalLM, { initKlCoef }: PpoConfig): void {
  const problem = !model.isTrainable
    ? "nothing of it is trained"
    : model.valueHead === undefined
      ? "it has no value head"
      : initKlCoef > 0 && model.adapter === undefined
        ? "it trains its own weights, but the KL penalty compares with a model without its adapter (set initKlCoef to 0)"
        : undefined;
  if (problem === undefined) return;
  throw new LlamaGymError(
    "INVALID_STATE",
    `The model cannot be trained by PPO: ${problem}. AutoModelForCausalLMWithValueHead.fromPretrained gives one that can.`,
  );
}

function concatTokens(turns: readonly PpoTokens[]): PpoTokens {
  const all = (name: keyof PpoTokens) => concatenate(turns.map((turn) => turn[name]));
  return {
    oldLogProbs: all("oldLogProbs"),
    oldValues: all("oldValues"),
    advantages: all("advantages"),
    returns: all("returns"),
  };
}
