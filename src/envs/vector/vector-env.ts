import type { EnvState, RenderFrame, RenderMode } from "../env.js";
import type { Info } from "../info.js";
import type { Space } from "../spaces/space.js";
import type { TextInterface } from "../text-interface.js";

/**
 * What happens where an episode ends. "next-step": the following step ignores its action and resets. "same-step": the
 * ending step resets at once; the last observation and info are in `info.finalObservation` and `info.finalInfo`.
 * "disabled": the caller resets by `reset({ resetMask })`.
 */
export type AutoresetMode = "next-step" | "same-step" | "disabled";

/**
 * What happens where an environment throws, its worker dies or does not answer. "stop": the call fails and all is
 * closed. "continue": that environment's step is truncated, with `info.error`, and it is made anew for its next episode.
 */
export type FailurePolicy = "stop" | "continue";

export interface VectorOptions {
  readonly autoresetMode?: AutoresetMode;
  readonly onFailure?: FailurePolicy;
}

export interface VectorResetOptions {
  /** Environment i gets seed + i, or its own where it is a list. */
  readonly seed?: number | bigint | readonly (number | bigint | undefined)[];
  readonly options?: Readonly<Record<string, unknown>>;
  /** Resets these only. */
  readonly resetMask?: readonly boolean[];
}

/** One entry for each environment, in their order. */
export interface VectorResetResult<Observation> {
  readonly observations: readonly Observation[];
  readonly infos: readonly Info[];
}

/** One entry for each environment, in their order. */
export interface VectorStepResult<Observation> extends VectorResetResult<Observation> {
  readonly rewards: Float64Array;
  readonly terminated: readonly boolean[];
  readonly truncated: readonly boolean[];
}

/** Several environments of one kind that are stepped together. */
export interface VectorEnv<Observation = unknown, Action = unknown> {
  readonly numEnvs: number;
  readonly autoresetMode: AutoresetMode;
  readonly singleObservationSpace: Space<Observation>;
  readonly singleActionSpace: Space<Action>;
  /** How a language model reads and answers the environments, where they have such a form. */
  readonly text: TextInterface<Observation, Action> | undefined;

  reset(options?: VectorResetOptions): Promise<VectorResetResult<Observation>>;
  /** @param actions one for each environment */
  step(actions: readonly Action[]): Promise<VectorStepResult<Observation>>;
  /** A picture of each environment. */
  render(mode: RenderMode): Promise<readonly RenderFrame[]>;
  /** The states of all environments as JSON, with what autoreset still has to do. */
  getState(): Promise<VectorState>;
  setState(state: VectorState): Promise<void>;
  close(): Promise<void>;
}

export interface VectorState {
  readonly envs: readonly SubEnvState[];
}

/** One environment's part of a vector's state. */
export interface SubEnvState {
  readonly env: EnvState;
  readonly hasEnded: boolean;
}
