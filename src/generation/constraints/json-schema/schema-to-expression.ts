import { LlamaGymError } from "../../../core/errors.js";
import {
  EMPTY_TEXT,
  type Expression,
  NO_MATCH,
  alternatives,
  literal,
  optional,
  repetition,
  sequence,
} from "../regex/expression.js";
import { parseRegex } from "../regex/parse-regex.js";
import { formatJson, stringWithContent, stringWithLength } from "./json-text.js";
import {
  type JsonSchema,
  type TypeName,
  checkKeywords,
  readCount,
  isSchema,
  listKeywords,
  readNumber,
  readTypes,
} from "./keywords.js";
import { type Bounds, integerRange, numberRange } from "./number-range.js";
import { schemaError } from "./schema-error.js";

export type { JsonSchema } from "./keywords.js";

/** Deeper nesting comes from programming errors. */
const MAX_DEPTH = 100;

/**
 * Converts a schema to an expression of the JSON texts of its values. Each value has one text: on one line, with ", " and ": "
 * between values, strings as JSON.stringify writes them, properties in the schema's order and no others.
 * docs/constrained-decoding.md lists the supported keywords.
 * @throws INVALID_ARGUMENT for another keyword, a schema that refers to itself and a schema that allows no value.
 */
export function schemaToExpression(schema: JsonSchema): Expression {
  return new SchemaReader(schema).read(schema, "#");
}

class SchemaReader {
  private readonly resolvedReferences = new Map<string, Expression>();
  /** References that enclose the schema that is being read. */
  private readonly activeReferences: string[] = [];
  private depth = 0;

  constructor(private readonly root: JsonSchema) {}

  read(schema: unknown, path: string): Expression {
    if (!isSchema(schema)) throw schemaError(path, `a schema must be an object, got ${JSON.stringify(schema)}`);
    if (++this.depth > MAX_DEPTH) throw schemaError(path, `schemas are nested more than ${MAX_DEPTH} levels deep`);
    const expression = this.readObject(schema, path);
    this.depth--;
    if (expression === NO_MATCH) throw schemaError(path, "no value is allowed");
    return expression;
  }

  private readObject(schema: JsonSchema, path: string): Expression {
    if (schema.$ref !== undefined) return this.readReference(schema, path);
    if (schema.const !== undefined || schema.enum !== undefined) return readValues(schema, path);
    if (schema.anyOf !== undefined) return this.readAnyOf(schema, path);
    if (schema.type === undefined) {
      checkKeywords(schema, ["type", "enum", "const", "anyOf", "$ref"], path);
      throw schemaError(path, 'any value would be allowed; add a "type", "enum", "const", "anyOf" or "$ref"');
    }
    const types = readTypes(schema, path);
    checkKeywords(schema, ["type", ...listKeywords(types)], path);
    return alternatives(types.map((type) => this.readType(type, schema, path)));
  }

  private readType(type: TypeName, schema: JsonSchema, path: string): Expression {
    switch (type) {
      case "null":
        return literal("null");
      case "boolean":
        return alternatives([literal("true"), literal("false")]);
      case "integer":
        return integerRange(readBounds(schema, path));
      case "number":
        return numberRange(readBounds(schema, path));
      case "string":
        return readString(schema, path);
      case "array":
        return this.readArray(schema, path);
      case "object":
        return this.readProperties(schema, path);
    }
  }

  private readArray(schema: JsonSchema, path: string): Expression {
    const { items } = schema;
    const [min, max] = [readCount(schema, "minItems", path) ?? 0, readCount(schema, "maxItems", path) ?? Infinity];
    if (max === 0 && min === 0) return literal("[]");
    if (items === undefined) throw schemaError(path, '"items" is missing: any value would be allowed');
    const item = this.read(items, `${path}/items`);
    if (min > max) return NO_MATCH;
    const remainingItems = repetition(sequence([literal(", "), item]), Math.max(0, min - 1), max - 1);
    const nonEmpty = sequence([item, remainingItems]);
    return sequence([literal("["), min === 0 ? optional(nonEmpty) : nonEmpty, literal("]")]);
  }

  /** Every property but the first follows a comma; the first is any one up to the first required one. */
  private readProperties(schema: JsonSchema, path: string): Expression {
    const { properties, required = [], additionalProperties = false } = schema;
    if (!isSchema(properties))
      throw schemaError(path, '"properties" is missing: it must be an object with a schema for each property');
    if (typeof additionalProperties !== "boolean")
      throw schemaError(path, '"additionalProperties" with a schema is not supported; list each one in "properties"');
    if (!Array.isArray(required)) throw schemaError(path, '"required" must be a list of names');
    const names = Object.keys(properties);
    const unknown: unknown = required.find((name) => !names.includes(name as string));
    if (unknown !== undefined)
      throw schemaError(path, `"required" contains ${JSON.stringify(unknown)}, which is not in "properties"`);
    const members = names.map((name) => {
      const value = this.read(
        properties[name],
        `${path}/properties/${name.replaceAll("~", "~0").replaceAll("/", "~1")}`,
      );
      return sequence([literal(`${JSON.stringify(name)}: `), value]);
    });
    const isRequired = names.map((name) => required.includes(name));
    const laterMembers = members.map((member, i) => {
      const withComma = sequence([literal(", "), member]);
      return isRequired[i] ? withComma : optional(withComma);
    });
    const firstMemberCount = isRequired.includes(true) ? isRequired.indexOf(true) + 1 : names.length;
    const memberLists = members
      .slice(0, firstMemberCount)
      .map((member, i) => sequence([member, ...laterMembers.slice(i + 1)]));
    if (!isRequired.includes(true)) memberLists.push(EMPTY_TEXT);
    return sequence([literal("{"), alternatives(memberLists), literal("}")]);
  }

  private readAnyOf(schema: JsonSchema, path: string): Expression {
    checkKeywords(schema, ["anyOf"], path);
    const { anyOf } = schema;
    if (!Array.isArray(anyOf) || anyOf.length === 0)
      throw schemaError(path, '"anyOf" must be a list of at least one schema');
    return alternatives(anyOf.map((option, i) => this.read(option, `${path}/anyOf/${i}`)));
  }

  private readReference(schema: JsonSchema, path: string): Expression {
    checkKeywords(schema, ["$ref"], path);
    const { $ref: reference } = schema;
    if (typeof reference !== "string" || !/^#(\/|$)/.test(reference))
      throw schemaError(path, `"$ref" must point into this schema (#/$defs/...), got ${JSON.stringify(reference)}`);
    const resolved = this.resolvedReferences.get(reference);
    if (resolved !== undefined) return resolved;
    if (
      reference === "#" ||
      this.activeReferences.includes(reference) ||
      path === reference ||
      path.startsWith(`${reference}/`)
    )
      throw schemaError(
        path,
        `${JSON.stringify(reference)} refers to itself, which is not supported; write out its levels`,
      );
    this.activeReferences.push(reference);
    const expression = this.read(this.resolvePointer(reference, path), reference);
    this.activeReferences.pop();
    this.resolvedReferences.set(reference, expression);
    return expression;
  }

  private resolvePointer(reference: string, path: string): unknown {
    let target: unknown = this.root;
    for (const part of reference.split("/").slice(1)) {
      const name = decodePointerPart(part);
      const hasName = typeof target === "object" && target !== null && Object.hasOwn(target, name);
      target = hasName ? (target as JsonSchema)[name] : undefined;
    }
    if (target === undefined) throw schemaError(path, `${JSON.stringify(reference)} does not exist`);
    return target;
  }
}

/** Decodes a part of a JSON pointer in a URI fragment (RFC 6901). */
function decodePointerPart(part: string): string {
  const decoded = part.replace(/%[0-9A-Fa-f]{2}/g, (code) => decodeURIComponent(code));
  return decoded.replaceAll("~1", "/").replaceAll("~0", "~");
}

/** Reads "const" and "enum": the values that also have the type, if there is one. */
function readValues(schema: JsonSchema, path: string): Expression {
  checkKeywords(schema, ["const", "enum", "type"], path);
  const { const: constant, enum: list } = schema;
  if (list !== undefined && !Array.isArray(list)) throw schemaError(path, '"enum" must be a list');
  const types = schema.type === undefined ? undefined : readTypes(schema, path);
  const values: unknown[] = list ?? [constant];
  const texts = values
    .filter((value) => types === undefined || types.some((type) => isOfType(value, type)))
    .map(formatJson);
  const allowed = constant === undefined ? texts : texts.filter((text) => text === formatJson(constant));
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

function readString(schema: JsonSchema, path: string): Expression {
  const { pattern } = schema;
  const [min, max] = [readCount(schema, "minLength", path), readCount(schema, "maxLength", path)];
  if (pattern === undefined)
    return (min ?? 0) > (max ?? Infinity) ? NO_MATCH : stringWithLength(min ?? 0, max ?? Infinity);
  if (min !== undefined || max !== undefined)
    throw schemaError(
      path,
      '"pattern" is not supported with "minLength" and "maxLength"; express the length in the pattern',
    );
  if (typeof pattern !== "string")
    throw schemaError(path, `"pattern" must be a string, got ${JSON.stringify(pattern)}`);
  try {
    return stringWithContent(parseRegex(pattern, { search: true }));
  } catch (error) {
    if (error instanceof LlamaGymError) throw schemaError(path, `"pattern": ${error.message.replace(/\.$/, "")}`);
    throw error;
  }
}
