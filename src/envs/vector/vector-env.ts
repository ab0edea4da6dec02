import type { EnvState, RenderFrame, RenderMode } from "../env.js";
import type { Info } from "../info.js";
import type { Space } from "../spaces/space.js";
import type { TextInterface } from "../text-interface.js";

/**
 * Behavior at the end of an episode. "next-step": the following step ignores its action and resets. "same-step": the
 * ending step resets at once; the last observation and info are in `info.finalObservation` and `info.finalInfo`.
 * "disabled": the caller resets with `reset({ resetMask })`.
 */
export type AutoresetMode = "next-step" | "same-step" | "disabled";

/**
 * Behavior when an environment throws or its worker ends or times out. "stop": the call fails and the vector is
 * closed. "continue": that environment's step is truncated, with `info.error`, and it is recreated for its next episode.
 */
export type FailurePolicy = "stop" | "continue";

/** Options of vector environments. */
export interface VectorOptions {
  readonly autoresetMode?: AutoresetMode;
  readonly onFailure?: FailurePolicy;
}

/** Options of `VectorEnv.reset`. */
export interface VectorResetOptions {
  /** Environment i gets seed + i, or entry i of a list. */
  readonly seed?: number | bigint | readonly (number | bigint | undefined)[];
  readonly options?: Readonly<Record<string, unknown>>;
  /** Environments to reset. */
  readonly resetMask?: readonly boolean[];
}

/** One entry per environment. */
export interface VectorResetResult<Observation> {
  readonly observations: readonly Observation[];
  readonly infos: readonly Info[];
}

/** One entry per environment. */
export interface VectorStepResult<Observation> extends VectorResetResult<Observation> {
  readonly rewards: Float64Array;
  readonly terminated: readonly boolean[];
  readonly truncated: readonly boolean[];
}

/** Several environments of the same kind, stepped together. */
export interface VectorEnv<Observation = unknown, Action = unknown> {
  readonly numEnvs: number;
  readonly autoresetMode: AutoresetMode;
  readonly singleObservationSpace: Space<Observation>;
  readonly singleActionSpace: Space<Action>;
  /** Text interface of the environments, if any. */
  readonly text: TextInterface<Observation, Action> | undefined;

  reset(options?: VectorResetOptions): Promise<VectorResetResult<Observation>>;
  /** @param actions one per environment */
  step(actions: readonly Action[]): Promise<VectorStepResult<Observation>>;
  /** Renders each environment. */
  render(mode: RenderMode): Promise<readonly RenderFrame[]>;
  /** Returns the states of all environments as JSON, with pending autoresets. */
  getState(): Promise<VectorState>;
  setState(state: VectorState): Promise<void>;
  close(): Promise<void>;
}

/** Saved state of a vector environment. */
export interface VectorState {
  readonly envs: readonly SubEnvState[];
}

/** State of one environment in a vector. */
export interface SubEnvState {
  readonly env: EnvState;
  readonly hasEnded: boolean;
}
