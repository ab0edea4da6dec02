import { invalidEnv } from "../../core/errors.js";
import { mean } from "../../core/numbers.js";
import { RandomStream } from "../../core/random/random-stream.js";
import type { Env, KnownReturns } from "../env.js";
import type { Policy } from "../policy.js";
import { Text } from "../spaces/text.js";
import { getChoices } from "../text-interface.js";
import type { EnvProbe } from "./env-probe.js";

const MIN_EPISODES = 10;
const MAX_EPISODES = 100;
/** Steps after which no further episode starts. */
const MAX_STEPS = 10_000;
/** Standard errors by which a measured mean may miss the known one. */
const MAX_STANDARD_ERRORS = 4;
/**
 * Deviation allowed in addition, relative to the known return and to the distance between the
 * random and the best one.
 */
const RETURN_TOLERANCE = 0.03;
const RANGE_TOLERANCE = 0.003;

/**
 * Checks that random actions and the registered expert reproduce the known returns of the
 * environment's spec.
 */
export async function checkReturns(probe: EnvProbe): Promise<void> {
  const { env } = probe;
  const { knownReturns, expert } = env.spec ?? {};
  if (knownReturns === undefined) return;
  await checkMeanReturn(env, "random", knownReturns, createRandomPolicy(env));
  if (expert !== undefined) await checkMeanReturn(env, "best", knownReturns, expert(env));
}

/**
 * Draws from the action space; where actions are free text or choices depend on the state, among
 * the choices.
 */
function createRandomPolicy(env: Env): Policy {
  const stream = new RandomStream(17);
  env.actionSpace.seed(17);
  const { text, actionSpace } = env;
  const hasChoices = actionSpace instanceof Text || typeof text?.choices === "function";
  if (text === undefined || !hasChoices) return () => actionSpace.sample();
  return (observation, info) => {
    const choices = getChoices(text, observation, info) ?? [];
    if (choices.length === 0) return actionSpace.sample();
    return text.parseAction(stream.choice(choices), observation, info);
  };
}

async function checkMeanReturn(
  env: Env,
  name: "random" | "best",
  knownReturns: KnownReturns,
  policy: Policy,
): Promise<void> {
  const expected = knownReturns[name];
  const returns = await playEpisodes(env, policy);
  const meanReturn = mean(returns);
  const range = Math.abs(knownReturns.best - knownReturns.random);
  const tolerance = RETURN_TOLERANCE * Math.abs(expected) + RANGE_TOLERANCE * range;
  const allowed =
    tolerance + MAX_STANDARD_ERRORS * Math.sqrt(estimateVariance(returns, expected, range) / returns.length);
  if (Math.abs(meanReturn - expected) <= allowed) return;
  throw invalidEnv(
    `knownReturns.${name} is ${expected}, but ${name === "random" ? "random actions" : "the expert"} gave a mean return of ` +
      `${meanReturn.toPrecision(4)} over ${returns.length} episodes. Correct the number, the rewards or the expert.`,
  );
}

/**
 * Sample variance; where almost no episode is rewarded, at least that of a rare reward with the
 * expected mean.
 */
function estimateVariance(returns: readonly number[], expected: number, range: number): number {
  const meanReturn = mean(returns);
  const variance = returns.reduce((sum, value) => sum + (value - meanReturn) ** 2, 0) / Math.max(1, returns.length - 1);
  const isSparse = returns.filter((value) => value === 0).length > 0.8 * returns.length;
  return isSparse ? Math.max(variance, Math.abs(expected) * range) : variance;
}

async function playEpisodes(env: Env, policy: Policy): Promise<number[]> {
  const { maxEpisodeSteps = Infinity } = env.spec ?? {};
  const returns: number[] = [];
  let steps = 0;
  while (returns.length < MIN_EPISODES || (returns.length < MAX_EPISODES && steps < MAX_STEPS)) {
    let { observation, info } = await env.reset({ seed: 1000 + returns.length });
    let total = 0;
    for (let i = 0; i < maxEpisodeSteps; i++) {
      const result = await env.step(policy(observation, info));
      ({ observation, info } = result);
      total += result.reward;
      steps++;
      if (result.terminated || result.truncated) break;
    }
    returns.push(total);
  }
  return returns;
}
