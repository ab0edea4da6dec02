import { batchValues, batchSpace, unbatch } from "../../../src/envs/spaces/batch.js";
import type { Info } from "../../../src/envs/info.js";
import { batchInfo, type AutoresetMode } from "../../../src/envs/vector/vector-env.js";
import { SyncVectorEnv } from "../../../src/envs/vector/sync-vector-env.js";
import { makeEnv, type EnvCase, type Recording } from "./replay-trajectory.js";
import { decodeNumber, largestDifference, encodeValue, type Json } from "./json-values.js";

export interface VectorCase extends EnvCase, Recording {
  readonly num_envs: number;
  readonly autoreset_mode: string;
}

/** The largest error of a replayed vector environment, and where it is. */
export async function replayVector(recorded: VectorCase): Promise<{ error: number; path: string }> {
  const { num_envs, first, actions, steps, resets } = recorded;
  const replay = await VectorReplay.start(recorded);
  const ours = { first: replay.first, actions: [] as Json[], steps: [] as Json[], resets: [] as Json[] };
  for (const action of actions) {
    ours.actions.push(replay.sampleAction());
    const step = await replay.step(unbatch(replay.envs.singleActionSpace, flatten(action), num_envs));
    ours.steps.push(step.values);
    if (recorded.autoreset_mode === "Disabled" && step.done.includes(true)) {
      ours.resets.push([ours.steps.length - 1, step.done, ...(await replay.resetMasked(step.done))]);
    }
  }
  return largestDifference(ours, { first, actions, steps, resets });
}

const flatten = (value: Json): Json[] => (Array.isArray(value) ? value.flatMap(flatten) : [value]);

/** "NextStep" as "next-step". */
const toAutoresetMode = (name: string) => name.replace(/(?!^)[A-Z]/g, "-$&").toLowerCase() as AutoresetMode;

class VectorReplay {
  private done: boolean[];
  first: Json = null;

  private constructor(
    private readonly recorded: VectorCase,
    readonly envs: SyncVectorEnv,
    private readonly actionSpace = batchSpace(envs.singleActionSpace, envs.numEnvs),
    private readonly observationSpace = batchSpace(envs.singleObservationSpace, envs.numEnvs),
  ) {
    this.done = Array.from({ length: envs.numEnvs }, () => false);
  }

  static async start(recorded: VectorCase): Promise<VectorReplay> {
    const factories = Array.from({ length: recorded.num_envs }, () => () => makeEnv(recorded));
    const mode = toAutoresetMode(recorded.autoreset_mode);
    const replay = new VectorReplay(recorded, await SyncVectorEnv.create(factories, { autoresetMode: mode }));
    const { observations, infos } = await replay.envs.reset({ seed: decodeNumber(recorded.seed) });
    replay.first = [replay.encodeObservations(observations), encodeBatchInfo(infos)];
    replay.actionSpace.seed(recorded.action_seed);
    return replay;
  }

  sampleAction(): Json {
    return this.actionSpace.encode(this.actionSpace.sample()) as Json;
  }

  async step(actions: readonly unknown[]): Promise<{ values: Json; done: boolean[] }> {
    const { observations, rewards, terminated, truncated, infos } = await this.envs.step(actions);
    const info = encodeBatchInfo(infos);
    const wasReset = this.recorded.autoreset_mode === "NextStep" ? this.done[0] : "finalObservation" in infos[0];
    if (wasReset) this.truncateProbabilities(info);
    this.done = terminated.map((end, i) => end || truncated[i]);
    const values = [this.encodeObservations(observations), encodeValue(rewards), [...terminated], [...truncated], info];
    return { values, done: this.done };
  }

  async resetMasked(mask: readonly boolean[]): Promise<Json[]> {
    const { observations, infos } = await this.envs.reset({ resetMask: mask });
    // An environment that was not reset has no info at all.
    return [this.encodeObservations(observations), encodeBatchInfo(infos)];
  }

  private encodeObservations(observations: readonly unknown[]): Json {
    return this.observationSpace.encode(batchValues(this.envs.singleObservationSpace, observations)) as Json;
  }

  /**
   * Gymnasium keeps an info in an array of its first value's type, and these environments' resets
   * give an integer.
   */
  private truncateProbabilities(info: { [key: string]: Json }): void {
    const { prob } = info;
    if (!/^(FrozenLake|CliffWalking)/.test(this.recorded.env_id) || !Array.isArray(prob)) return;
    info["prob"] = prob.map((value) => Math.trunc(Number(value)));
  }
}

function encodeBatchInfo(infos: readonly Info[]): { [key: string]: Json } {
  const info = encodeValue(batchInfo(infos)) as { [key: string]: Json };
  const renamed = { final_observation: "final_obs", _final_observation: "_final_obs" };
  return Object.fromEntries(
    Object.entries(info).map(([name, value]) => [renamed[name as keyof typeof renamed] ?? name, value]),
  );
}
