import { LlamaGymError, invalidArgument } from "../../core/errors.js";
import { checkOptions, COUNT, TIME_LIMIT, type OptionNames } from "../../core/settings.js";
import type { RenderFrame, RenderMode, ResetResult, StepResult } from "../env.js";
import { make, registry } from "../registry/make.js";
import { spaceFromJson, type Space } from "../spaces/index.js";
import type { TextInterface } from "../text-interface.js";
import { EnvWorker } from "./env-worker.js";
import { createFailedStep } from "./sub-env.js";
import {
  checkLength,
  stackResets,
  stackSteps,
  splitResetOptions,
  vectorOptionNames,
  type AutoresetMode,
  type FailurePolicy,
  type SubEnvState,
  type VectorEnv,
  type VectorOptions,
  type VectorResetOptions,
  type VectorResetResult,
  type VectorState,
  type VectorStepResult,
} from "./vector-env.js";
import type { EnvDescription, EnvReference, EnvWorkerCall, EnvWorkerSetup } from "./worker-protocol.js";

/** Options of `WorkerVectorEnv`. */
export interface WorkerVectorOptions extends VectorOptions {
  readonly numEnvs: number;
  /** Number of threads. Default: one per environment. */
  readonly numWorkers?: number;
  /** Time limit of a call in milliseconds; Infinity for none. Default: two minutes. */
  readonly timeout?: number;
}

/** The names of `WorkerVectorOptions`. */
export const workerVectorOptionNames: OptionNames<WorkerVectorOptions> = {
  ...vectorOptionNames,
  numEnvs: COUNT,
  numWorkers: COUNT,
  timeout: TIME_LIMIT,
};

const DEFAULT_TIMEOUT_MS = 120_000;

/** Several environments in worker threads, isolated from each other's failures. */
export class WorkerVectorEnv<Observation = unknown, Action = unknown> implements VectorEnv<Observation, Action> {
  readonly numEnvs: number;
  readonly autoresetMode: AutoresetMode;
  readonly text: TextInterface<Observation, Action> | undefined;
  readonly singleObservationSpace: Space<Observation>;
  readonly singleActionSpace: Space<Action>;
  private lastResults: ResetResult<Observation>[] = [];

  private constructor(
    source: EnvReference,
    { observationSpace, actionSpace }: EnvDescription,
    private readonly workers: EnvWorker[],
    private readonly onFailure: FailurePolicy,
    private readonly timeout: number,
  ) {
    this.numEnvs = workers.reduce((total, { setup }) => total + setup.count, 0);
    this.autoresetMode = workers[0].setup.options.autoresetMode;
    this.singleObservationSpace = spaceFromJson(observationSpace) as Space<Observation>;
    this.singleActionSpace = spaceFromJson(actionSpace) as Space<Action>;
    this.text = getTextInterface(source);
  }

  /** @param source a registered id or a module, since functions cannot be sent to a thread */
  static async create<Observation = unknown, Action = unknown>(
    source: EnvReference,
    options: WorkerVectorOptions,
  ): Promise<WorkerVectorEnv<Observation, Action>> {
    checkOptions("WorkerVectorEnv.create", options, workerVectorOptionNames);
    const { numEnvs, numWorkers = numEnvs, timeout = DEFAULT_TIMEOUT_MS } = options;
    const { autoresetMode = "next-step", onFailure = "stop" } = options;
    // Also without numEnvs.
    if (!(numWorkers <= numEnvs))
      throw invalidArgument(`A vector needs numEnvs >= numWorkers >= 1, got ${numEnvs} and ${numWorkers}.`);
    const computeBoundary = (i: number) => Math.round((i * numEnvs) / numWorkers);
    const workers = Array.from({ length: numWorkers }, (_, i) => {
      const setup: EnvWorkerSetup = {
        source,
        firstIndex: computeBoundary(i),
        count: computeBoundary(i + 1) - computeBoundary(i),
        options: { autoresetMode, onFailure },
        initiallyEnded: false,
      };
      return new EnvWorker(setup, timeout);
    });
    try {
      const descriptions = await Promise.all(workers.map((worker) => worker.call({ method: "describe" })));
      return new WorkerVectorEnv(source, descriptions[0][0] as EnvDescription, workers, onFailure, timeout);
    } catch (error) {
      await Promise.all(workers.map((worker) => worker.terminate()));
      throw error;
    }
  }

  async reset(options: VectorResetOptions = {}): Promise<VectorResetResult<Observation>> {
    const optionsPerEnv = splitResetOptions(options, this.numEnvs);
    const call = (first: number, count: number): EnvWorkerCall => ({
      method: "reset",
      options: optionsPerEnv.slice(first, first + count),
    });
    const results = (await this.callAll(call)) as (ResetResult<Observation> | undefined)[];
    this.lastResults = results.map((result, i) => result ?? { ...this.lastResults[i], info: {} });
    return stackResets(this.lastResults);
  }

  async step(actions: readonly Action[]): Promise<VectorStepResult<Observation>> {
    checkLength("actions", actions, this.numEnvs);
    const call = (first: number, count: number): EnvWorkerCall => ({
      method: "step",
      actions: actions.slice(first, first + count),
    });
    const results = (await this.callAll(call, (worker, error) =>
      this.createFailedSteps(worker, error),
    )) as StepResult<Observation>[];
    this.lastResults = results.map(({ observation }) => ({ observation, info: {} }));
    return stackSteps(results);
  }

  async render(mode: RenderMode): Promise<readonly RenderFrame[]> {
    return (await this.callAll(() => ({ method: "render", mode }))) as RenderFrame[];
  }

  async getState(): Promise<VectorState> {
    return { envs: (await this.callAll(() => ({ method: "getState" }))) as SubEnvState[] };
  }

  async setState(state: VectorState): Promise<void> {
    checkLength("state.envs", state.envs, this.numEnvs);
    await this.callAll((first, count) => ({ method: "setState", states: state.envs.slice(first, first + count) }));
  }

  async close(): Promise<void> {
    await Promise.allSettled(
      this.workers.filter(({ isDead }) => !isDead).map((worker) => worker.call({ method: "close" })),
    );
    await Promise.all(this.workers.map((worker) => worker.terminate()));
  }

  /**
   * Calls every worker and concatenates the results; `rescue` replaces those of a failed worker.
   */
  private async callAll(
    callFor: (firstIndex: number, count: number) => EnvWorkerCall,
    recover?: (worker: EnvWorker, error: unknown) => Promise<readonly unknown[]>,
  ): Promise<unknown[]> {
    const calls = this.workers.map((worker) => worker.call(callFor(worker.setup.firstIndex, worker.setup.count)));
    const settled = await Promise.allSettled(calls);
    const values: unknown[] = [];
    for (const [i, outcome] of settled.entries()) {
      if (outcome.status === "fulfilled") values.push(...outcome.value);
      else values.push(...(await this.handleFailure(i, outcome.reason, recover)));
    }
    return values;
  }

  /** Closes the vector or, under the policy "continue", replaces the failed worker. */
  private async handleFailure(
    index: number,
    error: unknown,
    recover: ((worker: EnvWorker, error: unknown) => Promise<readonly unknown[]>) | undefined,
  ): Promise<readonly unknown[]> {
    const { isDead, setup } = this.workers[index];
    const isFailure = error instanceof LlamaGymError && error.code === "ENV_FAILED";
    if (isFailure && this.onFailure === "stop") await this.close();
    if (!isDead || this.onFailure === "stop") throw error;
    this.workers[index] = new EnvWorker({ ...setup, initiallyEnded: true }, this.timeout);
    if (recover === undefined) throw error;
    return await recover(this.workers[index], error);
  }

  /** Returns truncated steps for a failed worker, already reset in the mode "same-step". */
  private async createFailedSteps(worker: EnvWorker, error: unknown): Promise<readonly unknown[]> {
    const failed = createFailedStep({ observationSpace: this.singleObservationSpace }, error);
    const { count } = worker.setup;
    if (this.autoresetMode !== "same-step") return Array.from({ length: count }, () => failed);
    const options = Array.from({ length: count }, () => ({}));
    const resets = (await worker.call({ method: "reset", options })) as ResetResult<unknown>[];
    return resets.map(({ observation, info }) => {
      const final = { finalObservation: failed.observation, finalInfo: failed.info };
      return { ...failed, observation, info: { ...info, ...final } };
    });
  }
}

/** Returns the text interface of a registered environment; that of a module stays in the worker. */
function getTextInterface<Observation, Action>(source: EnvReference): TextInterface<Observation, Action> | undefined {
  if (source.id === undefined || !registry.has(source.id)) return undefined;
  const env = make<Observation, Action>(source.id, { ...source.options, disableEnvChecker: true });
  void env.close();
  return env.text;
}
