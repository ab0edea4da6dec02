import { LlamaGymError } from "../../core/errors.js";
import type { JsonValue } from "../../core/json.js";
import { asJsonObject, type JsonObject } from "./channel.js";
import { MAX_MESSAGE_DEPTH, MAX_SCHEMA_STEPS } from "./limits.js";

/** Maximum depth of circular references. */
const MAX_REFERENCES = 32;

/** Resolves a schema's references; {} for invalid schemas. */
export function resolveReferences(schemaJson: JsonValue | undefined, root: JsonObject): JsonObject {
  let schema = asJsonObject(schemaJson) ?? {};
  for (let i = 0; typeof schema.$ref === "string" && i < MAX_REFERENCES; i++) {
    let target: JsonValue | undefined = root;
    for (const key of schema.$ref.split("/").slice(1)) {
      const fields = asJsonObject(target);
      target = fields !== undefined && Object.hasOwn(fields, key) ? fields[key] : undefined;
    }
    schema = asJsonObject(target) ?? {};
  }
  return schema;
}

/** Resolves the schemas of a document, as often as one value may need them. */
export class SchemaResolver {
  private steps = 0;

  constructor(private readonly root: JsonObject) {}

  /** @throws ENV_INVALID when schemas refer to themselves too often. */
  resolve(schema: JsonValue | undefined, depth: number): JsonObject {
    if (depth <= MAX_MESSAGE_DEPTH && ++this.steps <= MAX_SCHEMA_STEPS) return resolveReferences(schema, this.root);
    throw new LlamaGymError(
      "ENV_INVALID",
      `The environment's action schema is too complex: it takes more than ${MAX_SCHEMA_STEPS} steps or ${MAX_MESSAGE_DEPTH} levels.`,
    );
  }
}

const TYPE_CHECKS: ReadonlyMap<unknown, (value: unknown) => boolean> = new Map([
  ["string", (value: unknown) => typeof value === "string"],
  ["number", (value: unknown) => typeof value === "number"],
  ["integer", Number.isInteger],
  ["boolean", (value: unknown) => typeof value === "boolean"],
  ["null", (value: unknown) => value === null],
  ["array", Array.isArray],
  ["object", (value: unknown) => asJsonObject(value) !== undefined],
]);

/**
 * Validates a value against a JSON Schema with the keywords type, enum, const, anyOf, oneOf, allOf, properties,
 * required, additionalProperties, items and bounds. Other keywords are ignored.
 */
export function matchesSchema(value: unknown, schemaJson: JsonValue, resolver: SchemaResolver, depth = 0): boolean {
  if (typeof schemaJson === "boolean") return schemaJson;
  if (value === undefined || typeof value === "function") return false;
  const schema = resolver.resolve(schemaJson, depth);
  const { type, const: constant, enum: allowed, anyOf, oneOf, allOf, items } = schema;
  const matches = (part: JsonValue) => matchesSchema(value, part, resolver, depth + 1);
  const isEqual = (candidate: JsonValue) => JSON.stringify(candidate) === JSON.stringify(value);
  if (type !== undefined && ![type].flat().some((name) => TYPE_CHECKS.get(name)?.(value) ?? true)) return false;
  if (constant !== undefined && !isEqual(constant)) return false;
  if (Array.isArray(allowed) && !allowed.some(isEqual)) return false;
  if ([anyOf, oneOf].some((parts) => Array.isArray(parts) && !parts.some(matches))) return false;
  if (Array.isArray(allOf) && !allOf.every(matches)) return false;
  if (typeof value === "number") return isInBounds(value, schema);
  if (typeof value === "string") return isWithin(Array.from(value).length, schema.minLength, schema.maxLength);
  if (Array.isArray(value)) {
    if (!isWithin(value.length, schema.minItems, schema.maxItems)) return false;
    return items === undefined || value.every((item) => matchesSchema(item, items, resolver, depth + 1));
  }
  const fields = asJsonObject(value);
  if (fields === undefined) return true;
  const required = Array.isArray(schema.required) ? (schema.required as readonly string[]) : [];
  if (!required.every((name) => Object.hasOwn(fields, name))) return false;
  const properties = asJsonObject(schema.properties) ?? {};
  return Object.entries(fields).every(([name, field]) => {
    const part = Object.hasOwn(properties, name) ? properties[name] : (schema.additionalProperties ?? true);
    return matchesSchema(field, part, resolver, depth + 1);
  });
}

function isWithin(value: number, low: JsonValue | undefined, high: JsonValue | undefined): boolean {
  return !(typeof low === "number" && value < low) && !(typeof high === "number" && value > high);
}

function isInBounds(value: number, { minimum, maximum, exclusiveMinimum, exclusiveMaximum }: JsonObject): boolean {
  if (!isWithin(value, minimum, maximum)) return false;
  if (typeof exclusiveMinimum === "number" && value <= exclusiveMinimum) return false;
  return !(typeof exclusiveMaximum === "number" && value >= exclusiveMaximum);
}
