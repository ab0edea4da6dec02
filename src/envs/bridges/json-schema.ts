import type { JsonValue } from "../json.js";
import { asObject, type JsonObject } from "./channel.js";

/** References that lead in circles end here. */
const MAX_REFERENCES = 32;

/** The schema itself, wherever in the document a reference says that it is; {} for what is none. */
export function resolved(given: JsonValue | undefined, root: JsonObject): JsonObject {
  let schema = asObject(given) ?? {};
  for (let i = 0; typeof schema.$ref === "string" && i < MAX_REFERENCES; i++) {
    let target: JsonValue | undefined = root;
    for (const step of schema.$ref.split("/").slice(1)) target = asObject(target)?.[step];
    schema = asObject(target) ?? {};
  }
  return schema;
}

const types: Readonly<Record<string, (value: unknown) => boolean>> = {
  string: (value) => typeof value === "string",
  number: (value) => typeof value === "number",
  integer: (value) => Number.isInteger(value),
  boolean: (value) => typeof value === "boolean",
  null: (value) => value === null,
  array: Array.isArray,
  object: (value) => asObject(value) !== undefined,
};

/**
 * Whether a value is what a JSON Schema allows, by its words type, enum, const, anyOf, oneOf, allOf, properties,
 * required, additionalProperties, items and the bounds. Words that it does not know allow everything.
 */
export function matches(value: unknown, given: JsonValue, root: JsonObject): boolean {
  if (typeof given === "boolean") return given;
  const schema = resolved(given, root);
  if (value === undefined || typeof value === "function") return false;
  const { type, const: only } = schema;
  if (type !== undefined && ![type].flat().some((name) => types[name as string]?.(value) ?? true)) return false;
  if (only !== undefined && JSON.stringify(only) !== JSON.stringify(value)) return false;
  const allowed = schema.enum;
  if (Array.isArray(allowed) && !allowed.some((one) => JSON.stringify(one) === JSON.stringify(value))) return false;
  for (const word of ["anyOf", "oneOf"]) {
    const parts = schema[word];
    if (Array.isArray(parts) && !parts.some((part: JsonValue) => matches(value, part, root))) return false;
  }
  if (Array.isArray(schema.allOf) && !schema.allOf.every((part: JsonValue) => matches(value, part, root))) return false;
  if (typeof value === "number") return inBounds(value, schema);
  if (typeof value === "string") return within(Array.from(value).length, schema.minLength, schema.maxLength);
  if (Array.isArray(value)) {
    if (!within(value.length, schema.minItems, schema.maxItems)) return false;
    return schema.items === undefined || value.every((item) => matches(item, schema.items, root));
  }
  const fields = asObject(value);
  return fields === undefined || fieldsMatch(fields, schema, root);
}

function fieldsMatch(fields: JsonObject, schema: JsonObject, root: JsonObject): boolean {
  const required = Array.isArray(schema.required) ? (schema.required as readonly string[]) : [];
  if (required.some((name) => !Object.hasOwn(fields, name))) return false;
  const properties = asObject(schema.properties) ?? {};
  return Object.entries(fields).every(([name, field]) =>
    Object.hasOwn(properties, name)
      ? matches(field, properties[name], root)
      : matches(field, schema.additionalProperties ?? true, root),
  );
}

function within(value: number, low: JsonValue | undefined, high: JsonValue | undefined): boolean {
  return !(typeof low === "number" && value < low) && !(typeof high === "number" && value > high);
}

function inBounds(value: number, { minimum, maximum, exclusiveMinimum, exclusiveMaximum }: JsonObject): boolean {
  if (!within(value, minimum, maximum)) return false;
  if (typeof exclusiveMinimum === "number" && value <= exclusiveMinimum) return false;
  return !(typeof exclusiveMaximum === "number" && value >= exclusiveMaximum);
}
