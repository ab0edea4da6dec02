import { make } from "../../envs/registry/make.js";
import type { Env } from "../../envs/env.js";
import type { Info } from "../../envs/info.js";
import type { SampleMask } from "../../envs/spaces/space.js";
import { generateRandomMap } from "../../envs/toy-text/frozen-lake-map.js";
import { decodeNumber, difference, encode, optionsFrom, type Json } from "./values.js";

/** What it takes to make an environment as a recording did. */
export interface EnvCase {
  readonly env_id: string;
  readonly kwargs: { [key: string]: Json };
  readonly max_episode_steps?: number | null;
  readonly reset_options?: { [key: string]: Json } | null;
  readonly seed: number | string;
  readonly action_seed: number;
}

/** What came out: [observation, info], the actions, [observation, reward, terminated, truncated, info], resets after an end. */
export interface Rollout {
  readonly first: Json;
  readonly actions: Json[];
  readonly steps: Json[];
  readonly resets: Json[];
}

export interface TrajectoryCase extends EnvCase, Rollout {
  readonly actions_from: "sample" | "masked sample" | "script";
  readonly map?: { readonly size: number; readonly p: number; readonly seed: number };
}

export function makeEnv({ env_id, kwargs, max_episode_steps }: EnvCase): Env {
  return make(env_id, { ...optionsFrom(kwargs), ...(max_episode_steps ? { maxEpisodeSteps: max_episode_steps } : {}) });
}

/** Steps an environment by recorded actions, resetting without a seed after each end. */
export async function roll(
  env: Env,
  recorded: EnvCase & { readonly actions: Json[] },
  sampleMask: ((info: Info) => SampleMask | undefined) | undefined,
): Promise<Rollout> {
  const options = recorded.reset_options ? optionsFrom(recorded.reset_options) : undefined;
  const started = await env.reset({ seed: decodeNumber(recorded.seed), options });
  const first = [env.observationSpace.encode(started.observation), encode(started.info)] as Json;
  env.actionSpace.seed(recorded.action_seed);
  const actions: Json[] = [];
  const steps: Json[] = [];
  const resets: Json[] = [];
  let { info } = started;
  for (const recordedAction of recorded.actions) {
    // A sampled action must come out of the space's own stream; the others are given.
    const sampled = sampleMask === undefined ? undefined : env.actionSpace.sample({ mask: sampleMask(info) });
    actions.push(sampled === undefined ? recordedAction : encode(sampled));
    const action = Array.isArray(recordedAction) ? Float32Array.from(recordedAction as number[]) : recordedAction;
    const result = await env.step(action);
    ({ info } = result);
    const { observation, reward, terminated, truncated } = result;
    steps.push([env.observationSpace.encode(observation) as Json, reward, terminated, truncated, encode(info)]);
    if (terminated || truncated) {
      const again = await env.reset({ options });
      ({ info } = again);
      resets.push([steps.length - 1, env.observationSpace.encode(again.observation) as Json, encode(info)]);
    }
  }
  return { first, actions, steps, resets };
}

/** The largest error of a replayed trajectory, and where it is. */
export async function replayTrajectory(recorded: TrajectoryCase): Promise<{ error: number; path: string }> {
  const source = recorded.actions_from;
  const mask = source === "masked sample" ? (info: Info) => info["actionMask"] as SampleMask : () => undefined;
  const rollout = await roll(makeEnv(recorded), recorded, source === "script" ? undefined : mask);
  const { first, actions, steps, resets, map } = recorded;
  if (map !== undefined) {
    const desc = generateRandomMap(map.size, map.p, map.seed);
    const worst = difference(desc, recorded.kwargs["desc"], "/map");
    if (worst.error > 0) return worst;
  }
  return difference({ ...rollout }, { first, actions, steps, resets });
}
