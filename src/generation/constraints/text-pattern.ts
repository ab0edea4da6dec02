import { ByteAutomaton } from "./automaton/byte-automaton.js";
import { excerpt } from "../../core/format.js";
import { type JsonSchema, stringifySchema } from "./json-schema/keywords.js";
import { schemaToExpression } from "./json-schema/schema-to-expression.js";
import { parseRegex } from "./regex/parse-regex.js";

/** A pattern that a whole completion matches. */
export type TextPattern = { readonly regex: string | RegExp } | { readonly jsonSchema: JsonSchema };

/** Options that constrain a completion to a pattern. */
export interface PatternOptions {
  readonly regex?: string | RegExp;
  readonly jsonSchema?: JsonSchema;
}

/** Returns the pattern that options constrain a completion to, if any. */
export function readPattern({ regex, jsonSchema }: PatternOptions): TextPattern | undefined {
  if (regex !== undefined) return { regex };
  return jsonSchema === undefined ? undefined : { jsonSchema };
}

/**
 * Compiles a pattern to an automaton over bytes.
 * @throws INVALID_ARGUMENT for a pattern that is unsupported or too large, or that matches no text but the empty one.
 */
export function compileToByteAutomaton(pattern: TextPattern): ByteAutomaton {
  if ("jsonSchema" in pattern) return new ByteAutomaton(schemaToExpression(pattern.jsonSchema), "The JSON schema");
  const expression = parseRegex(pattern.regex);
  return new ByteAutomaton(expression, `The regular expression ${excerpt(describeRegex(pattern.regex))}`);
}

/** Cache key: equal keys imply equivalent patterns, not vice versa. @throws INVALID_ARGUMENT for a schema that is not JSON. */
export function patternKey(pattern: TextPattern): string {
  return "jsonSchema" in pattern
    ? `schema ${stringifySchema(pattern.jsonSchema)}`
    : `regex ${describeRegex(pattern.regex)}`;
}

/** Formats a regular expression for messages and keys. */
export function describeRegex(regex: string | RegExp): string {
  return typeof regex === "string" ? JSON.stringify(regex) : String(regex);
}
