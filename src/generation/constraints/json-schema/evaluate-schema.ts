import { isJsonObject } from "../../../core/json.js";
import { FORMATS } from "./formats.js";
import {
  type JsonSchema,
  UNSUPPORTED_KEYWORDS,
  readCount,
  readNames,
  readNumber,
  readSchema,
  readSchemaMap,
  readSchemas,
  readTypes,
  schemaError,
  typeOfValue,
} from "./keywords.js";
import { isMultiple } from "./number-language.js";
import type { SchemaDocument, Term } from "./schema-document.js";
import { formatLanguage, type StringLanguages } from "./string-language.js";

/**
 * Maximum nesting of schemas that apply to one value; more come from schemas that refer to
 * themselves.
 */
const MAX_NESTING = 200;

/**
 * Decides whether given values, those of "enum" and "const" and names of properties, satisfy
 * schemas.
 */
export class SchemaEvaluator {
  private nesting = 0;
  private readonly enumTexts = new WeakMap<readonly unknown[], ReadonlySet<string>>();

  constructor(
    private readonly document: SchemaDocument,
    private readonly languages: StringLanguages,
  ) {}

  /** Returns whether a value satisfies all terms. */
  satisfiesAll(value: unknown, terms: readonly Term[]): boolean {
    return terms.every((term) => this.satisfies(value, term));
  }

  satisfies(value: unknown, { schema: source, path, isNegated }: Term): boolean {
    const schema = readSchema(source, path);
    if (typeof schema === "boolean") return schema !== isNegated;
    if (++this.nesting > MAX_NESTING) throw schemaError(path, "the schema refers to itself");
    const isValid =
      this.satisfiesGeneral(value, schema, path) &&
      (typeof value !== "number" || satisfiesBounds(value, schema, path)) &&
      (typeof value !== "string" || this.satisfiesString(value, schema, path)) &&
      (!Array.isArray(value) || this.satisfiesArray(value, schema, path)) &&
      (!isJsonObject(value) || this.satisfiesObject(value, schema, path));
    this.nesting--;
    return isValid !== isNegated;
  }

  private is(value: unknown, schema: unknown, path: string): boolean {
    return this.satisfies(value, { schema, path, isNegated: false });
  }

  /** Returns the canonical texts of an enum, each of whose values is compared with all of them. */
  private listTexts(values: readonly unknown[]): ReadonlySet<string> {
    const texts = this.enumTexts.get(values) ?? new Set(values.map(formatCanonical));
    this.enumTexts.set(values, texts);
    return texts;
  }

  private satisfiesGeneral(value: unknown, schema: JsonSchema, path: string): boolean {
    const unsupported = UNSUPPORTED_KEYWORDS.find((name) => schema[name] !== undefined);
    if (unsupported !== undefined) throw schemaError(path, `"${unsupported}" is not supported`);
    if (schema.type !== undefined && (typeOfValue(value) & readTypes(schema, path)) === 0) return false;
    if (schema.const !== undefined && formatCanonical(schema.const) !== formatCanonical(value)) return false;
    if (Array.isArray(schema.enum) && !this.listTexts(schema.enum).has(formatCanonical(value))) return false;
    if (schema.$ref !== undefined && !this.satisfies(value, this.document.resolve(schema.$ref, schema, path)))
      return false;
    const count = (keyword: string) =>
      readSchemas(schema, keyword, path).filter((each, i) => this.is(value, each, `${path}/${keyword}/${i}`)).length;
    if (schema.allOf !== undefined && count("allOf") < readSchemas(schema, "allOf", path).length) return false;
    if (schema.anyOf !== undefined && count("anyOf") === 0) return false;
    if (schema.oneOf !== undefined && count("oneOf") !== 1) return false;
    if (schema.not !== undefined && this.is(value, schema.not, `${path}/not`)) return false;
    if (schema.if === undefined) return true;
    const branch = this.is(value, schema.if, `${path}/if`) ? "then" : "else";
    return schema[branch] === undefined || this.is(value, schema[branch], `${path}/${branch}`);
  }

  private satisfiesString(value: string, schema: JsonSchema, path: string): boolean {
    const { pattern, format } = schema;
    const length = Array.from(value).length;
    if (length < (readCount(schema, "minLength", path) ?? 0)) return false;
    if (length > (readCount(schema, "maxLength", path) ?? Infinity)) return false;
    if (typeof format === "string" && Object.hasOwn(FORMATS, format) && !formatLanguage(format).matches(value))
      return false;
    return typeof pattern !== "string" || this.languages.pattern(pattern, path).matches(value);
  }

  private satisfiesArray(value: readonly unknown[], schema: JsonSchema, path: string): boolean {
    const { contains, uniqueItems } = schema;
    if (value.length < (readCount(schema, "minItems", path) ?? 0)) return false;
    if (value.length > (readCount(schema, "maxItems", path) ?? Infinity)) return false;
    if (uniqueItems === true && new Set(value.map(formatCanonical)).size < value.length) return false;
    const { prefix, rest } = readItems(schema, path);
    if (value.some((item, i) => !this.is(item, (i < prefix.length ? prefix[i] : rest) ?? true, `${path}/items`)))
      return false;
    if (contains === undefined) return true;
    const found = value.filter((item) => this.is(item, contains, `${path}/contains`)).length;
    return (
      found >= (readCount(schema, "minContains", path) ?? 1) &&
      found <= (readCount(schema, "maxContains", path) ?? Infinity)
    );
  }

  private satisfiesObject(value: JsonSchema, schema: JsonSchema, path: string): boolean {
    const names = Object.keys(value);
    if (names.length < (readCount(schema, "minProperties", path) ?? 0)) return false;
    if (names.length > (readCount(schema, "maxProperties", path) ?? Infinity)) return false;
    const has = (name: string) => Object.hasOwn(value, name);
    if (schema.required !== undefined && !readNames(schema.required, "required", path).every(has)) return false;
    const properties = readSchemaMap(schema, "properties", path);
    const patterns = Object.entries(readSchemaMap(schema, "patternProperties", path));
    for (const name of names) {
      const matching = patterns.filter(([source]) => this.languages.pattern(source, path).matches(name));
      const schemas = matching.map(([, each]) => each);
      if (Object.hasOwn(properties, name)) schemas.push(properties[name]);
      if (schemas.length === 0 && schema.additionalProperties !== undefined) schemas.push(schema.additionalProperties);
      if (!schemas.every((each) => this.is(value[name], each, `${path}/properties`))) return false;
      if (schema.propertyNames !== undefined && !this.is(name, schema.propertyNames, `${path}/propertyNames`))
        return false;
    }
    return readDependencies(schema, path).every(
      ({ name, required, schema: dependent }) =>
        !has(name) || (required.every(has) && this.is(value, dependent, `${path}/dependencies`)),
    );
  }
}

function satisfiesBounds(value: number, schema: JsonSchema, path: string): boolean {
  const { minimum, maximum, exclusiveMinimum, exclusiveMaximum } = readBounds(schema, path);
  const divisor = readNumber(schema, "multipleOf", path);
  // A validator's quotient is infinite, so that whether it is a multiple differs between them.
  if (divisor !== undefined && divisor > 0 && !Number.isFinite(value / divisor))
    throw schemaError(path, `${value} is too large to be divided by the "multipleOf" ${divisor}`);
  return (
    !(value < minimum!) &&
    !(value > maximum!) &&
    !(value <= exclusiveMinimum!) &&
    !(value >= exclusiveMaximum!) &&
    (divisor === undefined || isMultiple(value, divisor))
  );
}

/** Reads the bounds of numbers, also draft 4's, where the exclusive ones are flags. */
export function readBounds(schema: JsonSchema, path: string) {
  const read = (keyword: "minimum" | "maximum", exclusive: "exclusiveMinimum" | "exclusiveMaximum") => {
    const bound = readNumber(schema, keyword, path);
    if (typeof schema[exclusive] === "boolean")
      return schema[exclusive] ? { [exclusive]: bound } : { [keyword]: bound };
    return { [keyword]: bound, [exclusive]: readNumber(schema, exclusive, path) };
  };
  return { ...read("minimum", "exclusiveMinimum"), ...read("maximum", "exclusiveMaximum") } as {
    minimum?: number;
    maximum?: number;
    exclusiveMinimum?: number;
    exclusiveMaximum?: number;
  };
}

/**
 * Reads the schemas of an array's first items and of the others; "items" is a list in earlier
 * drafts.
 */
export function readItems(schema: JsonSchema, path: string): { prefix: readonly unknown[]; rest: unknown } {
  const { items, prefixItems, additionalItems } = schema;
  if (prefixItems === undefined && Array.isArray(items)) return { prefix: items, rest: additionalItems };
  if (prefixItems !== undefined && !Array.isArray(prefixItems))
    throw schemaError(path, '"prefixItems" must be a list of schemas');
  return { prefix: prefixItems ?? [], rest: items };
}

/** Reads what the presence of a property requires: other properties, and a schema of the object. */
export function readDependencies(
  schema: JsonSchema,
  path: string,
): { name: string; required: readonly string[]; schema: unknown }[] {
  return ["dependencies", "dependentRequired", "dependentSchemas"].flatMap((keyword) =>
    Object.entries(readSchemaMap(schema, keyword, path)).map(([name, value]) =>
      Array.isArray(value)
        ? { name, required: readNames(value, keyword, path), schema: true }
        : { name, required: [], schema: value },
    ),
  );
}

/** Formats a value so that equal values have one text: names sorted. */
export function formatCanonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(formatCanonical).join()}]`;
  if (!isJsonObject(value)) return JSON.stringify(value);
  const members = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${formatCanonical(member)}`).join()}}`;
}
