import { invalidArgument } from "../core/errors.js";
import { formatValue } from "./spaces/space.js";

/**
 * Merges options over the defaults. @throws INVALID_ARGUMENT for a name that is not among the
 * defaults and for a value of another type than the default's. `otherNames` names the options
 * that the owner reads itself.
 */
export function applyDefaults<T extends object>(
  owner: string,
  options: object,
  defaults: T,
  otherNames: readonly string[] = [],
): T {
  const result = { ...defaults };
  for (const [name, value] of Object.entries(options)) {
    if (value === undefined) continue;
    if (!Object.hasOwn(defaults, name))
      throw invalidArgument(
        `${owner} has no option "${name}". Its options: ${[...otherNames, ...Object.keys(defaults)].join(", ") || "none"}.`,
      );
    const expected = typeof defaults[name as keyof T];
    if (typeof value !== expected || Number.isNaN(value))
      throw invalidArgument(`${owner}: option ${name} must be a ${expected}, got ${formatValue(value)}.`);
    result[name as keyof T] = value as T[keyof T];
  }
  return result;
}

/** @throws INVALID_ARGUMENT unless an option lies in [0, 1]. */
export function checkProbability(owner: string, name: string, value: number): void {
  if (value >= 0 && value <= 1) return;
  throw invalidArgument(`${owner}: option ${name} must be between 0 and 1, got ${value}.`);
}

/** @throws INVALID_ARGUMENT unless an option is an integer from min to max. */
export function checkCount(owner: string, name: string, value: number, min: number, max: number): void {
  if (Number.isInteger(value) && value >= min && value <= max) return;
  throw invalidArgument(`${owner}: option ${name} must be an integer from ${min} to ${max}, got ${value}.`);
}

/** Range of an integer option: its default, the lowest and the highest value. */
type CountRange = readonly [value: number, min: number, max: number];

/**
 * Merges integer options, and `others` with their defaults, over their defaults. @throws
 * INVALID_ARGUMENT like `applyDefaults`, and for integers out of their ranges.
 */
export function readCounts<Name extends string, Others extends object>(
  owner: string,
  options: object,
  ranges: Readonly<Record<Name, CountRange>>,
  others?: Others,
): Record<Name, number> & Others {
  const entries = Object.entries<CountRange>(ranges);
  const defaults = Object.fromEntries(entries.map(([name, [value]]) => [name, value])) as Record<Name, number>;
  const counts = applyDefaults(owner, options, { ...defaults, ...(others as Others) });
  for (const [name, [, min, max]] of entries) checkCount(owner, name, counts[name as Name], min, max);
  return counts;
}
