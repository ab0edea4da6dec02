import { ByteAutomaton } from "./automaton/byte-automaton.js";
import { type JsonSchema, schemaExpression } from "./json-schema/schema.js";
import { parseRegex } from "./regex/parser.js";

/** What a reply is to match as a whole. */
export type Pattern = { readonly regex: string | RegExp } | { readonly jsonSchema: JsonSchema };

/** Where a reply's pattern is given. */
export interface PatternOptions {
  readonly regex?: string | RegExp;
  readonly jsonSchema?: JsonSchema;
}

/** The pattern that generation options hold a reply to. */
export function patternOf({ regex, jsonSchema }: PatternOptions): Pattern | undefined {
  if (regex !== undefined) return { regex };
  return jsonSchema === undefined ? undefined : { jsonSchema };
}

/**
 * The texts that a pattern allows, as an automaton over bytes. Throws INVALID_ARGUMENT for what is not supported, allows no
 * text or only the empty one, or is too large.
 */
export function compilePattern(pattern: Pattern): ByteAutomaton {
  if ("jsonSchema" in pattern) return new ByteAutomaton(schemaExpression(pattern.jsonSchema), "The JSON schema");
  return new ByteAutomaton(parseRegex(pattern.regex), `The regular expression ${describe(pattern.regex)}`);
}

/** Equal for patterns that allow the same texts, though not for all such. */
export function patternKey(pattern: Pattern): string {
  return "jsonSchema" in pattern ? `schema ${JSON.stringify(pattern.jsonSchema)}` : `regex ${describe(pattern.regex)}`;
}

function describe(regex: string | RegExp): string {
  return typeof regex === "string" ? JSON.stringify(regex) : String(regex);
}
