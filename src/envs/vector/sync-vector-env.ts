import { LlamaGymError, invalidArgument, invalidEnv } from "../../core/errors.js";
import { checkOptions } from "../../core/settings.js";
import { requireEnv, type Env, type RenderFrame, type RenderMode, type ResetResult } from "../env.js";
import type { MaybePromise } from "../../core/maybe-promise.js";
import type { Space } from "../spaces/space.js";
import type { TextInterface } from "../text-interface.js";
import { SubEnv } from "./sub-env.js";
import {
  checkLength,
  stackResets,
  stackSteps,
  splitResetOptions,
  vectorOptionNames,
  type AutoresetMode,
  type VectorEnv,
  type VectorOptions,
  type VectorResetOptions,
  type VectorResetResult,
  type VectorState,
  type VectorStepResult,
} from "./vector-env.js";

/** Several environments in this process; asynchronous ones step concurrently. */
export class SyncVectorEnv<Observation = unknown, Action = unknown> implements VectorEnv<Observation, Action> {
  readonly numEnvs: number;
  readonly autoresetMode: AutoresetMode;
  readonly singleObservationSpace: Space<Observation>;
  readonly singleActionSpace: Space<Action>;
  readonly text: TextInterface<Observation, Action> | undefined;
  private readonly subEnvs: readonly SubEnv[];
  private readonly onFailure: "stop" | "continue";
  private lastResults: ResetResult<Observation>[] = [];

  private constructor(
    envs: readonly Env<Observation, Action>[],
    factories: readonly (() => MaybePromise<Env<Observation, Action>>)[],
    options: VectorOptions,
  ) {
    const { autoresetMode = "next-step", onFailure = "stop" } = options;
    const [first] = envs;
    this.numEnvs = envs.length;
    this.autoresetMode = autoresetMode;
    this.onFailure = onFailure;
    this.singleObservationSpace = first.observationSpace;
    this.singleActionSpace = first.actionSpace;
    this.text = first.text;
    this.subEnvs = envs.map((env, i) => new SubEnv(env, factories[i], i, { autoresetMode, onFailure }));
    envs.forEach((env, i) => {
      if (env.observationSpace.equals(first.observationSpace) && env.actionSpace.equals(first.actionSpace)) return;
      throw invalidEnv(
        `Environment ${i} of the vector has other spaces than the first: ${env.observationSpace.toString()} and ${env.actionSpace.toString()}.`,
      );
    });
  }

  /** @param factories one per environment, called again after a failure */
  static async create<Observation, Action>(
    factories: readonly (() => MaybePromise<Env<Observation, Action>>)[],
    options: VectorOptions = {},
  ): Promise<SyncVectorEnv<Observation, Action>> {
    checkOptions("SyncVectorEnv.create", options, vectorOptionNames);
    if (factories.length === 0) throw invalidArgument("A vector needs at least one environment.");
    const created = await Promise.allSettled(
      factories.map(async (make, i) => requireEnv(await make(), `The factory of environment ${i}`)),
    );
    const envs = created.flatMap((outcome) => (outcome.status === "fulfilled" ? [outcome.value] : []));
    try {
      const failed = created.find((outcome) => outcome.status === "rejected");
      if (failed !== undefined) throw failed.reason;
      return new SyncVectorEnv(envs, factories, options);
    } catch (error) {
      // Environments created so far may hold processes or connections.
      await Promise.allSettled(envs.map(async (env) => await env.close()));
      throw error;
    }
  }

  async reset(options: VectorResetOptions = {}): Promise<VectorResetResult<Observation>> {
    const optionsPerEnv = splitResetOptions(options, this.numEnvs);
    this.lastResults = await this.callAll(async (subEnv, i) => {
      const resetOptions = optionsPerEnv[i];
      // Environments that are not reset keep their observation, with an empty info.
      if (resetOptions === undefined) return { ...this.lastResults[i], info: {} };
      return (await subEnv.reset(resetOptions)) as ResetResult<Observation>;
    });
    return stackResets(this.lastResults);
  }

  async step(actions: readonly Action[]): Promise<VectorStepResult<Observation>> {
    checkLength("actions", actions, this.numEnvs);
    const results = await this.callAll((subEnv, i) => subEnv.step(actions[i]));
    const stacked = stackSteps(results) as VectorStepResult<Observation>;
    this.lastResults = stacked.observations.map((observation) => ({ observation, info: {} }));
    return stacked;
  }

  async render(mode: RenderMode): Promise<readonly RenderFrame[]> {
    return await Promise.all(this.subEnvs.map((subEnv) => subEnv.render(mode)));
  }

  async getState(): Promise<VectorState> {
    return { envs: this.subEnvs.map((subEnv) => subEnv.getState()) };
  }

  async setState(state: VectorState): Promise<void> {
    checkLength("state.envs", state.envs, this.numEnvs);
    this.subEnvs.forEach((subEnv, i) => subEnv.setState(state.envs[i]));
  }

  async close(): Promise<void> {
    const settled = await Promise.allSettled(this.subEnvs.map((subEnv) => subEnv.close()));
    const failed = settled.find((outcome) => outcome.status === "rejected");
    if (failed !== undefined) throw failed.reason;
  }

  /** Calls all environments; closes all when one fails under the policy "stop". */
  private async callAll<T>(call: (subEnv: SubEnv, index: number) => Promise<T>): Promise<T[]> {
    const settled = await Promise.allSettled(this.subEnvs.map(call));
    const failed = settled.find((outcome) => outcome.status === "rejected");
    if (failed === undefined) return settled.map((outcome) => (outcome as PromiseFulfilledResult<T>).value);
    const isFailure = failed.reason instanceof LlamaGymError && failed.reason.code === "ENV_FAILED";
    // The first failure is the one to report.
    if (isFailure && this.onFailure === "stop") await this.close().catch(() => undefined);
    throw failed.reason;
  }
}
