import { invalidEnv } from "../../core/errors.js";
import { saveEnvState, type Env, type EnvState, type StepResult } from "../env.js";
import { maxDifference } from "./check-space.js";
import type { EnvProbe } from "./env-probe.js";

/** Differences up to this are attributed to rounding. */
const TOLERANCE = 1e-5;
const NUM_STEPS = 20;

function requireEqual(probe: EnvProbe, subject: string, a: unknown, b: unknown, cause: string): void {
  const difference = maxDifference(a, b);
  if (difference === 0) return;
  if (difference <= TOLERANCE) probe.warn(`${subject} are close but not equal (they differ by ${difference}).`);
  else throw invalidEnv(`${subject} differ: ${cause}`);
}

const getRandomState = (env: Env) => JSON.stringify(env.random.getState());

/** Checks that a seed determines the episode, and that different seeds give different episodes. */
export async function checkSeeding(probe: EnvProbe): Promise<void> {
  const { env } = probe;
  const reseedHint = "most likely reset() does not call `this.reseed(seed)` first.";
  const first = await probe.reset({ seed: 123 });
  if (env.randomSeed !== 123)
    throw invalidEnv(`After reset({ seed: 123 }) the random stream was not seeded with 123: ${reseedHint}`);
  const firstState = getRandomState(env);
  const firstUnseeded = await probe.reset({});
  const second = await probe.reset({ seed: 123 });
  const secondState = getRandomState(env);
  const secondUnseeded = await probe.reset({});
  const cause = "most likely some randomness does not come from `this.random`, such as Math.random().";
  requireEqual(probe, "The observations of two reset({ seed: 123 })", first.observation, second.observation, cause);
  requireEqual(
    probe,
    "The observations of the unseeded resets after two reset({ seed: 123 })",
    firstUnseeded.observation,
    secondUnseeded.observation,
    "most likely state leaks from episode to episode, or reset() seeds the random stream without a seed.",
  );
  if (firstState !== secondState)
    throw invalidEnv(
      "After two reset({ seed: 123 }) the random stream is in different states: most likely reset() draws a different number of random numbers.",
    );
  await probe.reset({ seed: 456 });
  if (getRandomState(env) === firstState)
    throw invalidEnv(
      `The random stream is in the same state after reset({ seed: 123 }) and reset({ seed: 456 }): ${reseedHint}`,
    );
}

/** Checks that a seed and an action determine the result of a step. */
export async function checkStepDeterminism(probe: EnvProbe): Promise<void> {
  const { env } = probe;
  env.actionSpace.seed(123);
  const action = env.actionSpace.sample();
  const runOnce = async () => {
    await probe.reset({ seed: 123 });
    const result = await probe.step(action);
    return { result, state: getRandomState(env) };
  };
  const [first, second] = [await runOnce(), await runOnce()];
  const cause =
    "most likely some randomness does not come from `this.random`, or reset() keeps state of the last episode.";
  if (first.state !== second.state)
    throw invalidEnv(`The random stream differs after the same seed and action: ${cause}`);
  const [a, b] = [first.result, second.result];
  requireEqual(probe, "The observations of the same step", a.observation, b.observation, cause);
  requireEqual(probe, "The rewards of the same step", a.reward, b.reward, cause);
  requireEqual(probe, "`terminated` of the same step", a.terminated, b.terminated, cause);
  requireEqual(probe, "The infos of the same step", a.info, b.info, cause);
  if (a.truncated && !a.terminated)
    throw invalidEnv("The first step is truncated: most likely reset() does not reset a step counter.");
}

/** Checks that an environment continues identically after its state is saved and restored. */
export async function checkSavedState(probe: EnvProbe): Promise<void> {
  const { env } = probe;
  await probe.reset({ seed: 321 });
  const state = tryGetState(probe);
  if (state === undefined) return;
  env.actionSpace.seed(321);
  const actions = Array.from({ length: NUM_STEPS }, () => env.actionSpace.sample());
  const first = await runSteps(probe, actions);
  await probe.reset({ seed: 654 });
  env.setState(JSON.parse(JSON.stringify(state)) as EnvState);
  const second = await runSteps(probe, actions);
  const cause = "most likely saveState() omits a field that step() reads.";
  requireEqual(probe, "The steps after getState() and after setState()", first, second, cause);
}

function tryGetState(probe: EnvProbe): EnvState | undefined {
  try {
    return saveEnvState(probe.env);
  } catch (error) {
    probe.warn(`Saving the state failed, so runs cannot be resumed within an episode: ${(error as Error).message}`);
    return undefined;
  }
}

async function runSteps(probe: EnvProbe, actions: readonly unknown[]): Promise<StepResult<unknown>[]> {
  const results: StepResult<unknown>[] = [];
  for (const action of actions) {
    const result = await probe.step(action);
    results.push(result);
    if (result.terminated || result.truncated) break;
  }
  return results;
}
