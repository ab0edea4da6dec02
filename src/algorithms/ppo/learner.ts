import { LlamaGymError } from "../../errors.js";
import type { CausalLM } from "../../models/causal-lm.js";
import { isOfValueHead } from "../../nn/value-head.js";
import type { Segment, Turn } from "../../rollout/turn.js";
import type { RandomState } from "../../tensor/random.js";
import type { ExperienceWish, Learner, LearnerState, Metrics, PolicyTraits, UpdateOptions } from "../learner.js";
import { shuffledMinibatches } from "../policy/minibatches.js";
import { TurnScorer } from "../policy/scorer.js";
import { decisionsOf } from "../policy/turn-batch.js";
import { PolicyUpdater } from "../policy/updater.js";
import { perTokenKl } from "../shared/kl.js";
import { createKlController, type KlController, type KlControllerState } from "../shared/kl-controller.js";
import { averages, concatenate, sum } from "../shared/arrays.js";
import { runFactor } from "../shared/schedule.js";
import { mean } from "../shared/statistics.js";
import { ppoAdvantages } from "./advantages.js";
import { resolvePpoConfig, type PpoConfig, type PpoOptions } from "./config.js";
import { ppoInputs, ppoLoss, type PpoTokens } from "./loss.js";
import { isRatioTooLarge, isTooFar, ppoMetrics, type PpoSums } from "./metrics.js";
import { RewardScale, type RewardScaleState } from "./reward-scale.js";

/** What is known of a turn's decisions before an update; arrays have one entry for each. */
interface ScoredTurn {
  readonly turn: Turn;
  readonly oldLogProbs: Float64Array;
  readonly oldValues: Float64Array;
  readonly kls: Float64Array;
}

interface ScoredSegment {
  readonly turns: readonly ScoredTurn[];
  /** Value of the state in which it was cut; 0 where the episode ended. */
  readonly bootstrap: number;
}

/** A turn ready to be trained. */
type PreparedTurn = PpoTokens & { readonly turn: Turn };

/** How schedules stand. */
interface Factors {
  /** Whether only the value head learns yet. */
  readonly isWarmup: boolean;
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
  private rewards: RewardScale;
  private updates = 0;

  private constructor(
    readonly config: PpoConfig,
    private readonly policy: PolicyTraits,
    private readonly updater: PolicyUpdater,
    private readonly scorer: TurnScorer,
    private kl: KlController,
  ) {
    this.rewards = new RewardScale(config);
  }

  /** Throws INVALID_ARGUMENT for settings out of range, INVALID_STATE for a model that cannot be trained so. */
  static async create(model: CausalLM, options: PpoOptions, policy: PolicyTraits): Promise<PpoLearner> {
    const config = resolvePpoConfig(options);
    checkModel(model, config);
    const { learningRate, maxGradNorm = Infinity, entropyCoef } = config;
    const { maxTokens } = policy;
    const updater = new PolicyUpdater(model, {
      objective: (nodes) => ppoLoss(nodes, config),
      entropy: entropyCoef === 0 ? "value" : "gradient",
      optimizer: { learningRate, maxGradNorm },
      maxTokens,
    });
    const scorer = await TurnScorer.create(model, { maxTokens });
    return new PpoLearner(config, policy, updater, scorer, createKlController(config));
  }

  get wish(): ExperienceWish {
    return { kind: "turns", turns: this.config.batchSize };
  }

  async update(segments: readonly Segment[], { done = 0 }: UpdateOptions = {}): Promise<Metrics> {
    const { config, kl, policy } = this;
    const factors: Factors = {
      isWarmup: this.updates < config.valueWarmup,
      learningRate: runFactor(config.lrSchedulerType, done),
      entropy: config.entropyCoef === 0 ? undefined : runFactor(config.entropySchedulerType, done),
    };
    const { turns, metrics } = this.prepare(await this.score(segments));
    const results: Awaited<ReturnType<PpoLearner["step"]>>[] = [];
    const isOver = () => results.at(-1)?.isTooFar === true;
    for (let epoch = 0; epoch < config.numPpoEpochs && !isOver(); epoch++) {
      for (const numbers of shuffledMinibatches(segments, config.miniBatchSize, policy.random)) {
        if (isOver()) break;
        results.push(
          await this.step(
            numbers.map((i) => turns[i]),
            factors,
          ),
        );
      }
    }
    if (kl.value > 0) kl.update(metrics["objective/kl"], turns.length);
    this.updates++;
    return {
      ...metrics,
      ...ppoMetrics(averages(results.map(({ sums }) => sums)), join(turns)),
      grad_norm: mean(results.map(({ gradNorm }) => gradNorm)),
      learning_rate: results.at(-1)!.learningRate,
      "policy/updates": results.filter(({ skipped }) => !skipped).length,
      "policy/skipped_updates": results.filter(({ skipped, isTooFar }) => skipped && !isTooFar).length,
    };
  }

  async getState(): Promise<LearnerState> {
    const state: PpoState = {
      kl: this.kl.state(),
      rewards: this.rewards.state(),
      updates: this.updates,
      random: this.policy.random.getState(),
    };
    return { optimizer: await this.updater.state(), state };
  }

  async setState({ optimizer, state }: LearnerState): Promise<void> {
    const { kl, rewards, updates, random } = state as PpoState;
    await this.updater.restore(optimizer);
    this.kl = createKlController(this.config, kl);
    this.rewards = new RewardScale(this.config, rewards);
    this.updates = updates;
    this.policy.random.setState(random);
  }

  async release(): Promise<void> {
    await this.updater.release();
    await this.scorer.release();
  }

  /** Log-probabilities, values and divergences of before the update. */
  private async score(segments: readonly Segment[]): Promise<ScoredSegment[]> {
    const { temperature, isTruncated } = this.policy;
    const turns = segments.flatMap((segment) => segment.turns);
    // What was drawn from less than the whole distribution is scored as the policy that is trained.
    const open = turns.filter((turn) => isTruncated || !knowsValues(turn));
    const cut = segments.filter(({ nextPrompt }) => nextPrompt !== undefined);
    const nexts = cut.map(({ nextPrompt }) => ({ prompt: nextPrompt!, tokens: [], allowed: undefined }));
    const own = await this.scorer.score([...open, ...nexts], { temperature });
    const reference = this.kl.value === 0 ? undefined : await this.scorer.score(turns, { temperature, adapter: false });
    const places = new Map(open.map((turn, place) => [turn, place]));
    let number = 0;
    const scored = (turn: Turn): ScoredTurn => {
      const decisions = decisionsOf(turn);
      const sampled = (numbers: readonly number[]) => Float64Array.from(decisions, (token) => numbers[token]);
      const place = places.get(turn);
      const oldLogProbs = isTruncated ? own.logProbs[place!] : sampled(turn.logProbs);
      const oldValues = place === undefined ? sampled(turn.values!) : own.values![place];
      const refLogProbs = reference?.logProbs[number++] ?? oldLogProbs;
      return { turn, oldLogProbs, oldValues, kls: perTokenKl(this.config.klPenalty, oldLogProbs, refLogProbs) };
    };
    return segments.map((segment) => ({
      turns: segment.turns.map(scored),
      bootstrap: segment.nextPrompt === undefined ? 0 : own.values![open.length + cut.indexOf(segment)][0],
    }));
  }

  /** Advantages and returns of all turns. */
  private prepare(segments: readonly ScoredSegment[]): { turns: PreparedTurn[]; metrics: Metrics } {
    const rewardsOf = (turns: readonly ScoredTurn[]) => turns.map(({ turn }) => turn.reward);
    this.rewards.observe(segments.map(({ turns, bootstrap }) => ({ rewards: rewardsOf(turns), bootstrap })));
    const samples = segments.map(({ turns, bootstrap }) => {
      let end = 0;
      return {
        kls: concatenate(turns.map(({ kls }) => kls)),
        values: concatenate(turns.map(({ oldValues }) => oldValues)),
        turns: turns.map(({ turn, kls }) => ({ end: (end += kls.length), reward: this.rewards.apply(turn.reward) })),
        bootstrap,
      };
    });
    const klCoef = this.kl.value;
    const found = ppoAdvantages(samples, { ...this.config, klCoef });
    const turns = segments.flatMap((segment, i) =>
      segment.turns.map(({ turn, oldLogProbs, oldValues }, t): PreparedTurn => {
        const { end } = samples[i].turns[t];
        const part = (values: Float64Array) => values.subarray(end - oldLogProbs.length, end);
        return { turn, oldLogProbs, oldValues, advantages: part(found[i].advantages), returns: part(found[i].returns) };
      }),
    );
    const scored = segments.flatMap((segment) => segment.turns);
    return {
      turns,
      metrics: {
        ...(klCoef === 0 ? {} : { "objective/kl": mean(scored.map(({ kls }) => sum(kls))) }),
        "objective/kl_coef": klCoef,
        "objective/entropy": -mean(scored.map(({ oldLogProbs }) => sum(oldLogProbs))),
        "ppo/mean_scores": mean(turns.map(({ turn }) => turn.reward)),
        ...(this.config.rewardScaling ? { "ppo/reward_scale": this.rewards.scale } : {}),
        "ppo/mean_non_score_reward": mean(concatenate(found.map(({ nonScoreRewards }) => nonScoreRewards))),
      },
    };
  }

  /** One optimiser step on a minibatch; none where the policy has moved too far from the one that played. */
  private async step(turns: readonly PreparedTurn[], factors: Factors) {
    const { config, policy } = this;
    const total = turns.reduce((count, { oldLogProbs }) => count + oldLogProbs.length, 0);
    const { statistics, ...result } = await this.updater.step(
      turns.map(({ turn }) => turn),
      // Decisions stand by turns in a batch, as they do in each turn's arrays.
      (numbers) => ppoInputs(join(numbers.map((i) => turns[i])), { total, entropyFactor: factors.entropy }),
      {
        temperature: policy.temperature,
        random: policy.random,
        learningRateFactor: factors.learningRate,
        accept: (sums) => !isRatioTooLarge(sums, config) && !isTooFar(sums, config),
        only: factors.isWarmup ? isOfValueHead : undefined,
      },
    );
    const sums = statistics as PpoSums;
    return { ...result, sums, isTooFar: isTooFar(sums, config) };
  }
}

/** Whether the values of a turn's decisions were read as it was sampled. */
function knowsValues(turn: Turn): boolean {
  const { values } = turn;
  return values !== undefined && decisionsOf(turn).every((token) => !Number.isNaN(values[token]));
}

/** Throws INVALID_STATE for a model that PPO cannot train. */
function checkModel(model: CausalLM, { initKlCoef }: PpoConfig): void {
  const problem = !model.isTrained
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

function join(turns: readonly PpoTokens[]): PpoTokens {
  const all = (name: keyof PpoTokens) => concatenate(turns.map((turn) => turn[name]));
  return {
    oldLogProbs: all("oldLogProbs"),
    oldValues: all("oldValues"),
    advantages: all("advantages"),
    returns: all("returns"),
  };
}
