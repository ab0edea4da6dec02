import { excerpt } from "../../core/format.js";
import { LlamaGymError } from "../../core/errors.js";
import { type ResetResult, type StepResult, isReward, REWARD_RULE } from "../../envs/index.js";

/** @throws ENV_FAILED for an observation that contains NaN; `source` is the environment's name. */
export function checkObservation(observation: unknown, source: string): void {
  if (hasNaN(observation))
    throw new LlamaGymError("ENV_FAILED", `${source} returned an observation with NaN: ${formatExcerpt(observation)}.`);
}

/**
 * @throws ENV_FAILED unless a reset returned an object with an observation; `source` is the
 * environment's name.
 */
export function checkResetResult(result: ResetResult<unknown>, source: string): void {
  if (typeof result === "object" && result !== null && "observation" in result) return;
  const found = typeof result === "object" && result !== null ? "an object without an observation" : String(result);
  throw new LlamaGymError(
    "ENV_FAILED",
    `${source} returned ${found} from reset; it must return { observation, info }.`,
  );
}

/** @throws ENV_FAILED for an invalid result of a step; `source` is the environment's name. */
export function checkStepResult(result: StepResult<unknown>, source: string): void {
  const envError = (problem: string) => new LlamaGymError("ENV_FAILED", `${source} ${problem}`);
  if (typeof result !== "object" || result === null)
    throw envError(
      `returned ${String(result)} from step; it must return { observation, reward, terminated, truncated, info }.`,
    );
  const { reward, terminated, truncated }: Readonly<Partial<Record<keyof StepResult<unknown>, unknown>>> = result;
  if (!isReward(reward))
    throw envError(`returned the reward ${String(reward)} (${typeof reward}) from step; it must be ${REWARD_RULE}.`);
  if (typeof terminated !== "boolean" || typeof truncated !== "boolean")
    throw envError(`returned no booleans for terminated and truncated from step.`);
}

/**
 * Reads `is_success`, a boolean or 0 or 1, from the info of an episode's last step; undefined
 * without one.
 * @throws ENV_FAILED for another value; `source` is the environment's name.
 */
export function readSuccess(info: unknown, source: string): boolean | undefined {
  const { is_success: value } = (info ?? {}) as { is_success?: unknown };
  if (value === undefined || value === null) return undefined;
  if (typeof value === "boolean" || value === 0 || value === 1) return Boolean(value);
  throw new LlamaGymError(
    "ENV_FAILED",
    `${source} returned an info with is_success ${formatExcerpt(value)}; it must be true or false.`,
  );
}

function hasNaN(value: unknown): boolean {
  if (typeof value === "number") return Number.isNaN(value);
  if (value instanceof Float32Array || value instanceof Float64Array) return value.some(Number.isNaN);
  if (Array.isArray(value)) return value.some(hasNaN);
  const isRecord = typeof value === "object" && value !== null && Object.getPrototypeOf(value) === Object.prototype;
  return isRecord && Object.values(value).some(hasNaN);
}

/** Formats a value for messages, including NaN. */
function formatExcerpt(value: unknown): string {
  const text = JSON.stringify(value, (_key, part: unknown) => {
    if (typeof part === "number" && Number.isNaN(part)) return "NaN";
    return ArrayBuffer.isView(part) ? [...(part as Float64Array)] : part;
  });
  return excerpt(text);
}
