import { schemaError } from "./schema-error.js";

/** A JSON schema (draft 2020-12), as parsed JSON. */
export type JsonSchema = Readonly<Record<string, unknown>>;

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
];

/** Supported keywords of each type. */
const KEYWORDS_BY_TYPE = {
  string: ["minLength", "maxLength", "pattern"],
  integer: ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"],
  number: ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"],
  boolean: [],
  null: [],
  array: ["items", "minItems", "maxItems"],
  object: ["properties", "required", "additionalProperties"],
} as const satisfies Record<string, readonly string[]>;

export type TypeName = keyof typeof KEYWORDS_BY_TYPE;

/** @throws INVALID_ARGUMENT if a schema has a keyword that is neither known nor an annotation. */
export function checkKeywords(schema: JsonSchema, known: readonly string[], path: string): void {
  const unknown = Object.keys(schema).find((name) => !known.includes(name) && !ANNOTATION_KEYWORDS.includes(name));
  if (unknown === undefined) return;
  const expected = known.length === 0 ? "" : ` with ${known.map((name) => JSON.stringify(name)).join(", ")}`;
  throw schemaError(path, `${JSON.stringify(unknown)} is not supported${expected}`);
}

/** Reads the types of a schema. */
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

/** Lists the keywords of any of the types. */
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
