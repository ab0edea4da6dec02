import { describeValue } from "../../../core/format.js";
import { combineRewards } from "../../algorithms/shared/combine-rewards.js";
import { withoutNaN, nanMean, nanStd } from "../../algorithms/shared/statistics.js";
import { errorMessage, LlamaGymError, invalidArgument } from "../../../core/errors.js";
import { isReward, MAX_REWARD, REWARD_RULE } from "../../../envs/index.js";
import type { MaybePromise } from "../../../core/maybe-promise.js";
import type { ChatMessage } from "../../../models/text/index.js";
import type { DatasetPrompt, PromptRow } from "../../data/prompt-dataset.js";
import { withTimeout } from "../../../core/with-timeout.js";

/**
 * A completion as reward functions receive it: a text, or with tools the messages of the assistant
 * and of the tools in order.
 */
export type RewardedCompletion = string | readonly ChatMessage[];

/**
 * Arguments of a reward function: lists with an entry per completion, including the dataset's other
 * columns.
 */
export interface RewardBatch<Completion extends RewardedCompletion = string> {
  readonly prompts: readonly DatasetPrompt[];
  readonly completions: readonly Completion[];
  readonly completionIds: readonly (readonly number[])[];
  // Columns of the dataset.
  readonly [column: string]: readonly unknown[];
}

/**
 * Scores completions with a number or boolean each, synchronously or not. null and undefined mean
 * that the function does not apply; completions without any score are excluded from training.
 */
export interface RewardFunction<Completion extends RewardedCompletion = string> {
  (batch: RewardBatch<Completion>): MaybePromise<readonly (number | boolean | null | undefined)[]>;
  /** Returns metrics since its last call, which are logged with those of the rewards. */
  readonly takeMetrics?: () => Readonly<Record<string, number>>;
}

/** A reward function of either form of completions: the trainer's options decide between them. */
export type AnyRewardFunction = RewardFunction | RewardFunction<readonly ChatMessage[]>;

/** A completion to score. */
export interface RewardSample {
  readonly row: PromptRow;
  readonly completion: RewardedCompletion;
  readonly completionIds: readonly number[];
}

export interface RewardScorerOptions {
  /** Weight of each function. Default 1. */
  readonly rewardWeights?: readonly number[];
  /** Time limit of a function for a batch. */
  readonly timeoutSeconds: number;
  /** Receives each kind of failure once. */
  readonly onWarning: (message: string) => void;
}

export interface ScoredSamples {
  /** [samples][functions]; NaN without a score; undefined without functions. */
  readonly rewardsPerFunction: readonly (readonly number[])[] | undefined;
  /** Weighted sums; NaN for samples without any score. */
  readonly rewards: Float64Array;
  /** Metrics with TRL's names, and the fraction of samples without any score. */
  readonly metrics: Readonly<Record<string, number>>;
}

const UNSCORED = Number.NaN;

/** Calls reward functions; a failure leaves its samples unscored and does not stop the run. */
export class RewardScorer {
  private readonly functions: readonly { readonly name: string; readonly call: AnyRewardFunction }[];
  private readonly warned = new Set<string>();

  /**
   * Creates a scorer whose rewards are 0 without functions: a teacher needs none.
   * @throws INVALID_ARGUMENT for invalid functions and weights.
   */
  constructor(
    functions: AnyRewardFunction | readonly AnyRewardFunction[] | undefined,
    private readonly options: RewardScorerOptions,
  ) {
    const list = functions === undefined ? [] : checkFunctions(functions);
    if (options.rewardWeights !== undefined) checkWeights(options.rewardWeights, list.length);
    const names = assignUniqueNames(list);
    this.functions = list.map((call, i) => ({ name: names[i], call }));
  }

  /** Weight of each function; undefined if all are 1. */
  get rewardWeights(): readonly number[] | undefined {
    return this.options.rewardWeights;
  }

  /** Scores samples by all functions concurrently. */
  async score(samples: readonly RewardSample[]): Promise<ScoredSamples> {
    if (this.functions.length === 0)
      return { rewardsPerFunction: undefined, rewards: new Float64Array(samples.length), metrics: {} };
    const columns = await Promise.all(
      this.functions.map(async ({ name, call }) => this.scoreWithFallback(name, call, samples)),
    );
    const rewardsPerFunction = samples.map((_, i) => columns.map((column) => column[i]));
    const rewards = combineRewards(rewardsPerFunction, this.options.rewardWeights);
    const unscored = rewards.filter(Number.isNaN).length / samples.length;
    const functionMetrics = this.functions.flatMap(({ name }, f) => [
      [`rewards/${name}/mean`, nanMean(columns[f])] as const,
      [`rewards/${name}/std`, nanStd(columns[f])] as const,
    ]);
    return {
      rewardsPerFunction,
      rewards,
      metrics: {
        ...Object.fromEntries(functionMetrics),
        "rewards/frac_unscored": unscored,
        ...Object.assign({}, ...this.functions.map(({ call }) => call.takeMetrics?.())),
      },
    };
  }

  /**
   * Calls a function; if it fails on a batch, calls it again for each sample, except after a
   * timeout.
   */
  private async scoreWithFallback(
    name: string,
    call: AnyRewardFunction,
    samples: readonly RewardSample[],
  ): Promise<number[]> {
    try {
      return await this.call(name, call, samples);
    } catch (error) {
      const { timedOut, message } = toFailure(error);
      this.warnOnce(name, message);
      if (timedOut || samples.length === 1) return samples.map(() => UNSCORED);
    }
    const individual: number[] = [];
    for (const sample of samples) individual.push(...(await this.scoreWithFallback(name, call, [sample])));
    return individual;
  }

  private async call(name: string, call: AnyRewardFunction, samples: readonly RewardSample[]): Promise<number[]> {
    const { timeoutSeconds } = this.options;
    const createTimeoutError = () => new RewardFunctionError(`took longer than ${timeoutSeconds} s`, true);
    const result: unknown = await withTimeout(
      () => (call as RewardFunction<RewardedCompletion>)(buildRewardBatch(samples)),
      timeoutSeconds,
      createTimeoutError,
    );
    if (!isList(result))
      throw new RewardFunctionError(`returned ${describeValue(result)} instead of a list of numbers`);
    if (result.length !== samples.length)
      throw new RewardFunctionError(`returned ${result.length} rewards for ${samples.length} completions`);
    return Array.from(result, (reward) => {
      if (reward === null || reward === undefined) return UNSCORED;
      if (typeof reward === "boolean") return Number(reward);
      if (isReward(reward)) return reward;
      this.warnOnce(name, `returned the reward ${describeValue(reward)}, which must be ${REWARD_RULE}`);
      return UNSCORED;
    });
  }

  private warnOnce(name: string, message: string): void {
    const key = `${name} ${message.replace(/\d+/g, "0")}`;
    if (this.warned.has(key)) return;
    this.warned.add(key);
    this.options.onWarning(
      `The reward function ${name} ${message}. Completions without any score are excluded from training. This is reported once.`,
    );
  }
}

function checkFunctions(functions: AnyRewardFunction | readonly AnyRewardFunction[]): readonly AnyRewardFunction[] {
  if (typeof functions === "function") return [functions];
  if (!Array.isArray(functions))
    throw invalidArgument(
      `rewardFuncs must be a function that scores completions, or a list of them, not ${describeValue(functions)}.`,
    );
  if (functions.length === 0)
    throw invalidArgument("rewardFuncs is empty; there must be a function that scores completions.");
  const invalidIndex = functions.findIndex((call) => typeof call !== "function");
  if (invalidIndex >= 0)
    throw invalidArgument(
      `rewardFuncs[${invalidIndex}] is ${JSON.stringify(functions[invalidIndex])}, not a function.`,
    );
  return functions as readonly AnyRewardFunction[];
}

function checkWeights(weights: readonly number[], numFunctions: number): void {
  if (weights.length !== numFunctions)
    throw invalidArgument(
      `There are ${weights.length} rewardWeights for ${numFunctions} rewardFuncs; their numbers must be equal.`,
    );
  const invalidIndex = weights.findIndex((weight) => !isReward(weight));
  if (invalidIndex >= 0)
    throw invalidArgument(
      `rewardWeights[${invalidIndex}] must be a finite number from -${MAX_REWARD} to ${MAX_REWARD}, not ${String(weights[invalidIndex])}.`,
    );
  if (weights.every((weight) => weight === 0))
    throw invalidArgument("All rewardWeights are 0, so there is no learning signal.");
}

/** Returns names for metrics: the functions' names, numbered where they are missing or shared. */
function assignUniqueNames(functions: readonly AnyRewardFunction[]): string[] {
  const isShared = (name: string) => functions.filter((call) => call.name === name).length > 1;
  return functions.map(({ name }, i) => (name === "" ? `reward_${i}` : isShared(name) ? `${name}_${i}` : name));
}

/** Ends a run after several consecutive batches without any score. */
export class UnscoredGuard {
  private unscoredBatches = 0;

  constructor(private readonly maxUnscoredBatches = 5) {}

  check(rewards: ArrayLike<number>): void {
    this.unscoredBatches = withoutNaN(rewards).length === 0 ? this.unscoredBatches + 1 : 0;
    if (this.unscoredBatches < this.maxUnscoredBatches) return;
    throw new LlamaGymError(
      "REWARD_FAILED",
      `No completion of the last ${this.unscoredBatches} batches was scored, so training stopped. See the warnings about the reward functions.`,
    );
  }
}

/** A failed call of a reward function. */
class RewardFunctionError extends Error {
  constructor(
    message: string,
    readonly timedOut = false,
  ) {
    super(message);
  }
}

function toFailure(error: unknown): { readonly timedOut: boolean; readonly message: string } {
  if (error instanceof RewardFunctionError) return error;
  return { timedOut: false, message: `threw: ${errorMessage(error)}` };
}

function buildRewardBatch(samples: readonly RewardSample[]): RewardBatch<RewardedCompletion> {
  const columns = new Set(samples.flatMap(({ row }) => Object.keys(row)));
  columns.delete("prompt");
  return {
    ...Object.fromEntries(Array.from(columns, (name) => [name, samples.map(({ row }) => row[name])])),
    prompts: samples.map(({ row }) => row.prompt),
    completions: samples.map(({ completion }) => structuredClone(completion)),
    // Copies, because a function may modify its arguments.
    completionIds: samples.map(({ completionIds }) => Array.from(completionIds)),
  };
}

function isList(value: unknown): value is ArrayLike<unknown> {
  return Array.isArray(value) || (ArrayBuffer.isView(value) && !(value instanceof DataView));
}
