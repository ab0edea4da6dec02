import { invalidArgument } from "../../core/errors.js";
import type { ResetOptions, ResetResult, StepResult } from "../env.js";
import type { VectorResetOptions, VectorResetResult, VectorStepResult } from "./vector-env.js";

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
