import { LlamaGymError } from "../../core/errors.js";
import type { ResetResult, StepResult } from "../env.js";
import { cloneSpace } from "../spaces/batch.js";
import { formatValue, type Space } from "../spaces/space.js";
import type { Warn } from "./check-space.js";

/** Checks the result of `reset`. @throws ENV_INVALID when it is not `{ observation, info }`. */
export function checkResetResult(result: unknown, space: Space, warn: Warn): asserts result is ResetResult<unknown> {
  if (typeof result !== "object" || result === null || Array.isArray(result) || !("observation" in result)) {
    throw new LlamaGymError("ENV_INVALID", `reset() must give { observation, info }, got ${formatValue(result)}.`);
  }
  checkInfo((result as { info?: unknown }).info, "reset");
  checkObservation(result.observation, space, "reset", warn);
}

/** Checks the result of `step`. @throws ENV_INVALID when it is not `{ observation, reward, terminated, truncated, info }`. */
export function checkStepResult(result: unknown, space: Space, warn: Warn): asserts result is StepResult<unknown> {
  if (Array.isArray(result)) {
    throw new LlamaGymError(
      "ENV_INVALID",
      `step() returned an array of ${result.length}: return an object { observation, reward, terminated, truncated, info } instead.`,
    );
  }
  if (typeof result !== "object" || result === null || !("observation" in result) || !("reward" in result)) {
    throw new LlamaGymError(
      "ENV_INVALID",
      `step() must give { observation, reward, terminated, truncated, info }, got ${formatValue(result)}.`,
    );
  }
  const { observation, reward, terminated, truncated, info, done } = result as Record<string, unknown>;
  if (done !== undefined && terminated === undefined) {
    warn(
      "step() returns `done`, as in Gym's old API: return `terminated` for the end of the task and `truncated` for a limit.",
    );
  }
  for (const [name, value] of Object.entries({ terminated, truncated })) {
    if (typeof value !== "boolean") warn(`Expects \`${name}\` to be a boolean, actual type: ${typeof value}`);
  }
  checkObservation(observation, space, "step", warn);
  checkReward(reward, warn);
  checkInfo(info, "step");
}

function checkReward(reward: unknown, warn: Warn): void {
  if (typeof reward !== "number") warn(`The reward given by step() must be a number, actual type: ${typeof reward}`);
  else if (Number.isNaN(reward)) warn("The reward is a NaN value. A division by zero or an overflow is likely.");
  else if (!Number.isFinite(reward)) warn("The reward is an infinite value.");
}

function checkInfo(info: unknown, method: string): void {
  if (typeof info !== "object" || info === null || Array.isArray(info)) {
    throw new LlamaGymError(
      "ENV_INVALID",
      `The info given by ${method}() must be an object, got ${formatValue(info)}. Return {} if there is no information.`,
    );
  }
}

function checkObservation(observation: unknown, space: Space, method: string, warn: Warn): void {
  const problem = describeObservationProblem(observation, space);
  if (problem !== undefined) warn(`The observation given by ${method}() ${problem}`);
}

/** Describes why an observation is not in its space; undefined when it is. */
export function describeObservationProblem(observation: unknown, space: Space): string | undefined {
  if (observation === undefined) return "is undefined.";
  // A copy leaves the random stream of the space unchanged.
  const expected = cloneSpace(space).sample();
  const [expectedType, actualType] = [getTypeName(expected), getTypeName(observation)];
  if (ArrayBuffer.isView(expected) && expectedType !== actualType)
    return `should be a ${expectedType}, actual type: ${actualType}`;
  if (!space.contains(observation))
    return `is not within the observation space: ${formatValue(observation)} is not in ${space.toString()}.`;
  return undefined;
}

function getTypeName(value: unknown): string {
  return typeof value === "object" && value !== null ? value.constructor.name : typeof value;
}
