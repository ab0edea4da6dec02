import { LlamaGymError } from "../../core/errors.js";
import type { StepResult } from "../../envs/env.js";

/** Throws ENV_FAILED for an observation that holds NaN; `source` names who gave it. */
export function checkObservation(observation: unknown, source: string): void {
  if (hasNaN(observation))
    throw new LlamaGymError("ENV_FAILED", `${source} gave an observation with NaN: ${formatExcerpt(observation)}.`);
}

/** Throws ENV_FAILED for what is no result of a step; `source` names who gave it. */
export function checkStepResult(result: StepResult<unknown>, source: string): void {
  const envError = (problem: string) => new LlamaGymError("ENV_FAILED", `${source} ${problem}`);
  if (typeof result !== "object" || result === null) {
    throw envError(
      `gave ${String(result)} for a step; it must give { observation, reward, terminated, truncated, info }.`,
    );
  }
  const { reward, terminated, truncated }: Readonly<Partial<Record<keyof StepResult<unknown>, unknown>>> = result;
  if (typeof reward !== "number" || !Number.isFinite(reward))
    throw envError(`gave the reward ${String(reward)} (${typeof reward}); a reward must be a finite number.`);
  if (typeof terminated !== "boolean" || typeof truncated !== "boolean")
    throw envError(`gave a step without true or false for terminated and truncated.`);
}

function hasNaN(value: unknown): boolean {
  if (typeof value === "number") return Number.isNaN(value);
  if (value instanceof Float32Array || value instanceof Float64Array) return value.some(Number.isNaN);
  if (Array.isArray(value)) return value.some(hasNaN);
  const isRecord = typeof value === "object" && value !== null && Object.getPrototypeOf(value) === Object.prototype;
  return isRecord && Object.values(value).some(hasNaN);
}

/** A value in a message, NaN included. */
function formatExcerpt(value: unknown): string {
  const text = JSON.stringify(value, (_key, part: unknown) => {
    if (typeof part === "number" && Number.isNaN(part)) return "NaN";
    return ArrayBuffer.isView(part) ? [...(part as Float64Array)] : part;
  });
  return text.length > 200 ? `${text.slice(0, 200)}...` : text;
}
