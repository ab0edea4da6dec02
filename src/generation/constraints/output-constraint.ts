import { describeRegex, patternKey, type TextPattern } from "./text-pattern.js";

/** A restriction on a completion's text: a list of choices, or a pattern that the whole text matches. */
export type OutputConstraint = { readonly choices: readonly string[] } | TextPattern;

/** Cache key: equal keys imply that the same completions are allowed. */
export function constraintKey(constraint: OutputConstraint): string {
  return "choices" in constraint ? constraint.choices.join("\u0000") : patternKey(constraint);
}

/** Describes a text that violates a constraint, for error messages: "none of the choices ...". */
export function describeViolation(constraint: OutputConstraint): string {
  if ("choices" in constraint) return `none of the choices ${JSON.stringify(constraint.choices)}`;
  return "regex" in constraint
    ? `no match of the pattern ${describeRegex(constraint.regex)}`
    : `not allowed by the JSON schema ${JSON.stringify(constraint.jsonSchema)}`;
}
