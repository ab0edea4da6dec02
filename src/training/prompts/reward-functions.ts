import { combineRewards } from "../../algorithms/shared/rewards.js";
import { invalid } from "../../algorithms/shared/settings.js";
import { defined, nanMean, nanStd } from "../../algorithms/shared/statistics.js";
import { LlamaGymError } from "../../errors.js";
import type { MaybePromise } from "../../envs/maybe-promise.js";
import type { Prompt, PromptRow } from "./dataset.js";

/** What a reward function gets: lists with an entry for each completion, and the data set's other columns under their names. */
export interface RewardBatch {
  readonly prompts: readonly Prompt[];
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

export interface RewardOptions {
  /** One for each function; 1 by default. */
  readonly weights?: readonly number[];
  /** Seconds that a function may take for a batch. */
  readonly timeLimit: number;
  /** Told once of each way in which a function fails. */
  readonly warn: (message: string) => void;
}

export interface ScoredSamples {
  /** [samples][functions]; NaN where a function gave none. */
  readonly scores: readonly (readonly number[])[];
  /** Their weighted sums; NaN for a sample that none could score. */
  readonly rewards: Float64Array;
  /** By TRL's names, and the share of samples that none could score. */
  readonly metrics: Readonly<Record<string, number>>;
}

/** What a function that failed is worth. */
const FAILED = Number.NaN;

/** Asks reward functions and lives with what they answer: a failure costs its samples, not the run. */
export class RewardScorer {
  private readonly functions: readonly { readonly name: string; readonly call: RewardFunction }[];
  private readonly told = new Set<string>();

  /** Throws INVALID_ARGUMENT for what is no function, for none, and for weights of others or of nothing. */
  constructor(
    functions: RewardFunction | readonly RewardFunction[],
    private readonly options: RewardOptions,
  ) {
    const list = checkedFunctions(functions);
    if (options.weights !== undefined) checkWeights(options.weights, list.length);
    const names = uniqueNames(list);
    this.functions = list.map((call, i) => ({ name: names[i], call }));
  }

  /** Scores samples by all functions, which are asked side by side. */
  async score(samples: readonly RewardSample[]): Promise<ScoredSamples> {
    const columns = await Promise.all(this.functions.map(async ({ name, call }) => this.ask(name, call, samples)));
    const scores = samples.map((_, i) => columns.map((column) => column[i]));
    const rewards = combineRewards(scores, this.options.weights);
    const unscored = rewards.filter(Number.isNaN).length / samples.length;
    const named = this.functions.flatMap(({ name }, f) => [
      [`rewards/${name}/mean`, nanMean(columns[f])] as const,
      [`rewards/${name}/std`, nanStd(columns[f])] as const,
    ]);
    return { scores, rewards, metrics: { ...Object.fromEntries(named), "rewards/unscored": unscored } };
  }

  /** One function's scores. Where it fails on all samples together it is asked for each alone, unless it took too long. */
  private async ask(name: string, call: RewardFunction, samples: readonly RewardSample[]): Promise<number[]> {
    try {
      return await this.call(name, call, samples);
    } catch (error) {
      const { timedOut, message } = failureOf(error);
      this.tell(name, message);
      if (timedOut || samples.length === 1) return samples.map(() => FAILED);
    }
    const alone: number[] = [];
    for (const sample of samples) alone.push(...(await this.ask(name, call, [sample])));
    return alone;
  }

  private async call(name: string, call: RewardFunction, samples: readonly RewardSample[]): Promise<number[]> {
    const given: unknown = await withinTime(async () => call(batchOf(samples)), this.options.timeLimit);
    if (!isList(given)) throw new Failure(`gave ${describe(given)} and not a list of numbers`);
    if (given.length !== samples.length)
      throw new Failure(`gave ${given.length} rewards for ${samples.length} completions`);
    return Array.from(given, (reward) => {
      if (reward === null || reward === undefined) return FAILED;
      if (typeof reward === "boolean") return Number(reward);
      if (typeof reward === "number" && Number.isFinite(reward)) return reward;
      this.tell(name, `gave ${describe(reward)} as a reward`);
      return FAILED;
    });
  }

  private tell(name: string, message: string): void {
    const key = `${name} ${message.replace(/\d+/g, "0")}`;
    if (this.told.has(key)) return;
    this.told.add(key);
    this.options.warn(
      `The reward function ${name} ${message}. Completions that no function can score are left out; training goes on. This is said once.`,
    );
  }
}

function checkedFunctions(functions: RewardFunction | readonly RewardFunction[]): readonly RewardFunction[] {
  if (typeof functions === "function") return [functions];
  if (!Array.isArray(functions))
    throw invalid(
      `rewardFuncs must be a function that scores completions, or a list of them, not ${describe(functions)}.`,
    );
  if (functions.length === 0) throw invalid("rewardFuncs is empty; there must be a function that scores completions.");
  const wrong = functions.findIndex((call) => typeof call !== "function");
  if (wrong >= 0) throw invalid(`rewardFuncs[${wrong}] is ${JSON.stringify(functions[wrong])}, not a function.`);
  return functions as readonly RewardFunction[];
}

function checkWeights(weights: readonly number[], functions: number): void {
  if (weights.length !== functions)
    throw invalid(`There are ${weights.length} rewardWeights for ${functions} rewardFuncs; each needs one.`);
  const bad = weights.find((weight) => typeof weight !== "number" || !Number.isFinite(weight));
  if (bad !== undefined) throw invalid(`A reward weight must be a finite number, not ${String(bad)}.`);
  if (weights.every((weight) => weight === 0))
    throw invalid("All rewardWeights are 0, so that every completion is worth the same and nothing can be learnt.");
}

/** What functions are called in metrics: their own names, with their numbers where they have none or share one. */
function uniqueNames(functions: readonly RewardFunction[]): string[] {
  const isShared = (name: string) => functions.filter((call) => call.name === name).length > 1;
  return functions.map(({ name }, i) => (name === "" ? `reward_${i}` : isShared(name) ? `${name}_${i}` : name));
}

/** Throws REWARD_FAILED when nothing can be learnt any more: no completion of several batches in a row could be scored. */
export class ScoringWatch {
  private empty = 0;

  constructor(private readonly most = 5) {}

  check(rewards: ArrayLike<number>): void {
    this.empty = defined(rewards).length === 0 ? this.empty + 1 : 0;
    if (this.empty < this.most) return;
    throw new LlamaGymError(
      "REWARD_FAILED",
      `No completion of the last ${this.empty} batches could be scored, so training stopped. Look at what was said of the reward functions.`,
    );
  }
}

/** Why a call of a reward function gave nothing. */
class Failure extends Error {
  constructor(
    message: string,
    readonly timedOut = false,
  ) {
    super(message);
  }
}

function failureOf(error: unknown): { readonly timedOut: boolean; readonly message: string } {
  if (error instanceof Failure) return error;
  return { timedOut: false, message: `threw: ${error instanceof Error ? error.message : String(error)}` };
}

async function withinTime<T>(call: () => Promise<T>, seconds: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Failure(`took longer than ${seconds} s`, true)), seconds * 1000);
  });
  try {
    return await Promise.race([call(), late]);
  } finally {
    clearTimeout(timer);
  }
}

function batchOf(samples: readonly RewardSample[]): RewardBatch {
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

function describe(value: unknown): string {
  return typeof value === "number" ? String(value) : `${typeof value} ${JSON.stringify(value) ?? ""}`.trim();
}
