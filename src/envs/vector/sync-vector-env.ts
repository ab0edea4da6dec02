import { LlamaGymError } from "../../errors.js";
import type { Env, RenderFrame, RenderMode, ResetResult } from "../env.js";
import type { MaybePromise } from "../maybe-promise.js";
import type { Space } from "../spaces/space.js";
import type { TextForm } from "../text-form.js";
import { EnvSlot } from "./slot.js";
import { checkLength, joinResets, joinSteps, splitResetOptions } from "./vector-arguments.js";
import type {
  AutoresetMode,
  VectorEnv,
  VectorOptions,
  VectorResetOptions,
  VectorResetResult,
  VectorState,
  VectorStepResult,
} from "./vector-env.js";

/** Several environments in this process; synchronous ones are stepped in turn, asynchronous ones side by side. */
export class SyncVectorEnv<Observation = unknown, Action = unknown> implements VectorEnv<Observation, Action> {
  readonly numEnvs: number;
  readonly autoresetMode: AutoresetMode;
  readonly singleObservationSpace: Space<Observation>;
  readonly singleActionSpace: Space<Action>;
  readonly text: TextForm<Observation, Action> | undefined;
  private readonly slots: readonly EnvSlot[];
  private readonly onFailure: "stop" | "continue";
  private last: ResetResult<Observation>[] = [];

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
    this.slots = envs.map((env, i) => new EnvSlot(env, factories[i], i, { autoresetMode, onFailure }));
    envs.forEach((env, i) => {
      if (env.observationSpace.equals(first.observationSpace) && env.actionSpace.equals(first.actionSpace)) return;
      throw new LlamaGymError(
        "ENV_INVALID",
        `Environment ${i} of the vector has other spaces than the first: ${env.observationSpace.toString()} and ${env.actionSpace.toString()}.`,
      );
    });
  }

  /** @param factories make one environment each, and make it anew where it failed */
  static async create<Observation, Action>(
    factories: readonly (() => MaybePromise<Env<Observation, Action>>)[],
    options: VectorOptions = {},
  ): Promise<SyncVectorEnv<Observation, Action>> {
    if (factories.length === 0) throw new LlamaGymError("INVALID_ARGUMENT", "A vector needs at least one environment.");
    const made = await Promise.allSettled(factories.map(async (make) => await make()));
    const envs = made.flatMap((outcome) => (outcome.status === "fulfilled" ? [outcome.value] : []));
    try {
      const failed = made.find((outcome) => outcome.status === "rejected");
      if (failed !== undefined) throw failed.reason;
      return new SyncVectorEnv(envs, factories, options);
    } catch (error) {
      // Those that were made may hold processes or connections.
      await Promise.allSettled(envs.map(async (env) => await env.close()));
      throw error;
    }
  }

  async reset(options: VectorResetOptions = {}): Promise<VectorResetResult<Observation>> {
    const each = splitResetOptions(options, this.numEnvs);
    this.last = await this.all(async (slot, i) => {
      const wanted = each[i];
      // What is not reset keeps its observation and says nothing.
      if (wanted === undefined) return { ...this.last[i], info: {} };
      return (await slot.reset(wanted)) as ResetResult<Observation>;
    });
    return joinResets(this.last);
  }

  async step(actions: readonly Action[]): Promise<VectorStepResult<Observation>> {
    checkLength("actions", actions, this.numEnvs);
    const results = await this.all((slot, i) => slot.step(actions[i]));
    const joined = joinSteps(results) as VectorStepResult<Observation>;
    this.last = joined.observations.map((observation) => ({ observation, info: {} }));
    return joined;
  }

  async render(mode: RenderMode): Promise<readonly RenderFrame[]> {
    return await Promise.all(this.slots.map((slot) => slot.render(mode)));
  }

  async getState(): Promise<VectorState> {
    return { envs: this.slots.map((slot) => slot.getState()) };
  }

  async setState(state: VectorState): Promise<void> {
    checkLength("state.envs", state.envs, this.numEnvs);
    this.slots.forEach((slot, i) => slot.setState(state.envs[i]));
  }

  async close(): Promise<void> {
    await Promise.all(this.slots.map((slot) => slot.close()));
  }

  /** Calls all environments; where one fails and the policy says stop, all are closed. */
  private async all<T>(call: (slot: EnvSlot, index: number) => Promise<T>): Promise<T[]> {
    const settled = await Promise.allSettled(this.slots.map(call));
    const failed = settled.find((outcome) => outcome.status === "rejected");
    if (failed === undefined) return settled.map((outcome) => (outcome as PromiseFulfilledResult<T>).value);
    const isFailure = failed.reason instanceof LlamaGymError && failed.reason.code === "ENV_FAILED";
    if (isFailure && this.onFailure === "stop") await this.close();
    throw failed.reason;
  }
}
