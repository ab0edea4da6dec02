import { LlamaGymError } from "../../core/errors.js";
import { RandomStream } from "../../core/random/random-stream.js";
import type { Env } from "../../envs/env.js";
import type { TextInterface } from "../../envs/text-interface.js";
import { randomAction } from "../../rl/agent/random-action.js";
import { EpisodeRunner } from "../../rl/rollout/episode-runner.js";
import { findHiddenStateLag, type ObservedTurn } from "../../rl/rollout/hidden-state.js";
import type { CallLimit } from "../../rl/rollout/with-timeout.js";

const MAX_EPISODES = 512;
const MAX_TURNS = 4096;
/** Environments that are slower are left alone. */
const MAX_SECONDS = 2;

/**
 * Plays random actions in an environment that lists choices, to find how many turns earlier something was observed that the outcome
 * of an action depends on.
 * @returns undefined without evidence, for an environment that is too slow, and if its text interface throws, which training reports
 * @throws ENV_FAILED
 */
export async function findHiddenState(
  env: Env,
  text: TextInterface<unknown, unknown>,
  seed: number,
  settings: CallLimit,
): Promise<number | undefined> {
  try {
    return await play(env, text, seed, settings);
  } catch (error) {
    if (error instanceof LlamaGymError) throw error;
    return undefined;
  }
}

async function play(
  env: Env,
  text: TextInterface<unknown, unknown>,
  seed: number,
  settings: CallLimit,
): Promise<number | undefined> {
  const start = performance.now();
  const runner = new EpisodeRunner(env, { settings });
  const draw = randomAction(env);
  const random = new RandomStream(seed);
  const episodes: ObservedTurn[][] = [];
  let turnCount = 0;
  while (episodes.length < MAX_EPISODES && turnCount < MAX_TURNS) {
    await runner.reset(random.integers(0, 2 ** 31));
    const turns: ObservedTurn[] = [];
    episodes.push(turns);
    let prompt = text.formatObservation(runner.observation, runner.info);
    for (; !runner.isDone && turnCount < MAX_TURNS; turnCount++) {
      const action = draw(runner.observation, random, runner.info);
      const { reward } = await runner.step(action);
      const isTerminated = runner.end === "terminated";
      const next = isTerminated ? "" : text.formatObservation(runner.observation, runner.info);
      turns.push({ prompt, action: JSON.stringify(action), outcome: JSON.stringify([reward, isTerminated, next]) });
      prompt = next;
      if (performance.now() - start > 1000 * MAX_SECONDS) return undefined;
    }
  }
  return findHiddenStateLag(episodes);
}
