import type { JsonValue } from "../../core/json.js";
import { asJsonObject, type JsonObject } from "./channel.js";

/** Maximum depth of circular references. */
const MAX_REFERENCES = 32;

/** Resolves a schema's references; {} for invalid schemas. */
export function resolveReferences(schemaJson: JsonValue | undefined, root: JsonObject): JsonObject {
  let schema = asJsonObject(schemaJson) ?? {};
  for (let i = 0; typeof schema.$ref === "string" && i < MAX_REFERENCES; i++) {
    let target: JsonValue | undefined = root;
    for (const key of schema.$ref.split("/").slice(1)) target = asJsonObject(target)?.[key];
    schema = asJsonObject(target) ?? {};
  }
  return schema;
}

const TYPE_CHECKS: Readonly<Record<string, (value: unknown) => boolean>> = {
  string: (value) => typeof value === "string",
  number: (value) => typeof value === "number",
  integer: (value) => Number.isInteger(value),
  boolean: (value) => typeof value === "boolean",
  null: (value) => value === null,
  array: Array.isArray,
  object: (value) => asJsonObject(value) !== undefined,
};

/**
 * Validates a value against a JSON Schema with the keywords type, enum, const, anyOf, oneOf, allOf, properties,
 * required, additionalProperties, items and bounds. Other keywords are ignored.
 */
export function matchesSchema(value: unknown, schemaJson: JsonValue, root: JsonObject): boolean {
  if (typeof schemaJson === "boolean") return schemaJson;
  const schema = resolveReferences(schemaJson, root);
  if (value === undefined || typeof value === "function") return false;
  const { type, const: constant } = schema;
  if (type !== undefined && ![type].flat().some((name) => TYPE_CHECKS[name as string]?.(value) ?? true)) return false;
  if (constant !== undefined && JSON.stringify(constant) !== JSON.stringify(value)) return false;
  const allowed = schema.enum;
  if (Array.isArray(allowed) && !allowed.some((candidate) => JSON.stringify(candidate) === JSON.stringify(value)))
    return false;
  for (const keyword of ["anyOf", "oneOf"]) {
    const parts = schema[keyword];
    if (Array.isArray(parts) && !parts.some((part: JsonValue) => matchesSchema(value, part, root))) return false;
  }
  if (Array.isArray(schema.allOf) && !schema.allOf.every((part: JsonValue) => matchesSchema(value, part, root)))
    return false;
  if (typeof value === "number") return isInBounds(value, schema);
  if (typeof value === "string") return isWithin(Array.from(value).length, schema.minLength, schema.maxLength);
  if (Array.isArray(value)) {
    if (!isWithin(value.length, schema.minItems, schema.maxItems)) return false;
    return schema.items === undefined || value.every((item) => matchesSchema(item, schema.items, root));
  }
  const fields = asJsonObject(value);
  return fields === undefined || matchesFields(fields, schema, root);
}

function matchesFields(fields: JsonObject, schema: JsonObject, root: JsonObject): boolean {
  const required = Array.isArray(schema.required) ? (schema.required as readonly string[]) : [];
  if (required.some((name) => !Object.hasOwn(fields, name))) return false;
  const properties = asJsonObject(schema.properties) ?? {};
  return Object.entries(fields).every(([name, field]) =>
    Object.hasOwn(properties, name)
      ? matchesSchema(field, properties[name], root)
      : matchesSchema(field, schema.additionalProperties ?? true, root),
  );
}

function isWithin(value: number, low: JsonValue | undefined, high: JsonValue | undefined): boolean {
  return !(typeof low === "number" && value < low) && !(typeof high === "number" && value > high);
}

function isInBounds(value: number, { minimum, maximum, exclusiveMinimum, exclusiveMaximum }: JsonObject): boolean {
  if (!isWithin(value, minimum, maximum)) return false;
  if (typeof exclusiveMinimum === "number" && value <= exclusiveMinimum) return false;
  return !(typeof exclusiveMaximum === "number" && value >= exclusiveMaximum);
}
