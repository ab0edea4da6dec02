import { excerpt } from "../../../core/format.js";
import { isJsonObject, isNestedDeeper } from "../../../core/json.js";
import { LlamaGymError, invalidArgument } from "../../../core/errors.js";

/** A JSON schema (draft 2020-12, or an earlier one), as parsed JSON. */
export type JsonSchema = Readonly<Record<string, unknown>>;

/**
 * Maximum characters of a schema as JSON. A schema of this size compiles, or is refused, within
 * seconds.
 */
const MAX_SCHEMA_LENGTH = 1_000_000;

/** Maximum nesting of a schema's JSON; the call stack allows some thousand. */
const MAX_JSON_DEPTH = 500;

/** The types of JSON values as bits; an integer is a number too. */
export const TYPE_BITS = {
  string: 1,
  integer: 2,
  number: 2 | 4,
  boolean: 8,
  null: 16,
  array: 32,
  object: 64,
} as const satisfies Record<string, number>;

export const INTEGER = TYPE_BITS.integer;
/** Numbers with decimals. */
export const FRACTION = TYPE_BITS.number & ~TYPE_BITS.integer;
export const ALL_TYPES = 127;

/** Keywords that restrict a type only, and are no restriction of values of other types. */
const TYPE_KEYWORDS: Readonly<Record<string, number>> = {
  minLength: TYPE_BITS.string,
  maxLength: TYPE_BITS.string,
  pattern: TYPE_BITS.string,
  format: TYPE_BITS.string,
  minimum: TYPE_BITS.number,
  maximum: TYPE_BITS.number,
  exclusiveMinimum: TYPE_BITS.number,
  exclusiveMaximum: TYPE_BITS.number,
  multipleOf: TYPE_BITS.number,
  items: TYPE_BITS.array,
  prefixItems: TYPE_BITS.array,
  additionalItems: TYPE_BITS.array,
  minItems: TYPE_BITS.array,
  maxItems: TYPE_BITS.array,
  uniqueItems: TYPE_BITS.array,
  contains: TYPE_BITS.array,
  properties: TYPE_BITS.object,
  patternProperties: TYPE_BITS.object,
  additionalProperties: TYPE_BITS.object,
  propertyNames: TYPE_BITS.object,
  required: TYPE_BITS.object,
  minProperties: TYPE_BITS.object,
  maxProperties: TYPE_BITS.object,
  dependencies: TYPE_BITS.object,
  dependentRequired: TYPE_BITS.object,
  dependentSchemas: TYPE_BITS.object,
};

/** Keywords that restrict values, but are not supported. */
export const UNSUPPORTED_KEYWORDS = ["$dynamicRef", "$recursiveRef", "unevaluatedProperties", "unevaluatedItems"];

/** Keywords that restrict values of any type; all other names are annotations. */
const GENERAL_KEYWORDS = new Set([
  "$ref",
  "type",
  "enum",
  "const",
  "allOf",
  "anyOf",
  "oneOf",
  "not",
  "if",
  ...UNSUPPORTED_KEYWORDS,
]);

/** Returns whether a schema restricts values at all. */
export function isRestriction(schema: unknown): boolean {
  if (!isJsonObject(schema)) return schema !== true;
  return Object.entries(schema).some(
    ([name, value]) => value !== undefined && (GENERAL_KEYWORDS.has(name) || Object.hasOwn(TYPE_KEYWORDS, name)),
  );
}

/** Returns the bit of the type that a keyword restricts; 0 for other keywords. */
export function typeOfKeyword(name: string): number {
  return Object.hasOwn(TYPE_KEYWORDS, name) ? TYPE_KEYWORDS[name] : 0;
}

/** Returns the bit of a JSON value's type. */
export function typeOfValue(value: unknown): number {
  if (value === null) return TYPE_BITS.null;
  if (Array.isArray(value)) return TYPE_BITS.array;
  if (typeof value === "number") return Number.isInteger(value) ? INTEGER : FRACTION;
  return TYPE_BITS[typeof value as "string" | "boolean" | "object"];
}

/** An INVALID_ARGUMENT error of a part of a schema. */
export class SchemaError extends LlamaGymError {
  /** @param path JSON pointer of the part, from "#" on. */
  constructor(
    readonly path: string,
    problem: string,
  ) {
    super("INVALID_ARGUMENT", `Invalid JSON schema: at ${excerpt(path)}, ${excerpt(problem, 400)}.`);
  }
}

/** Creates an error for the part of a schema at `path`, a JSON pointer. */
export const schemaError = (path: string, problem: string) => new SchemaError(path, problem);

/**
 * Formats a schema as JSON. @throws INVALID_ARGUMENT for a schema that is not JSON, too deep or too
 * long.
 */
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

/** Reads "type" as bits. */
export function readTypes({ type }: JsonSchema, path: string): number {
  const types: unknown[] = Array.isArray(type) ? type : [type];
  const isKnown = (name: unknown): name is keyof typeof TYPE_BITS =>
    typeof name === "string" && Object.hasOwn(TYPE_BITS, name);
  if (types.length > 0 && types.every(isKnown)) return types.reduce((bits, name) => bits | TYPE_BITS[name], 0);
  throw schemaError(
    path,
    `"type" must be one or a list of ${Object.keys(TYPE_BITS).join(", ")}, got ${JSON.stringify(type)}`,
  );
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

/** Reads a keyword's value, a list of strings. */
export function readNames(value: unknown, keyword: string, path: string): readonly string[] {
  if (Array.isArray(value) && value.every((name) => typeof name === "string")) return value;
  throw schemaError(path, `"${keyword}" must be a list of names`);
}

/** Reads a keyword's value, a list of at least one schema. */
export function readSchemas(schema: JsonSchema, keyword: string, path: string): readonly unknown[] {
  const value = schema[keyword];
  if (Array.isArray(value) && value.length > 0) return value;
  throw schemaError(path, `"${keyword}" must be a list of at least one schema`);
}

/** Reads a keyword's value, an object with a schema for each name. */
export function readSchemaMap(schema: JsonSchema, keyword: string, path: string): JsonSchema {
  const value = schema[keyword] ?? {};
  if (isJsonObject(value)) return value;
  throw schemaError(path, `"${keyword}" must be an object with a schema for each name`);
}

/** Reads a schema: an object or a boolean. */
export function readSchema(schema: unknown, path: string): JsonSchema | boolean {
  if (typeof schema === "boolean" || isJsonObject(schema)) return schema;
  throw schemaError(path, `a schema must be an object or a boolean, got ${JSON.stringify(schema)}`);
}

/** Returns whether a value is a JSON object. */
export function isSchema(value: unknown): value is JsonSchema {
  return isJsonObject(value);
}
