import { ByteAutomaton } from "./automaton/byte-automaton.js";
import { type JsonSchema, schemaToExpression } from "./json-schema/schema-to-expression.js";
import { parseRegex } from "./regex/parse-regex.js";

/** What a reply is to match as a whole. */
export type TextPattern = { readonly regex: string | RegExp } | { readonly jsonSchema: JsonSchema };

/** Where a reply's pattern is given. */
export interface PatternOptions {
  readonly regex?: string | RegExp;
  readonly jsonSchema?: JsonSchema;
}

/** The pattern that generation options hold a reply to. */
export function readPattern({ regex, jsonSchema }: PatternOptions): TextPattern | undefined {
  if (regex !== undefined) return { regex };
  return jsonSchema === undefined ? undefined : { jsonSchema };
}

/**
 * The texts that a pattern allows, as an automaton over bytes. Throws INVALID_ARGUMENT for what is not supported, allows no
 * text or only the empty one, or is too large.
 */
export function compileToByteAutomaton(pattern: TextPattern): ByteAutomaton {
  if ("jsonSchema" in pattern) return new ByteAutomaton(schemaToExpression(pattern.jsonSchema), "The JSON schema");
  return new ByteAutomaton(parseRegex(pattern.regex), `The regular expression ${describeRegex(pattern.regex)}`);
}

/** Equal for patterns that allow the same texts, though not for all such. */
export function patternKey(pattern: TextPattern): string {
  return "jsonSchema" in pattern
    ? `schema ${JSON.stringify(pattern.jsonSchema)}`
    : `regex ${describeRegex(pattern.regex)}`;
}

function describeRegex(regex: string | RegExp): string {
  return typeof regex === "string" ? JSON.stringify(regex) : String(regex);
}
