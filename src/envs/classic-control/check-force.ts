import { LlamaGymError } from "../../core/errors.js";
import type { Env } from "../env.js";
import { isNumberArray } from "../spaces/arrays.js";
import { formatValue } from "../spaces/space.js";

/** Returns the single number of an action as a float32. @throws ENV_ACTION_INVALID for other actions. */
export function checkForce(env: Env, action: unknown): number {
  // The common case first.
  if (action instanceof Float32Array && action.length === 1 && Number.isFinite(action[0])) return action[0];
  if (isNumberArray(action) && action.length === 1 && Number.isFinite(action[0])) return Math.fround(action[0]);
  throw new LlamaGymError(
    "ENV_ACTION_INVALID",
    `${formatValue(action)} (${typeof action}) invalid: ${env.constructor.name} takes an action of ${env.actionSpace.toString()}, an array of one number.`,
  );
}
