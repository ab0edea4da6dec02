import { invalidArgument, LlamaGymError } from "../../core/errors.js";
import { excerpt } from "../../core/format.js";
import { isJsonObject } from "../../core/json.js";
import { runSteps, type Steps } from "../../core/steps.js";
import { ByteAutomaton } from "./automaton/byte-automaton.js";
import { type JsonSchema, SchemaError, stringifySchema } from "./json-schema/keywords.js";
import { schemaToExpression } from "./json-schema/schema-to-expression.js";
import { parseRegex } from "./regex/parse-regex.js";

/** Maximum number of choices; as many are tokenized in a few seconds. */
const MAX_CHOICES = 100_000;
/**
 * Maximum characters of a choice and of all choices; tokenizing takes up to 10 us per character.
 */
const MAX_CHOICE_LENGTH = 100_000;
const MAX_CHOICES_LENGTH = 1_000_000;

/**
 * A restriction on a completion's text: a list of choices, or a pattern that the whole text
 * matches.
 */
export type OutputConstraint = { readonly choices: readonly string[] } | TextPattern;

/** Cache key: equal keys imply that the same completions are allowed. */
export function constraintKey(constraint: OutputConstraint): string {
  return "choices" in constraint ? choicesKey(constraint.choices) : patternKey(constraint);
}

/**
 * Cache key of choices. @throws INVALID_ARGUMENT for anything but a list of strings within the
 * limits.
 */
function choicesKey(choices: readonly string[]): string {
  if (!Array.isArray(choices) || choices.some((choice) => typeof choice !== "string")) {
    const invalid: unknown = Array.isArray(choices) ? choices.find((choice) => typeof choice !== "string") : choices;
    throw invalidArgument(`\`choices\` must be a list of strings, got ${invalid === null ? "null" : typeof invalid}.`);
  }
  if (choices.length > MAX_CHOICES)
    throw invalidArgument(
      `\`choices\` has ${choices.length} texts, more than ${MAX_CHOICES}. Use \`regex\`, or fewer.`,
    );
  const long = choices.find((choice) => choice.length > MAX_CHOICE_LENGTH);
  if (long !== undefined) {
    const text = excerpt(JSON.stringify(long), 60);
    throw invalidArgument(`The choice ${text} has ${long.length} characters, more than ${MAX_CHOICE_LENGTH}.`);
  }
  const length = choices.reduce((sum, choice) => sum + choice.length, 0);
  if (length > MAX_CHOICES_LENGTH)
    throw invalidArgument(
      `\`choices\` has ${length} characters in all, more than ${MAX_CHOICES_LENGTH}. Shorten them.`,
    );
  return `choices ${JSON.stringify(choices)}`;
}

/** Describes a text that violates a constraint, for error messages: "none of the choices ...". */
export function describeViolation(constraint: OutputConstraint): string {
  if ("choices" in constraint) return `none of the choices ${excerpt(JSON.stringify(constraint.choices))}`;
  return "regex" in constraint
    ? `no match of the pattern ${excerpt(describeRegex(constraint.regex))}`
    : `not allowed by the JSON schema ${excerpt(stringifySchema(constraint.jsonSchema))}`;
}

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
 * @throws INVALID_ARGUMENT for a pattern that is unsupported or too large, or that matches no text
 * but the empty one.
 */
export function compileToByteAutomaton(pattern: TextPattern): ByteAutomaton {
  return runSteps(buildByteAutomaton(pattern));
}

/** Compiles a pattern in steps. Throws as `compileToByteAutomaton` does. */
export function* buildByteAutomaton(pattern: TextPattern): Steps<ByteAutomaton> {
  if ("jsonSchema" in pattern) {
    try {
      return yield* ByteAutomaton.build(schemaToExpression(pattern.jsonSchema), "The JSON schema", { isLazy: true });
    } catch (error) {
      throw nameTool(error, pattern.jsonSchema);
    }
  }
  const expression = parseRegex(pattern.regex);
  return yield* ByteAutomaton.build(expression, `The regular expression ${excerpt(describeRegex(pattern.regex))}`);
}

/**
 * Cache key: equal keys imply equivalent patterns, not vice versa. @throws INVALID_ARGUMENT for a
 * schema that is not JSON.
 */
function patternKey(pattern: TextPattern): string {
  return "jsonSchema" in pattern
    ? `schema ${stringifySchema(pattern.jsonSchema)}`
    : `regex ${describeRegex(pattern.regex)}`;
}

/** Formats a regular expression for messages and keys. */
function describeRegex(regex: string | RegExp): string {
  return typeof regex === "string" ? JSON.stringify(regex) : String(regex);
}

/**
 * Returns an error about the schema of a tool's arguments with the name of the tool, and any other
 * error as it is. The schema is at `path` of the one that was compiled.
 */
export function toToolError(error: unknown, tool: string, path = "#"): unknown {
  if (!(error instanceof LlamaGymError) || error.code !== "INVALID_ARGUMENT") return error;
  const problem = error.message.replaceAll(path, "#");
  return new LlamaGymError(error.code, `The tool ${JSON.stringify(tool)} cannot be called: ${problem}`, {
    cause: error,
  });
}

/**
 * Returns an error about the schema of a tool's arguments (see `toolCallSchema`) with the name of
 * the tool, and any other error as it is.
 */
function nameTool(error: unknown, root: JsonSchema): unknown {
  if (!(error instanceof SchemaError)) return error;
  const names = error.path.split("/").slice(1);
  let part: unknown = root;
  for (const [i, name] of names.entries()) {
    const properties = isJsonObject(part) ? part.properties : undefined;
    const tool = isJsonObject(properties) && isJsonObject(properties.name) ? properties.name.const : undefined;
    if (name === "properties" && ["arguments", "parameters"].includes(names[i + 1]) && typeof tool === "string")
      return toToolError(error, tool, ["#", ...names.slice(0, i + 2)].join("/"));
    part = isJsonObject(part) || Array.isArray(part) ? (part as Readonly<Record<string, unknown>>)[name] : undefined;
  }
  return error;
}
