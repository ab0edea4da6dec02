import { invalidArgument } from "../../core/errors.js";
import { formatValue } from "../spaces/space.js";

type Options = Readonly<Record<string, unknown>> | undefined;

/** Reads a numeric reset option, or its default. */
export function readNumberOption(options: Options, name: string, fallback: number): number {
  const value = options?.[name];
  if (value === undefined) return fallback;
  if (typeof value === "number" && Number.isFinite(value)) return value;
  throw invalidArgument(`The reset option ${name} must be a number, got ${formatValue(value)}.`);
}

/** Reads the reset options `low` and `high`, the bounds of the initial state. */
export function readResetBounds(
  options: Options,
  defaultLow: number,
  defaultHigh: number,
): [low: number, high: number] {
  const low = readNumberOption(options, "low", defaultLow);
  const high = readNumberOption(options, "high", defaultHigh);
  if (low > high) {
    throw invalidArgument(`Lower bound (${low}) must be lower than higher bound (${high}).`);
  }
  return [low, high];
}
