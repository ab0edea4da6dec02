import type { Env } from "../../../src/envs/env.js";
import { LlamaGymError } from "../../../src/core/errors.js";
import { Autoreset, OrderEnforcing, TimeAwareObservation, TimeLimit } from "../../../src/envs/wrappers/time.js";
import {
  ClipAction,
  RescaleAction,
  DiscretizeAction,
  RepeatAction,
  StickyAction,
} from "../../../src/envs/wrappers/action.js";
import {
  DelayObservation,
  FlattenObservation,
  FrameStackObservation,
  RescaleObservation,
  TransformObservation,
} from "../../../src/envs/wrappers/observation.js";
import { NormalizeObservation } from "../../../src/envs/wrappers/normalize-observation.js";
import { NormalizeReward, ClipReward, TransformReward } from "../../../src/envs/wrappers/reward.js";
import { PassiveEnvChecker } from "../../../src/envs/wrappers/passive-env-checker.js";
import { RecordEpisodeStatistics } from "../../../src/envs/wrappers/record-episode.js";
import { makeEnv, replayActions, type EnvCase, type Recording } from "./replay-trajectory.js";
import { largestDifference, toOptions, type Json } from "./json-values.js";

export interface WrapperCase extends EnvCase, Recording {
  readonly wrappers: readonly (readonly [name: string, options: { [key: string]: Json }])[];
}

type FloatEnv = Env<Float32Array, Float32Array>;
type Options = { readonly [name: string]: never };

/** The functions that recordings name. */
const observationFunctions: Readonly<Record<string, (observation: Float32Array) => Float32Array>> = {
  "obs*2+1": (observation) => observation.map((value) => Math.fround(value * 2) + 1),
};
const rewardFunctions: Readonly<Record<string, (reward: number) => number>> = {
  "10*r-1": (reward) => 10 * reward - 1,
};

function lookUp<T>(functions: Readonly<Record<string, T>>, name: unknown): T {
  const found = functions[name as string];
  if (found === undefined)
    throw new LlamaGymError("FORMAT_UNSUPPORTED", `The function ${JSON.stringify(name)} is not known.`);
  return found;
}

/** Wrappers by Gymnasium's names. */
const wrappers: Readonly<Record<string, (env: Env, options: Options) => Env>> = {
  Autoreset: (env) => new Autoreset(env),
  ClipAction: (env) => new ClipAction(env as FloatEnv),
  ClipReward: (env, options) => new ClipReward(env, options),
  DelayObservation: (env, options) => new DelayObservation(env, { delay: options["delay"] }),
  DiscretizeAction: (env, options) => new DiscretizeAction(env as FloatEnv, { bins: options["bins"] }),
  FlattenObservation: (env) => new FlattenObservation(env),
  FrameStackObservation: (env, { stackSize, paddingType }) =>
    new FrameStackObservation(env, { stackSize, padding: paddingType }),
  NormalizeObservation: (env, options) => new NormalizeObservation(env as FloatEnv, options),
  NormalizeReward: (env, options) => new NormalizeReward(env, options),
  OrderEnforcing: (env) => new OrderEnforcing(env),
  PassiveEnvChecker: (env) => new PassiveEnvChecker(env),
  RecordEpisodeStatistics: (env, options) => new RecordEpisodeStatistics(env, options),
  RepeatAction: (env, options) => new RepeatAction(env, { numRepeats: options["numRepeats"] }),
  RescaleAction: (env, { minAction, maxAction }) => new RescaleAction(env as FloatEnv, { minAction, maxAction }),
  RescaleObservation: (env, { minObs, maxObs }) =>
    new RescaleObservation(env as FloatEnv, { minObservation: minObs, maxObservation: maxObs }),
  StickyAction: (env, { repeatActionProbability, repeatActionDuration }) =>
    new StickyAction(env, { repeatActionProbability, repeatActionDuration }),
  TimeAwareObservation: (env, { flatten, normalizeTime, dictTimeKey }) =>
    new TimeAwareObservation(env, { flatten, normalizeTime, timeKey: dictTimeKey }),
  TimeLimit: (env, options) => new TimeLimit(env, { maxEpisodeSteps: options["maxEpisodeSteps"] }),
  TransformObservation: (env, { func }) =>
    new TransformObservation(env as FloatEnv, { observation: lookUp(observationFunctions, func) }),
  TransformReward: (env, { func }) => new TransformReward(env, { reward: lookUp(rewardFunctions, func) }),
};

/** The largest error of a replayed chain of wrappers, and where it is. */
export async function replayWrapper(recorded: WrapperCase): Promise<{ error: number; path: string }> {
  let env = makeEnv(recorded);
  for (const [name, options] of recorded.wrappers) env = lookUp(wrappers, name)(env, toOptions(options) as Options);
  const rollout = await replayActions(env, recorded, () => undefined);
  for (const step of rollout.steps) clearTimes(step);
  const { first, actions, steps, resets } = recorded;
  return largestDifference({ ...rollout }, { first, actions, steps, resets });
}

/** Seconds differ from run to run; recordings hold null in their place. */
function clearTimes(step: Json): void {
  const info = (step as Json[])[4] as { [key: string]: Json };
  for (const part of Object.values(info)) {
    if (typeof part === "object" && part !== null && !Array.isArray(part) && "t" in part) part["t"] = null;
  }
}
