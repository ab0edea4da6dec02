import { combineRewards } from "../../algorithms/shared/combine-rewards.js";
import { invalidArgument } from "../../../core/settings.js";
import { withoutNaN, nanMean, nanStd } from "../../algorithms/shared/statistics.js";
import { LlamaGymError } from "../../../core/errors.js";
import type { MaybePromise } from "../../../core/maybe-promise.js";
import type { DatasetPrompt, PromptRow } from "../../data/prompt-dataset.js";

/** What a reward function gets: lists with an entry for each completion, and the data set's other columns under their names. */
export interface RewardBatch {
  readonly prompts: readonly DatasetPrompt[];
  readonly completions: readonly string[];
  readonly completionIds: readonly (readonly number[])[];
  // Columns hold whatever the data set holds.
  readonly [column: string]: readonly unknown[];
}

/**
 * Scores completions: a number for each, at once or later; true is 1, false 0. null and undefined say that the function has no
 * opinion; a completion of which no function has one is not trained.
 */
export type RewardFunction = (batch: RewardBatch) => MaybePromise<readonly (number | boolean | null | undefined)[]>;

/** A completion to be scored. */
export interface RewardSample {
  readonly row: PromptRow;
  readonly completion: string;
  readonly completionIds: readonly number[];
}

export interface RewardScorerOptions {
  /** One for each function; 1 by default. */
  readonly rewardWeights?: readonly number[];
  /** Seconds that a function may take for a batch. */
  readonly timeoutSeconds: number;
  /** Told once of each way in which a function fails. */
  readonly onWarning: (message: string) => void;
}

export interface ScoredSamples {
  /** [samples][functions]; NaN where a function gave none. */
  readonly rewardsPerFunction: readonly (readonly number[])[];
  /** Their weighted sums; NaN for a sample that none could score. */
  readonly rewards: Float64Array;
  /** By TRL's names, and the share of samples that none could score. */
  readonly metrics: Readonly<Record<string, number>>;
}

/** What a function that failed is worth. */
const UNSCORED = Number.NaN;

/** Asks reward functions and lives with what they answer: a failure costs its samples, not the run. */
export class RewardScorer {
  private readonly functions: readonly { readonly name: string; readonly call: RewardFunction }[];
  private readonly warned = new Set<string>();

  /** Throws INVALID_ARGUMENT for what is no function, for none, and for weights of others or of nothing. */
  constructor(
    functions: RewardFunction | readonly RewardFunction[],
    private readonly options: RewardScorerOptions,
  ) {
    const list = checkFunctions(functions);
    if (options.rewardWeights !== undefined) checkWeights(options.rewardWeights, list.length);
    const names = assignUniqueNames(list);
    this.functions = list.map((call, i) => ({ name: names[i], call }));
  }

  /** Scores samples by all functions, which are asked side by side. */
  async score(samples: readonly RewardSample[]): Promise<ScoredSamples> {
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
      metrics: { ...Object.fromEntries(functionMetrics), "rewards/frac_unscored": unscored },
    };
  }

  /** One function's scores. Where it fails on all samples together it is asked for each alone, unless it took too long. */
  private async scoreWithFallback(
    name: string,
    call: RewardFunction,
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

  private async call(name: string, call: RewardFunction, samples: readonly RewardSample[]): Promise<number[]> {
    const result: unknown = await withTimeout(async () => call(buildRewardBatch(samples)), this.options.timeoutSeconds);
    if (!isList(result)) throw new RewardFunctionError(`gave ${describeValue(result)} and not a list of numbers`);
    if (result.length !== samples.length)
      throw new RewardFunctionError(`gave ${result.length} rewards for ${samples.length} completions`);
    return Array.from(result, (reward) => {
      if (reward === null || reward === undefined) return UNSCORED;
      if (typeof reward === "boolean") return Number(reward);
      if (typeof reward === "number" && Number.isFinite(reward)) return reward;
      this.warnOnce(name, `gave ${describeValue(reward)} as a reward`);
      return UNSCORED;
    });
  }

  private warnOnce(name: string, message: string): void {
    const key = `${name} ${message.replace(/\d+/g, "0")}`;
    if (this.warned.has(key)) return;
    this.warned.add(key);
    this.options.onWarning(
      `The reward function ${name} ${message}. Completions that no function can score are left out; training goes on. This is said once.`,
    );
  }
}

function checkFunctions(functions: RewardFunction | readonly RewardFunction[]): readonly RewardFunction[] {
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
  return functions as readonly RewardFunction[];
}

function checkWeights(weights: readonly number[], numFunctions: number): void {
  if (weights.length !== numFunctions)
    throw invalidArgument(`There are ${weights.length} rewardWeights for ${numFunctions} rewardFuncs; each needs one.`);
  const invalidWeight = weights.find((weight) => typeof weight !== "number" || !Number.isFinite(weight));
  if (invalidWeight !== undefined)
    throw invalidArgument(`A reward weight must be a finite number, not ${String(invalidWeight)}.`);
  if (weights.every((weight) => weight === 0))
    throw invalidArgument(
      "All rewardWeights are 0, so that every completion is worth the same and nothing can be learnt.",
    );
}

/** What functions are called in metrics: their own names, with their numbers where they have none or share one. */
function assignUniqueNames(functions: readonly RewardFunction[]): string[] {
  const isShared = (name: string) => functions.filter((call) => call.name === name).length > 1;
  return functions.map(({ name }, i) => (name === "" ? `reward_${i}` : isShared(name) ? `${name}_${i}` : name));
}

/** Throws REWARD_FAILED when nothing can be learnt any more: no completion of several batches in a row could be scored. */
export class UnscoredGuard {
  private unscoredBatches = 0;

  constructor(private readonly maxUnscoredBatches = 5) {}

  check(rewards: ArrayLike<number>): void {
    this.unscoredBatches = withoutNaN(rewards).length === 0 ? this.unscoredBatches + 1 : 0;
    if (this.unscoredBatches < this.maxUnscoredBatches) return;
    throw new LlamaGymError(
      "REWARD_FAILED",
      `No completion of the last ${this.unscoredBatches} batches could be scored, so training stopped. Look at what was said of the reward functions.`,
    );
  }
}

/** Why a call of a reward function gave nothing. */
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
  return { timedOut: false, message: `threw: ${error instanceof Error ? error.message : String(error)}` };
}

async function withTimeout<T>(call: () => Promise<T>, seconds: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new RewardFunctionError(`took longer than ${seconds} s`, true)), seconds * 1000);
  });
  try {
    return await Promise.race([call(), timeout]);
  } finally {
    clearTimeout(timer);
  }
}

function buildRewardBatch(samples: readonly RewardSample[]): RewardBatch {
  const columns = new Set(samples.flatMap(({ row }) => Object.keys(row)));
  columns.delete("prompt");
  return {
    ...Object.fromEntries(Array.from(columns, (name) => [name, samples.map(({ row }) => row[name])])),
    prompts: samples.map(({ row }) => row.prompt),
    completions: samples.map(({ completion }) => completion),
    // Copies: what a function does to its lists must not change what is trained.
    completionIds: samples.map(({ completionIds }) => Array.from(completionIds)),
  };
}

function isList(value: unknown): value is ArrayLike<unknown> {
  return Array.isArray(value) || (ArrayBuffer.isView(value) && !(value instanceof DataView));
}

function describeValue(value: unknown): string {
  return typeof value === "number" ? String(value) : `${typeof value} ${JSON.stringify(value) ?? ""}`.trim();
}
