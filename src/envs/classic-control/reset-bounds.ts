import { LlamaGymError } from "../../errors.js";
import { show } from "../spaces/space.js";

type Options = Readonly<Record<string, unknown>> | undefined;

/** A reset option as a number, or its default. */
export function numberOption(options: Options, name: string, otherwise: number): number {
  const value = options?.[name];
  if (value === undefined) return otherwise;
  if (typeof value === "number" && Number.isFinite(value)) return value;
  throw new LlamaGymError("INVALID_ARGUMENT", `The reset option ${name} must be a number, got ${show(value)}.`);
}

/** The reset options `low` and `high`, between which the first state is drawn. */
export function resetBounds(options: Options, defaultLow: number, defaultHigh: number): [low: number, high: number] {
  const low = numberOption(options, "low", defaultLow);
  const high = numberOption(options, "high", defaultHigh);
  if (low > high) {
    throw new LlamaGymError("INVALID_ARGUMENT", `Lower bound (${low}) must be lower than higher bound (${high}).`);
  }
  return [low, high];
}
