import type { EnvState, RenderFrame, RenderMode, ResetOptions, ResetResult, StepResult } from "../env.js";
import type { Info } from "../info.js";
import type { Space } from "../spaces/space.js";
import type { TextInterface } from "../text-interface.js";
import { invalidArgument } from "../../core/errors.js";
import { oneOf, type OptionNames } from "../../core/settings.js";

/**
 * Behavior at the end of an episode. "next-step": the following step ignores its action and resets.
 * "same-step": the ending step resets at once; the last observation and info are in
 * `info.finalObservation` and `info.finalInfo`. "disabled": the caller resets with
 * `reset({ resetMask })`.
 */
export type AutoresetMode = "next-step" | "same-step" | "disabled";

/**
 * Behavior when an environment throws or its worker ends or times out. "stop": the call fails and
 * the vector is closed. "continue": that environment's step is truncated, with `info.error`, and it
 * is recreated for its next episode.
 */
export type FailurePolicy = "stop" | "continue";

/** Options of vector environments. */
export interface VectorOptions {
  readonly autoresetMode?: AutoresetMode;
  readonly onFailure?: FailurePolicy;
}

/** The names of `VectorOptions`. */
export const vectorOptionNames: OptionNames<VectorOptions> = {
  autoresetMode: oneOf("next-step", "same-step", "disabled"),
  onFailure: oneOf("stop", "continue"),
};

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

/** @throws INVALID_ARGUMENT unless `values` has one entry per environment. */
export function checkLength(name: string, values: readonly unknown[], numEnvs: number): void {
  if (Array.isArray(values) && values.length === numEnvs) return;
  const actual = Array.isArray(values) ? String(values.length) : typeof values;
  throw invalidArgument(`${name} must have one entry for each of ${numEnvs} environments, got ${actual}.`);
}

/** Returns the reset options per environment; undefined for those not to be reset. */
export function splitResetOptions(options: VectorResetOptions, numEnvs: number): (ResetOptions | undefined)[] {
  const { seed, options: envOptions, resetMask } = options;
  const isList = (value: unknown): value is readonly (number | bigint | undefined)[] => Array.isArray(value);
  if (isList(seed)) checkLength("seed", seed, numEnvs);
  if (resetMask !== undefined) {
    checkLength("resetMask", resetMask, numEnvs);
    if (!resetMask.includes(true)) throw invalidArgument("resetMask must have at least one true entry.");
  }
  return Array.from({ length: numEnvs }, (_, i) => {
    if (resetMask !== undefined && !resetMask[i]) return undefined;
    return { seed: isList(seed) ? seed[i] : offsetSeed(seed, i), options: envOptions };
  });
}

function offsetSeed(seed: number | bigint | undefined, index: number): number | bigint | undefined {
  if (seed === undefined) return undefined;
  return typeof seed === "bigint" ? seed + BigInt(index) : seed + index;
}

export function stackResets<Observation>(results: readonly ResetResult<Observation>[]): VectorResetResult<Observation> {
  return { observations: results.map(({ observation }) => observation), infos: results.map(({ info }) => info) };
}

export function stackSteps<Observation>(results: readonly StepResult<Observation>[]): VectorStepResult<Observation> {
  return {
    ...stackResets(results),
    rewards: Float64Array.from(results, ({ reward }) => reward),
    terminated: results.map(({ terminated }) => terminated),
    truncated: results.map(({ truncated }) => truncated),
  };
}

/**
 * Merges the infos of several environments as Gymnasium does: under each name an entry per
 * environment, and under `_name` flags of those that have one. Missing numbers and arrays are zero,
 * booleans false, others null.
 */
export function batchInfo(infos: readonly Info[]): Info {
  const batched: Record<string, unknown> = {};
  const names = new Set(infos.flatMap((info) => Object.keys(info)));
  for (const name of names) {
    const has = infos.map((info) => Object.hasOwn(info, name));
    const values = infos.map((info) => info[name]);
    const first = values[has.indexOf(true)];
    const isRecord = typeof first === "object" && first !== null && !Array.isArray(first) && !ArrayBuffer.isView(first);
    batched[name] = isRecord
      ? batchInfo(values.map((value) => (value ?? {}) as Info))
      : values.map((value, i) => (has[i] ? value : emptyLike(name, first)));
    batched[`_${name}`] = has;
  }
  return batched;
}

function emptyLike(name: string, value: unknown): unknown {
  // Final observations and infos are not merged.
  if (name === "finalObservation") return null;
  if (typeof value === "number") return 0;
  if (typeof value === "boolean") return false;
  if (ArrayBuffer.isView(value)) return Array.from(value as Int8Array, () => 0);
  return null;
}
