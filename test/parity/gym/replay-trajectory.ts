import { make } from "../../../src/envs/registry/make.js";
import type { Env } from "../../../src/envs/env.js";
import type { Info } from "../../../src/envs/info.js";
import type { SampleMask } from "../../../src/envs/spaces/space.js";
import { generateRandomMap } from "../../../src/envs/toy-text/frozen-lake-map.js";
import { decodeNumber, largestDifference, encodeValue, toOptions, type Json } from "./json-values.js";

/** What it takes to make an environment as a recording did. */
export interface EnvCase {
  readonly env_id: string;
  readonly kwargs: { [key: string]: Json };
  readonly max_episode_steps?: number | null;
  readonly reset_options?: { [key: string]: Json } | null;
  readonly seed: number | string;
  readonly action_seed: number;
}

/**
 * What came out: [observation, info], the actions, [observation, reward, terminated, truncated,
 * info], resets after an end.
 */
export interface Recording {
  readonly first: Json;
  readonly actions: Json[];
  readonly steps: Json[];
  readonly resets: Json[];
}

export interface TrajectoryCase extends EnvCase, Recording {
  readonly actions_from: "sample" | "masked sample" | "script";
  readonly map?: { readonly size: number; readonly p: number; readonly seed: number };
}

export function makeEnv({ env_id, kwargs, max_episode_steps }: EnvCase): Env {
  return make(env_id, { ...toOptions(kwargs), ...(max_episode_steps ? { maxEpisodeSteps: max_episode_steps } : {}) });
}

/** Steps an environment by recorded actions, resetting without a seed after each end. */
export async function replayActions(
  env: Env,
  recorded: EnvCase & { readonly actions: Json[] },
  sampleMask: ((info: Info) => SampleMask | undefined) | undefined,
): Promise<Recording> {
  const options = recorded.reset_options ? toOptions(recorded.reset_options) : undefined;
  const started = await env.reset({ seed: decodeNumber(recorded.seed), options });
  const first = [env.observationSpace.encode(started.observation), encodeValue(started.info)] as Json;
  env.actionSpace.seed(recorded.action_seed);
  const actions: Json[] = [];
  const steps: Json[] = [];
  const resets: Json[] = [];
  let { info } = started;
  for (const recordedAction of recorded.actions) {
    // A sampled action must come out of the space's own stream; the others are given.
    const sampled = sampleMask === undefined ? undefined : env.actionSpace.sample({ mask: sampleMask(info) });
    actions.push(sampled === undefined ? recordedAction : encodeValue(sampled));
    const action = Array.isArray(recordedAction) ? Float32Array.from(recordedAction as number[]) : recordedAction;
    const result = await env.step(action);
    ({ info } = result);
    const { observation, reward, terminated, truncated } = result;
    steps.push([env.observationSpace.encode(observation) as Json, reward, terminated, truncated, encodeValue(info)]);
    if (terminated || truncated) {
      const resetResult = await env.reset({ options });
      ({ info } = resetResult);
      resets.push([steps.length - 1, env.observationSpace.encode(resetResult.observation) as Json, encodeValue(info)]);
    }
  }
  return { first, actions, steps, resets };
}

/** The largest error of a replayed trajectory, and where it is. */
export async function replayTrajectory(recorded: TrajectoryCase): Promise<{ error: number; path: string }> {
  const source = recorded.actions_from;
  const mask = source === "masked sample" ? (info: Info) => info["actionMask"] as SampleMask : () => undefined;
  const rollout = await replayActions(makeEnv(recorded), recorded, source === "script" ? undefined : mask);
  const { first, actions, steps, resets, map } = recorded;
  if (map !== undefined) {
    const desc = generateRandomMap(map.size, map.p, map.seed);
    const mapDifference = largestDifference(desc, recorded.kwargs["desc"], "/map");
    if (mapDifference.error > 0) return mapDifference;
  }
  return largestDifference({ ...rollout }, { first, actions, steps, resets });
}
