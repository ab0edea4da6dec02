import { batch, batchSpace, unbatch } from "../../envs/spaces/batch.js";
import type { Info } from "../../envs/info.js";
import { batchInfo } from "../../envs/vector/batch-info.js";
import { SyncVectorEnv } from "../../envs/vector/sync-vector-env.js";
import type { AutoresetMode } from "../../envs/vector/vector-env.js";
import { makeEnv, type EnvCase, type Rollout } from "./trajectory.js";
import { decodeNumber, difference, encode, type Json } from "./values.js";

export interface VectorCase extends EnvCase, Rollout {
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
    const step = await replay.step(unbatch(replay.vector.singleActionSpace, flatten(action), num_envs));
    ours.steps.push(step.values);
    if (recorded.autoreset_mode === "Disabled" && step.ended.includes(true)) {
      ours.resets.push([ours.steps.length - 1, step.ended, ...(await replay.resetWhere(step.ended))]);
    }
  }
  return difference(ours, { first, actions, steps, resets });
}

const flatten = (value: Json): Json[] => (Array.isArray(value) ? value.flatMap(flatten) : [value]);

/** "NextStep" as "next-step". */
const autoresetMode = (name: string) => name.replace(/(?!^)[A-Z]/g, "-$&").toLowerCase() as AutoresetMode;

class VectorReplay {
  private ended: boolean[];
  first: Json = null;

  private constructor(
    private readonly recorded: VectorCase,
    readonly vector: SyncVectorEnv,
    private readonly actionSpace = batchSpace(vector.singleActionSpace, vector.numEnvs),
    private readonly observationSpace = batchSpace(vector.singleObservationSpace, vector.numEnvs),
  ) {
    this.ended = Array.from({ length: vector.numEnvs }, () => false);
  }

  static async start(recorded: VectorCase): Promise<VectorReplay> {
    const factories = Array.from({ length: recorded.num_envs }, () => () => makeEnv(recorded));
    const mode = autoresetMode(recorded.autoreset_mode);
    const replay = new VectorReplay(recorded, await SyncVectorEnv.create(factories, { autoresetMode: mode }));
    const { observations, infos } = await replay.vector.reset({ seed: decodeNumber(recorded.seed) });
    replay.first = [replay.encodeObservations(observations), batchedInfo(infos)];
    replay.actionSpace.seed(recorded.action_seed);
    return replay;
  }

  sampleAction(): Json {
    return this.actionSpace.encode(this.actionSpace.sample()) as Json;
  }

  async step(actions: readonly unknown[]): Promise<{ values: Json; ended: boolean[] }> {
    const { observations, rewards, terminated, truncated, infos } = await this.vector.step(actions);
    const info = batchedInfo(infos);
    const wasReset = this.recorded.autoreset_mode === "NextStep" ? this.ended[0] : "finalObservation" in infos[0];
    if (wasReset) this.truncateProbabilities(info);
    this.ended = terminated.map((end, i) => end || truncated[i]);
    const values = [this.encodeObservations(observations), encode(rewards), [...terminated], [...truncated], info];
    return { values, ended: this.ended };
  }

  async resetWhere(mask: readonly boolean[]): Promise<Json[]> {
    const { observations, infos } = await this.vector.reset({ resetMask: mask });
    // An environment that was not reset has no info at all.
    return [this.encodeObservations(observations), batchedInfo(infos)];
  }

  private encodeObservations(observations: readonly unknown[]): Json {
    return this.observationSpace.encode(batch(this.vector.singleObservationSpace, observations)) as Json;
  }

  /** Gymnasium keeps an info in an array of its first value's type, and these environments' resets give an integer. */
  private truncateProbabilities(info: { [key: string]: Json }): void {
    const { prob } = info;
    if (!/^(FrozenLake|CliffWalking)/.test(this.recorded.env_id) || !Array.isArray(prob)) return;
    info["prob"] = prob.map((value) => Math.trunc(Number(value)));
  }
}

function batchedInfo(infos: readonly Info[]): { [key: string]: Json } {
  const info = encode(batchInfo(infos)) as { [key: string]: Json };
  const renamed = { final_observation: "final_obs", _final_observation: "_final_obs" };
  return Object.fromEntries(
    Object.entries(info).map(([name, value]) => [renamed[name as keyof typeof renamed] ?? name, value]),
  );
}
