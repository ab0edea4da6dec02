import { excerpt } from "../../../core/format.js";
import { isNestedDeeper } from "../../../core/json.js";
import { LlamaGymError, invalidArgument } from "../../../core/errors.js";

/** A JSON schema (draft 2020-12), as parsed JSON. */
export type JsonSchema = Readonly<Record<string, unknown>>;

/** Maximum characters of a schema as JSON. A schema of this size compiles, or is refused, within seconds. */
const MAX_SCHEMA_LENGTH = 262_144;

/** Maximum nesting of a schema's JSON, which a schema of 100 levels needs at most; the call stack allows some thousand. */
const MAX_JSON_DEPTH = 500;

/** Keywords that do not restrict the allowed values. */
const ANNOTATION_KEYWORDS = [
  "$schema",
  "$id",
  "$anchor",
  "$comment",
  "$defs",
  "definitions",
  "title",
  "description",
  "default",
  "examples",
  "deprecated",
  "readOnly",
  "writeOnly",
  "contentEncoding",
  "contentMediaType",
];

/** Supported keywords of each type. */
const KEYWORDS_BY_TYPE = {
  string: ["minLength", "maxLength", "pattern", "format"],
  integer: ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"],
  number: ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"],
  boolean: [],
  null: [],
  array: ["items", "prefixItems", "minItems", "maxItems"],
  object: ["properties", "required", "additionalProperties", "propertyNames", "minProperties", "maxProperties"],
} as const satisfies Record<string, readonly string[]>;

export type TypeName = keyof typeof KEYWORDS_BY_TYPE;

/** Creates an INVALID_ARGUMENT error for the part of a schema at `path`, a JSON pointer. */
export function schemaError(path: string, problem: string): LlamaGymError {
  return invalidArgument(`Invalid JSON schema: at ${excerpt(path)}, ${excerpt(problem, 400)}.`);
}

/** Formats a schema as JSON. @throws INVALID_ARGUMENT for a schema that is not JSON, too deep or too long. */
export function stringifySchema(schema: JsonSchema): string {
  let text: string | undefined;
  try {
    text = JSON.stringify(schema);
  } catch (cause) {
    const message = cause instanceof Error ? cause.message.split("\n")[0] : String(cause);
    const problem = cause instanceof RangeError ? "it is nested too deeply" : excerpt(message);
    throw new LlamaGymError("INVALID_ARGUMENT", `The JSON schema must be plain JSON: ${problem}.`, { cause });
  }
  if (text === undefined) throw invalidArgument("The JSON schema must be a JSON object.");
  if (text.length > MAX_SCHEMA_LENGTH)
    throw invalidArgument(
      `The JSON schema has ${text.length} characters as JSON, more than ${MAX_SCHEMA_LENGTH}. Use fewer properties or values.`,
    );
  if (isNestedDeeper(JSON.parse(text), MAX_JSON_DEPTH))
    throw invalidArgument(`The JSON schema is nested more than ${MAX_JSON_DEPTH} levels deep.`);
  return text;
}

/** @throws INVALID_ARGUMENT if a schema has a keyword that is neither known nor an annotation. */
export function checkKeywords(schema: JsonSchema, known: readonly string[], path: string): void {
  const unknown = Object.keys(schema).find((name) => !known.includes(name) && !ANNOTATION_KEYWORDS.includes(name));
  if (unknown === undefined) return;
  const expected = known.length === 0 ? "" : ` with ${known.map((name) => JSON.stringify(name)).join(", ")}`;
  throw schemaError(path, `${JSON.stringify(unknown)} is not supported${expected}`);
}

export function readTypes(schema: JsonSchema, path: string): TypeName[] {
  const { type } = schema;
  const types: unknown[] = Array.isArray(type) ? type : [type];
  const isKnown = (name: unknown): name is TypeName =>
    typeof name === "string" && Object.hasOwn(KEYWORDS_BY_TYPE, name);
  const invalidType = types.find((name) => !isKnown(name));
  if (invalidType === undefined && types.length > 0) return types.filter(isKnown);
  throw schemaError(
    path,
    `"type" must be one or a list of ${Object.keys(KEYWORDS_BY_TYPE).join(", ")}, got ${JSON.stringify(type)}`,
  );
}

export function listKeywords(types: readonly TypeName[]): string[] {
  return types.flatMap((type): readonly string[] => KEYWORDS_BY_TYPE[type]);
}

/** Reads a keyword's value, an integer >= 0. */
export function readCount(schema: JsonSchema, keyword: string, path: string): number | undefined {
  const value = schema[keyword];
  if (value === undefined || (typeof value === "number" && Number.isSafeInteger(value) && value >= 0)) return value;
  throw schemaError(path, `"${keyword}" must be an integer >= 0, got ${JSON.stringify(value)}`);
}

/** Reads a keyword's value, a finite number. */
export function readNumber(schema: JsonSchema, keyword: string, path: string): number | undefined {
  const value = schema[keyword];
  if (value === undefined || (typeof value === "number" && Number.isFinite(value))) return value;
  throw schemaError(path, `"${keyword}" must be a number, got ${JSON.stringify(value)}`);
}

/** Returns whether a value is a JSON object. */
export function isSchema(value: unknown): value is JsonSchema {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
