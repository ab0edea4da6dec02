import { LlamaGymError } from "../../core/errors.js";
import { isJsonObject } from "../../core/json.js";

/**
 * Checks that a saved state has finite numbers where a learner's initial state has numbers, and
 * objects where that has objects.
 * @throws FILE_CORRUPT, naming the field.
 */
export function checkSavedState(saved: unknown, initial: unknown, name = "The state of the algorithm"): void {
  if (typeof initial === "number" && !Number.isFinite(saved))
    throw new LlamaGymError("FILE_CORRUPT", `${name} in the checkpoint is ${JSON.stringify(saved)}, not a number.`);
  if (Array.isArray(initial) && Array.isArray(saved) && saved.length === initial.length)
    saved.forEach((item: unknown, i) => checkSavedState(item, initial[i], `${name}: ${i}`));
  if (!isJsonObject(initial)) return;
  if (!isJsonObject(saved))
    throw new LlamaGymError("FILE_CORRUPT", `${name} in the checkpoint is ${JSON.stringify(saved)}, not an object.`);
  for (const field of Object.keys(initial)) checkSavedState(saved[field], initial[field], `${name}: ${field}`);
}
