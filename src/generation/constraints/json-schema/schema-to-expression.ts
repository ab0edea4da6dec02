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
import { formatJsonLine } from "../../../core/json.js";
import {
  type JsonSchema,
  type TypeName,
  checkKeywords,
  readCount,
  isSchema,
  listKeywords,
  readTypes,
  schemaError,
  stringifySchema,
} from "./keywords.js";

import { readNumbers, readString, readValues } from "./read-scalar.js";

/** Deeper nesting comes from programming errors. */
const MAX_DEPTH = 100;

/**
 * Converts a schema to an expression of the JSON texts of its values. Each value has one text: on one line, with ", " and ": "
 * between values, strings as JSON.stringify writes them, properties in the schema's order and no others.
 * docs/constrained-decoding.md lists the supported keywords.
 * @throws INVALID_ARGUMENT for another keyword, a schema that refers to itself, a schema that allows no value, and one that is not
 * JSON or too large.
 */
export function schemaToExpression(schema: JsonSchema): Expression {
  // A copy: getters and toJSON methods of the original run once.
  const copy = JSON.parse(stringifySchema(schema)) as JsonSchema;
  return new SchemaReader(copy).read(copy, "#");
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
    if (schema.anyOf !== undefined) return alternatives(this.readOptions(schema, "anyOf", path));
    if (schema.oneOf !== undefined) return this.readOneOf(schema, path);
    if (schema.type === undefined) {
      checkKeywords(schema, ["type", "enum", "const", "anyOf", "oneOf", "$ref"], path);
      throw schemaError(path, 'any value would be allowed; add a "type", "enum", "const", "anyOf", "oneOf" or "$ref"');
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
      case "number":
        return readNumbers(type, schema, path);
      case "string":
        return readString(schema, path);
      case "array":
        return this.readArray(schema, path);
      case "object":
        return this.readObjectType(schema, path);
    }
  }

  private readArray(schema: JsonSchema, path: string): Expression {
    const { items, prefixItems = [] } = schema;
    const min = readCount(schema, "minItems", path) ?? 0;
    if (!Array.isArray(prefixItems)) throw schemaError(path, '"prefixItems" must be a list of schemas');
    const isClosed = items === false || (items === undefined && prefixItems.length > 0);
    const max = Math.min(readCount(schema, "maxItems", path) ?? Infinity, isClosed ? prefixItems.length : Infinity);
    if (max === 0 && min === 0) return literal("[]");
    if (items === undefined && !isClosed) throw schemaError(path, '"items" is missing: any value would be allowed');
    const heads = prefixItems.slice(0, max).map((item, i) => this.read(item, `${path}/prefixItems/${i}`));
    const item = isClosed ? NO_MATCH : this.read(items, `${path}/items`);
    if (min > max) return NO_MATCH;
    // Without prefixes the first item has no comma before it.
    if (heads.length === 0) heads.push(item);
    let rest = repetition(sequence([literal(", "), item]), Math.max(0, min - heads.length), max - heads.length);
    for (let i = heads.length - 1; i >= 0; i--) {
      rest = sequence([literal(i === 0 ? "" : ", "), heads[i], rest]);
      if (i >= min) rest = optional(rest);
    }
    return sequence([literal("["), rest, literal("]")]);
  }

  private readObjectType(schema: JsonSchema, path: string): Expression {
    const { properties, additionalProperties = false, required = [] } = schema;
    if (!Array.isArray(required)) throw schemaError(path, '"required" must be a list of names');
    if (properties === undefined && isSchema(additionalProperties)) return this.readRecord(schema, required, path);
    const unsupported = ["propertyNames", "minProperties", "maxProperties"].find((name) => schema[name] !== undefined);
    if (unsupported !== undefined) throw schemaError(path, `"${unsupported}" is not supported with "properties"`);
    if (typeof additionalProperties !== "boolean" && !isSchema(additionalProperties))
      throw schemaError(path, '"additionalProperties" must be a boolean or a schema');
    if (!isSchema(properties))
      throw schemaError(path, '"properties" is missing: it must be an object with a schema for each property');
    return this.readMembers(properties, required, `${path}/properties`);
  }

  /** Reads an object whose properties all have one schema, and names of a list or of a pattern. */
  private readRecord(schema: JsonSchema, required: readonly unknown[], path: string): Expression {
    const { additionalProperties, propertyNames = { minLength: 1 } } = schema;
    if (!isSchema(propertyNames)) throw schemaError(path, '"propertyNames" must be a schema');
    const min = readCount(schema, "minProperties", path) ?? 0;
    const max = readCount(schema, "maxProperties", path) ?? Infinity;
    const names = propertyNames.enum;
    if (Array.isArray(names) && min === 0 && max === Infinity) {
      const members = Object.fromEntries(names.map((name) => [String(name), additionalProperties]));
      return this.readMembers(members, required, `${path}/additionalProperties`);
    }
    if (required.length > 0) throw schemaError(path, '"required" is supported with "properties" or names of an "enum"');
    if (min > max) return NO_MATCH;
    const member = sequence([
      this.read({ type: "string", ...propertyNames }, `${path}/propertyNames`),
      literal(": "),
      this.read(additionalProperties, `${path}/additionalProperties`),
    ]);
    const others = repetition(sequence([literal(", "), member]), Math.max(0, min - 1), max - 1);
    const members = max === 0 ? EMPTY_TEXT : sequence([member, others]);
    return sequence([literal("{"), min === 0 ? optional(members) : members, literal("}")]);
  }

  private readMembers(properties: JsonSchema, required: readonly unknown[], path: string): Expression {
    const names = new Set(Object.keys(properties));
    const unknown = required.find((name) => !names.has(name as string));
    if (unknown !== undefined)
      throw schemaError(path, `"required" contains ${JSON.stringify(unknown)}, which is not in "properties"`);
    const requiredNames = new Set(required);
    const items = Array.from(names, (name) => {
      const value = this.read(properties[name], `${path}/${name.replaceAll("~", "~0").replaceAll("/", "~1")}`);
      return { body: sequence([literal(`${JSON.stringify(name)}: `), value]), isRequired: requiredNames.has(name) };
    });
    return sequence([literal("{"), items.length === 0 ? EMPTY_TEXT : { kind: "list", items }, literal("}")]);
  }

  private readOptions(schema: JsonSchema, keyword: "anyOf" | "oneOf", path: string): Expression[] {
    checkKeywords(schema, [keyword, "discriminator"], path);
    const options = schema[keyword];
    if (!Array.isArray(options) || options.length === 0)
      throw schemaError(path, `"${keyword}" must be a list of at least one schema`);
    return options.map((option, i) => this.read(option, `${path}/${keyword}/${i}`));
  }

  /** Reads options of which no two allow the same value, so that they can be read as "anyOf". */
  private readOneOf(schema: JsonSchema, path: string): Expression {
    const expressions = this.readOptions(schema, "oneOf", path);
    const options = (schema.oneOf as JsonSchema[]).map((option) => this.dereference(option, path));
    if (haveDistinctTypes(options) || haveDiscriminator(options)) return alternatives(expressions);
    throw schemaError(
      path,
      'the options of "oneOf" must have different types, or a required property with different "const" or "enum" values; use "anyOf"',
    );
  }

  private dereference(schema: JsonSchema, path: string): JsonSchema {
    const { $ref: reference } = schema;
    if (typeof reference !== "string") return schema;
    return this.dereference(this.resolvePointer(reference, path) as JsonSchema, path);
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
      const name = decodePointerPart(part, path);
      const hasName = typeof target === "object" && target !== null && Object.hasOwn(target, name);
      target = hasName ? (target as JsonSchema)[name] : undefined;
    }
    if (target === undefined) throw schemaError(path, `${JSON.stringify(reference)} does not exist`);
    return target;
  }
}

/** Decodes a part of a JSON pointer in a URI fragment (RFC 6901). */
function decodePointerPart(part: string, path: string): string {
  try {
    return decodeURIComponent(part).replaceAll("~1", "/").replaceAll("~0", "~");
  } catch {
    throw schemaError(path, `"$ref" is not valid percent-encoding at ${JSON.stringify(part)}`);
  }
}

function haveDistinctTypes(options: readonly JsonSchema[]): boolean {
  // Every integer is a number too.
  const types = options.flatMap(({ type }) => type).map((type) => (type === "integer" ? "number" : type));
  return !types.includes(undefined) && new Set(types).size === types.length;
}

/** Returns whether a required property has other values in every option. */
function haveDiscriminator(options: readonly JsonSchema[]): boolean {
  const [{ properties: first }] = options;
  const names = isSchema(first) ? Object.keys(first) : [];
  return names.some((name) => {
    const values = options.flatMap(({ properties, required }) => {
      const property = isSchema(properties) ? properties[name] : undefined;
      if (!isSchema(property) || !Array.isArray(required) || !required.includes(name)) return [undefined];
      const list = property.const === undefined ? property.enum : [property.const];
      return Array.isArray(list) ? list.map(formatJsonLine) : [undefined];
    });
    return !values.includes(undefined) && new Set(values).size === values.length;
  });
}
