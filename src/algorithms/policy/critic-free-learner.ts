import { LlamaGymError } from "../../errors.js";
import type { CausalLM } from "../../models/causal-lm.js";
import type { Segment } from "../../rollout/turn.js";
import type { RandomState } from "../../tensor/random.js";
import type { ExperienceWish, Learner, LearnerState, Metrics, PolicyTraits, UpdateOptions } from "../learner.js";
import { averages, concatenate, sum } from "../shared/arrays.js";
import { runFactor } from "../shared/schedule.js";
import { mean, nanMean, nanStd, type Numbers } from "../shared/statistics.js";
import type {
  CriticFreeAlgorithm,
  LossStatistics,
  PlayedEpisode,
  PlayedTurn,
  StepSize,
  TrainedTurn,
} from "./critic-free-algorithm.js";
import { shuffledMinibatches } from "./minibatches.js";
import { TurnScorer, type TurnScores } from "./scorer.js";
import { decisionsOf } from "./turn-batch.js";
import { PolicyUpdater, type UpdateResult } from "./updater.js";

/** Advantages up to this are 0: what rounding leaves of equal rewards. */
const NO_ADVANTAGE = 1e-6;

/**
 * An algorithm without a critic at work: GRPO, RLOO, REINFORCE++. It wants groups of whole episodes, credits their turns, leaves out
 * what teaches nothing, and takes optimiser steps on the rest. A turn is a sequence: its tokens are always in one pass.
 */
export class CriticFreeLearner implements Learner {
  private constructor(
    private readonly algorithm: CriticFreeAlgorithm,
    private readonly policy: PolicyTraits,
    private readonly updater: PolicyUpdater,
    private readonly scorer: TurnScorer | undefined,
  ) {}

  /** Throws INVALID_STATE for a model that cannot be trained so. */
  static async create(
    model: CausalLM,
    algorithm: CriticFreeAlgorithm,
    policy: PolicyTraits,
  ): Promise<CriticFreeLearner> {
    const { config, objective, entropy, divergenceSetting, usesEntropies } = algorithm;
    checkModel(model, algorithm);
    const { learningRate, maxGradNorm } = config;
    const { maxTokens } = policy;
    const updater = new PolicyUpdater(model, {
      objective,
      entropy,
      optimizer: { learningRate, maxGradNorm },
      maxTokens,
    });
    const needsScores = divergenceSetting !== undefined || usesEntropies || policy.isTruncated;
    const scorer = needsScores ? await TurnScorer.create(model, { maxTokens, entropies: usesEntropies }) : undefined;
    return new CriticFreeLearner(algorithm, policy, updater, scorer);
  }

  get wish(): ExperienceWish {
    const { startsAlike, comparesWithinGroups, config } = this.algorithm;
    const groupSize = startsAlike ? config.numGenerations : 1;
    const groups = config.batchSize / groupSize;
    const refills = config.filterGroups && comparesWithinGroups ? config.maxRefills : 0;
    return {
      kind: "groups",
      groups,
      groupSize,
      minTurns: config.minTurns,
      refills,
      teaches: (group) => this.teaches(group),
    };
  }

  async update(segments: readonly Segment[], { done = 0 }: UpdateOptions = {}): Promise<Metrics> {
    const { algorithm } = this;
    const { config } = algorithm;
    const episodes = await this.score(segments);
    const { advantages, metrics } = algorithm.credit(episodes);
    const teaches = this.whichTeach(episodes, advantages);
    const filters = config.filterGroups && !algorithm.regularises;
    const kept = episodes.flatMap((episode, i) => (isScored(episode) && (teaches[i] || !filters) ? [i] : []));
    const turns = this.trainedTurns(
      kept.map((i) => episodes[i]),
      kept.map((i) => advantages[i]),
    );
    const results = await this.train(
      kept.map((i) => segments[i]),
      turns,
      {
        learningRate: runFactor(config.lrSchedulerType, done),
        entropy: runFactor(config.entropySchedulerType ?? "constant", done),
      },
    );
    return {
      ...metrics,
      ...this.rewardMetrics(episodes, teaches),
      ...this.lossMetrics(results),
    };
  }

  async getState(): Promise<LearnerState> {
    return { optimizer: await this.updater.state(), state: this.policy.random.getState() };
  }

  async setState({ optimizer, state }: LearnerState): Promise<void> {
    await this.updater.restore(optimizer);
    this.policy.random.setState(state as RandomState);
  }

  async release(): Promise<void> {
    await this.updater.release();
    await this.scorer?.release();
  }

  /** Whether the episodes of a group earned different things. */
  private teaches(group: readonly Segment[]): boolean {
    const episodes = this.episodesOf(group, {});
    const { advantages } = this.algorithm.credit(episodes);
    return this.whichTeach(episodes, advantages).includes(true);
  }

  /** Episodes with the log-probabilities of before the update, of the policy and of the reference. */
  private async score(segments: readonly Segment[]): Promise<PlayedEpisode[]> {
    const { algorithm, policy, scorer } = this;
    const { temperature, isTruncated } = policy;
    const turns = segments.flatMap((segment) => segment.turns);
    const own = isTruncated || algorithm.usesEntropies ? await scorer!.score(turns, { temperature }) : undefined;
    const reference =
      algorithm.divergenceSetting === undefined
        ? undefined
        : await scorer!.score(turns, { temperature, adapter: false });
    return this.episodesOf(segments, { own, reference });
  }

  private episodesOf(
    segments: readonly Segment[],
    { own, reference }: { readonly own?: TurnScores; readonly reference?: TurnScores },
  ): PlayedEpisode[] {
    let number = 0;
    return segments.map(({ turns, end, scores, group }, i) => ({
      end,
      scores,
      group: this.groupOf(group, i),
      turns: turns.map((turn): PlayedTurn => {
        const place = number++;
        // What was drawn from less than the whole distribution is scored as the policy that is trained.
        const oldLogProbs =
          this.policy.isTruncated && own !== undefined
            ? own.logProbs[place]
            : Float64Array.from(decisionsOf(turn), (token) => turn.logProbs[token]);
        return { turn, oldLogProbs, refLogProbs: reference?.logProbs[place], entropies: own?.entropies?.[place] };
      }),
    }));
  }

  /** Episodes of a loop of one's own have no group: those that ended one after the other make one. */
  private groupOf(group: number | undefined, place: number): number {
    const { startsAlike, config } = this.algorithm;
    return startsAlike ? (group ?? Math.floor(place / config.numGenerations)) : 0;
  }

  /** For each episode, whether anything is to be learnt from its group. */
  private whichTeach(episodes: readonly PlayedEpisode[], advantages: readonly (readonly Numbers[])[]): boolean[] {
    const groups = new Set<number>();
    episodes.forEach(({ group }, i) => {
      if (advantages[i].some((turn) => Array.from(turn).some((advantage) => Math.abs(advantage) > NO_ADVANTAGE)))
        groups.add(group);
    });
    return episodes.map(({ group }) => groups.has(group));
  }

  /** The turns as they are trained, in order; undefined for those that are masked. */
  private trainedTurns(
    episodes: readonly PlayedEpisode[],
    advantages: readonly (readonly Numbers[])[],
  ): (TrainedTurn | undefined)[] {
    const { maskTruncatedCompletions, maskTruncatedEpisodes } = this.algorithm.config;
    const turns = episodes.flatMap(({ turns, end }, i) =>
      turns.map((played, t): TrainedTurn | undefined => {
        const isCutOff =
          (maskTruncatedCompletions && played.turn.finishReason === "length") ||
          (maskTruncatedEpisodes && end === "truncated");
        return isCutOff ? undefined : { ...played, advantages: advantages[i][t], policyMask: undefined };
      }),
    );
    const masks = this.algorithm.policyMasks?.(turns.filter((turn) => turn !== undefined));
    if (masks === undefined) return turns;
    let number = 0;
    return turns.map((turn) => turn && { ...turn, policyMask: masks[number++] });
  }

  /** All optimiser steps of an update. */
  private async train(
    segments: readonly Segment[],
    turns: readonly (TrainedTurn | undefined)[],
    factors: Factors,
  ): Promise<StepOutcome[]> {
    const { config } = this.algorithm;
    const outcomes: StepOutcome[] = [];
    for (let iteration = 0; iteration < config.numIterations; iteration++) {
      const minibatches = shuffledMinibatches(segments, config.miniBatchSize ?? Infinity, this.policy.random);
      const meanTokens = countTokens(turns.filter((turn) => turn !== undefined)) / minibatches.length;
      for (const numbers of minibatches) {
        const trained = numbers.flatMap((i) => turns[i] ?? []);
        if (trained.length === 0) continue;
        const size: StepSize = {
          sequences: numbers.length,
          tokens: countTokens(trained),
          meanTokens,
          entropyTokens: countActing(trained),
          entropyFactor: factors.entropy,
        };
        outcomes.push(await this.step(trained, size, factors.learningRate));
      }
    }
    return outcomes;
  }

  private async step(turns: readonly TrainedTurn[], size: StepSize, learningRateFactor: number): Promise<StepOutcome> {
    const { temperature, random } = this.policy;
    const result = await this.updater.step(
      turns.map(({ turn }) => turn),
      (numbers) =>
        this.algorithm.inputs(
          numbers.map((i) => turns[i]),
          size,
        ),
      { temperature, random, learningRateFactor },
    );
    return { turns, result };
  }

  /** Rewards of episodes under TRL's names. */
  private rewardMetrics(episodes: readonly PlayedEpisode[], teaches: readonly boolean[]): Metrics {
    const rewards = episodes.map(({ turns }) => sum(turns.map(({ turn }) => turn.reward)));
    const byGroup = new Map<number, number[]>();
    const teaching = new Set<number>();
    episodes.forEach(({ group }, i) => {
      byGroup.set(group, [...(byGroup.get(group) ?? []), rewards[i]]);
      if (teaches[i]) teaching.add(group);
    });
    return {
      reward: nanMean(rewards),
      reward_std: nanMean(Array.from(byGroup.values(), nanStd)),
      frac_reward_zero_std: 1 - teaching.size / byGroup.size,
    };
  }

  private lossMetrics(outcomes: readonly StepOutcome[]): Metrics {
    const count = (skipped: boolean) => outcomes.filter(({ result }) => result.skipped === skipped).length;
    const counts = { "policy/updates": count(false), "policy/skipped_updates": count(true) };
    if (outcomes.length === 0) return counts;
    const results = outcomes.map(({ result }) => result);
    const names = Object.keys(results[0].perTurn);
    const perToken = names.map((name) => [name, concatenate(results.flatMap(({ perTurn }) => perTurn[name]))]);
    const sums = averages(results.map(({ statistics }) => statistics));
    return {
      loss: sums.loss!,
      ...this.algorithm.metrics(
        { sums, perToken: Object.fromEntries(perToken) as LossStatistics["perToken"] },
        outcomes.flatMap(({ turns }) => turns),
      ),
      grad_norm: mean(results.map(({ gradNorm }) => gradNorm)),
      learning_rate: results.at(-1)!.learningRate,
      ...counts,
    };
  }
}

/** How schedules stand. */
interface Factors {
  readonly learningRate: number;
  readonly entropy: number;
}

interface StepOutcome {
  readonly turns: readonly TrainedTurn[];
  readonly result: UpdateResult;
}

/** False for a reply that no reward function could score: nothing is known of what it is worth. */
function isScored({ turns }: PlayedEpisode): boolean {
  return turns.every(({ turn }) => !Number.isNaN(turn.reward));
}

function countTokens(turns: readonly TrainedTurn[]): number {
  return sum(turns.map(({ oldLogProbs }) => oldLogProbs.length));
}

function countActing(turns: readonly TrainedTurn[]): number {
  return sum(
    turns.map(({ policyMask, oldLogProbs }) => (policyMask === undefined ? oldLogProbs.length : sum(policyMask))),
  );
}

/** Throws INVALID_STATE for a model that the algorithm cannot train. */
function checkModel(model: CausalLM, { name, divergenceSetting }: CriticFreeAlgorithm): void {
  const opening = "Open it by AutoModelForCausalLM.fromPretrained and give it an adapter by getPeftModel";
  const problem = !model.isTrained
    ? `nothing of it is trained. ${opening}`
    : model.valueHead !== undefined
      ? `it has a value head, which nothing would train. ${opening}`
      : divergenceSetting !== undefined && model.adapter === undefined
        ? `${divergenceSetting} weighs the divergence from the model without its adapter, but it has none: its own weights are trained. Set ${divergenceSetting} to 0, or train an adapter`
        : undefined;
  if (problem !== undefined)
    throw new LlamaGymError("INVALID_STATE", `The model cannot be trained by ${name}: ${problem}.`);
}
