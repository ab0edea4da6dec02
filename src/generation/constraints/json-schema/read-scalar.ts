import { LlamaGymError } from "../../../core/errors.js";
import { type Expression, NO_MATCH, alternatives, literal } from "../regex/expression.js";
import { parseRegex } from "../regex/parse-regex.js";
import { FORMATS } from "./formats.js";
import { formatJsonLine } from "../../../core/json.js";
import { stringWithContent, stringWithLength } from "./json-text.js";
import {
  type JsonSchema,
  type TypeName,
  checkKeywords,
  isSchema,
  readCount,
  readNumber,
  readTypes,
  schemaError,
} from "./keywords.js";
import { type Bounds, integerRange, multiplesRange, numberRange } from "./number-range.js";

/** Reads "const" and "enum": the values that also have the type, if there is one. */
export function readValues(schema: JsonSchema, path: string): Expression {
  checkKeywords(schema, ["const", "enum", "type"], path);
  const { const: constant, enum: list } = schema;
  if (list !== undefined && !Array.isArray(list)) throw schemaError(path, '"enum" must be a list');
  const types = schema.type === undefined ? undefined : readTypes(schema, path);
  const values: unknown[] = list ?? [constant];
  const texts = values
    .filter((value) => types === undefined || types.some((type) => isOfType(value, type)))
    .map(formatJsonLine);
  const allowed = constant === undefined ? texts : texts.filter((text) => text === formatJsonLine(constant));
  return alternatives([...new Set(allowed)].map(literal));
}

function isOfType(value: unknown, type: TypeName): boolean {
  switch (type) {
    case "null":
      return value === null;
    case "array":
      return Array.isArray(value);
    case "object":
      return isSchema(value);
    case "integer":
      return Number.isInteger(value);
    default:
      return typeof value === type;
  }
}

function readBounds(schema: JsonSchema, path: string): Bounds {
  return {
    minimum: readNumber(schema, "minimum", path),
    maximum: readNumber(schema, "maximum", path),
    exclusiveMinimum: readNumber(schema, "exclusiveMinimum", path),
    exclusiveMaximum: readNumber(schema, "exclusiveMaximum", path),
  };
}

export function readNumbers(type: "integer" | "number", schema: JsonSchema, path: string): Expression {
  const bounds = readBounds(schema, path);
  const divisor = readNumber(schema, "multipleOf", path);
  if (divisor === undefined) return type === "integer" ? integerRange(bounds) : numberRange(bounds);
  if (!Number.isSafeInteger(divisor) || divisor < 1)
    throw schemaError(path, `"multipleOf" is supported only for integers >= 1, got ${divisor}`);
  const multiples = multiplesRange(divisor, bounds);
  if (multiples !== undefined) return multiples;
  throw schemaError(
    path,
    '"multipleOf" is not supported with these bounds; narrow them to 10,000 values or remove them',
  );
}

export function readString(schema: JsonSchema, path: string): Expression {
  const { format } = schema;
  // zod limits a hostname's length by a lookahead.
  const isHostname = format === "hostname" && String(schema.pattern).startsWith("^(?=.{1,253}");
  const pattern = isHostname ? undefined : schema.pattern;
  const [min, max] = [readCount(schema, "minLength", path), readCount(schema, "maxLength", path)];
  const hasLength = min !== undefined || max !== undefined;
  if (pattern === undefined && format === undefined)
    return (min ?? 0) > (max ?? Infinity) ? NO_MATCH : stringWithLength(min ?? 0, max ?? Infinity);
  if (hasLength) {
    const keyword = pattern === undefined ? "format" : "pattern";
    const advice = "express the length in a pattern";
    throw schemaError(path, `"${keyword}" is not supported with "minLength" and "maxLength"; ${advice}`);
  }
  if (pattern === undefined) {
    const regex = typeof format === "string" && Object.hasOwn(FORMATS, format) ? FORMATS[format] : undefined;
    if (regex !== undefined) return stringWithContent(parseRegex(regex));
    const known = Object.keys(FORMATS).join(", ");
    throw schemaError(path, `"format" must be one of ${known}, or have a "pattern", got ${JSON.stringify(format)}`);
  }
  if (typeof pattern !== "string")
    throw schemaError(path, `"pattern" must be a string, got ${JSON.stringify(pattern)}`);
  try {
    return stringWithContent(parseRegex(pattern, { search: true }));
  } catch (error) {
    if (error instanceof LlamaGymError) throw schemaError(path, `"pattern": ${error.message.replace(/\.$/, "")}`);
    throw error;
  }
}
