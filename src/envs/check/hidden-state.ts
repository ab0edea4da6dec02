import { RandomStream } from "../../core/random/random-stream.js";
import type { Env, ResetResult, StepResult } from "../env.js";
import { randomAction } from "../random-action.js";
import type { TextInterface } from "../text-interface.js";

/** A turn as the model sees it. */
export interface ObservedTurn {
  readonly prompt: string;
  readonly action: string;
  /** The reward and the next prompt; undefined if they do not follow from the action. */
  readonly outcome: string | undefined;
}

/** Largest number of turns that is looked back. */
const MAX_LAG = 8;
const PERMUTATIONS = 100;
/**
 * Deviations from chance that count as evidence; by chance, one in a million comparisons exceeds
 * them.
 */
const MIN_DEVIATIONS = 5;

/**
 * Returns how many turns earlier something was observed that the outcome of an action depends on,
 * although the prompt does not contain it: the largest such number up to 8; undefined if there is
 * no evidence. Compares turns with equal prompts and actions: if the prompt says everything, their
 * outcomes are independent of earlier prompts, which a permutation test of the chi-squared
 * statistic decides.
 */
export function findHiddenStateLag(episodes: readonly (readonly ObservedTurn[])[]): number | undefined {
  for (let lag = MAX_LAG; lag > 0; lag--) if (dependsOnEarlier(episodes, lag)) return lag;
  return undefined;
}

/** Formats a lag as "1 turn" or "2 turns". */
export const formatLag = (lag: number): string => (lag === 1 ? "1 turn" : `${lag} turns`);

const MAX_EPISODES = 512;
const MAX_TURNS = 4096;
/** Environments that are slower are left alone. */
const MAX_SECONDS = 2;

/** Calls of an environment. */
export interface EnvCalls {
  reset(seed: number): Promise<ResetResult<unknown>>;
  step(action: unknown): Promise<StepResult<unknown>>;
}

/** What random play shows of an environment's state. */
export interface HiddenState {
  /** As `findHiddenStateLag` returns it. */
  readonly lag: number | undefined;
  /** Whether episodes with the same seed and actions are equal. */
  readonly followsSeed: boolean;
  /** Share of the turns whose observation was a new one. */
  readonly newObservationRatio: number;
}

/** Why `followsSeed` is false for an environment, after its name. */
export const SEED_CAUSE =
  "ignores the seed of `reset`, or uses Math.random. Draw from `this.random` after `this.reseed(seed)`";

/** Episodes that are played again, and the turns of each that are compared. */
const REPLAYED_EPISODES = 4;
const REPLAYED_TURNS = 16;

/**
 * Plays random actions, then looks for hidden state as `findHiddenStateLag`, and whether the first
 * episodes follow from their seeds. Returns undefined for a slow environment.
 */
export async function findHiddenState(
  calls: EnvCalls,
  env: Pick<Env, "actionSpace"> & { readonly text: TextInterface<unknown, unknown> },
  seed: number,
): Promise<HiddenState | undefined> {
  const start = performance.now();
  const { text } = env;
  const draw = randomAction(env);
  const random = new RandomStream(seed);
  const episodes: ObservedTurn[][] = [];
  const played: { readonly seed: number; readonly actions: unknown[] }[] = [];
  let turnCount = 0;
  while (episodes.length < MAX_EPISODES && turnCount < MAX_TURNS) {
    const episodeSeed = random.integers(0, 2 ** 31);
    const actions: unknown[] = [];
    played.push({ seed: episodeSeed, actions });
    let { observation, info } = await calls.reset(episodeSeed);
    const turns: ObservedTurn[] = [];
    episodes.push(turns);
    let prompt = text.formatObservation(observation, info);
    for (let isOver = false; !isOver && turnCount < MAX_TURNS; turnCount++) {
      const action = draw(observation, random, info);
      const result = await calls.step(action);
      actions.push(action);
      ({ observation, info } = result);
      const { next, outcome } = describeStep(text, result);
      turns.push({ prompt, action: text.formatAction(action), outcome });
      prompt = next;
      isOver = result.terminated || result.truncated;
      if (performance.now() - start > 1000 * MAX_SECONDS) return undefined;
    }
  }
  const followsSeed = await replay(calls, text, played.slice(0, REPLAYED_EPISODES), episodes);
  const observations = new Set(episodes.flatMap((turns) => turns.map(({ prompt }) => prompt)));
  return { lag: findHiddenStateLag(episodes), followsSeed, newObservationRatio: observations.size / turnCount };
}

function describeStep(
  text: TextInterface<unknown, unknown>,
  { observation, info, reward, terminated }: StepResult<unknown>,
) {
  const next = terminated ? "" : text.formatObservation(observation, info);
  return { next, outcome: JSON.stringify([reward, terminated, next]) };
}

/** Plays episodes again, and returns whether the model sees the same. */
async function replay(
  calls: EnvCalls,
  text: TextInterface<unknown, unknown>,
  played: readonly { readonly seed: number; readonly actions: readonly unknown[] }[],
  episodes: readonly (readonly ObservedTurn[])[],
): Promise<boolean> {
  for (const [i, { seed, actions }] of played.entries()) {
    const turns = episodes[i];
    const { observation, info } = await calls.reset(seed);
    if (turns.length > 0 && text.formatObservation(observation, info) !== turns[0].prompt) return false;
    for (let j = 0; j < Math.min(turns.length, REPLAYED_TURNS); j++) {
      // An action that was taken before and is refused now is a difference too.
      const result = await calls.step(actions[j]).catch(() => undefined);
      if (result === undefined || describeStep(text, result).outcome !== turns[j].outcome) return false;
    }
  }
  return true;
}

/** Numbers of the earlier prompts and of the outcomes of turns with equal prompts and actions. */
interface Stratum {
  readonly earlier: number[];
  readonly outcomes: number[];
}

function dependsOnEarlier(episodes: readonly (readonly ObservedTurn[])[], lag: number): boolean {
  const strata = collectStrata(episodes, lag);
  if (strata.length === 0) return false;
  const observed = sumChiSquared(strata);
  const random = new RandomStream(lag);
  const permuted: number[] = [];
  while (permuted.length < PERMUTATIONS) {
    for (const { earlier } of strata) random.shuffle(earlier);
    const value = sumChiSquared(strata);
    // Chance explains what was observed; more permutations would not change that.
    if (value >= observed) return false;
    permuted.push(value);
  }
  const mean = permuted.reduce((sum, value) => sum + value, 0) / PERMUTATIONS;
  const deviation = Math.sqrt(permuted.reduce((sum, value) => sum + (value - mean) ** 2, 0) / PERMUTATIONS);
  return deviation > 0 && observed > mean + MIN_DEVIATIONS * deviation;
}

function collectStrata(episodes: readonly (readonly ObservedTurn[])[], lag: number): Stratum[] {
  const numbers = new Map<string, number>();
  const numberOf = (text: string) => {
    const number = numbers.get(text) ?? numbers.size;
    numbers.set(text, number);
    return number;
  };
  const strata = new Map<string, Stratum>();
  for (const turns of episodes)
    for (let i = lag; i < turns.length; i++) {
      const { prompt, action, outcome } = turns[i];
      if (outcome === undefined) continue;
      const key = JSON.stringify([prompt, action]);
      const stratum = strata.get(key) ?? { earlier: [], outcomes: [] };
      stratum.earlier.push(numberOf(turns[i - lag].prompt));
      stratum.outcomes.push(numberOf(outcome));
      strata.set(key, stratum);
    }
  return [...strata.values()].filter(
    ({ earlier, outcomes }) => new Set(earlier).size > 1 && new Set(outcomes).size > 1,
  );
}

/** Returns the sum of the chi-squared statistics of independence. */
function sumChiSquared(strata: readonly Stratum[]): number {
  let sum = 0;
  for (const { earlier, outcomes } of strata) {
    const [rows, columns] = [count(earlier), count(outcomes)];
    const cells = new Map<string, { readonly expected: number; count: number }>();
    for (let i = 0; i < earlier.length; i++) {
      const key = `${earlier[i]},${outcomes[i]}`;
      const expected = (rows.get(earlier[i])! * columns.get(outcomes[i])!) / earlier.length;
      const cell = cells.get(key) ?? { expected, count: 0 };
      cell.count++;
      cells.set(key, cell);
    }
    // Empty cells add their expected counts: in all, the statistic is the sum of count squared /
    // expected, minus the total.
    for (const { expected, count: observed } of cells.values()) sum += observed ** 2 / expected;
    sum -= earlier.length;
  }
  return sum;
}

function count(values: readonly number[]): Map<number, number> {
  const counts = new Map<number, number>();
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1);
  return counts;
}
