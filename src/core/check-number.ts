import { invalidArgument } from "./errors.js";

/** The range of a number that can be set, and what it does. */
export interface NumberRule {
  readonly integer?: boolean;
  readonly min?: number;
  /** The value must be larger than this. */
  readonly above?: number;
  readonly max?: number;
  readonly description: string;
  /** The same setting in generation_config.json. */
  readonly configKey?: string;
}

/** Throws INVALID_ARGUMENT when a value is no number in the rule's range; `name` is what the message calls it. */
export function checkNumber(name: string, value: unknown, rule: NumberRule): void {
  const { integer = false, min = -Infinity, above = -Infinity, max = Infinity } = rule;
  const isNumber = typeof value === "number" && (integer ? Number.isSafeInteger(value) : Number.isFinite(value));
  if (isNumber && value >= min && value > above && value <= max) return;
  throw invalidArgument(`${name} must be ${describeRange(rule)}, not ${String(value)}.`);
}

/** "a whole number of at least 1", "a number above 0 and at most 1". */
function describeRange({ integer = false, min, above, max }: NumberRule): string {
  const bounds = [
    min === undefined ? undefined : `at least ${min}`,
    above === undefined ? undefined : `above ${above}`,
    max === undefined ? undefined : `at most ${max}`,
  ].filter((bound) => bound !== undefined);
  const kind = integer ? "a whole number" : "a number";
  return bounds.length === 0 ? kind : `${kind} ${above === undefined ? "of " : ""}${bounds.join(" and ")}`;
}
