import { type JsonObject, type JsonValue, asJsonObject } from "../../core/json.js";
import { sampleJson } from "../spaces/sample-json.js";
import { resolveReferences, SchemaResolver } from "../spaces/schema-references.js";
import { Space, type SampleOptions } from "../spaces/space.js";

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
 * Validates a value against a JSON Schema with the keywords type, enum, const, anyOf, oneOf, allOf,
 * properties, required, additionalProperties, items and bounds. Other keywords are ignored.
 */
function matchesSchema(value: unknown, schemaJson: JsonValue, resolver: SchemaResolver, depth = 0): boolean {
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

/**
 * JSON values that match a JSON Schema, as in environments of other frameworks; a `SchemaSpace` for
 * schemas that are not trusted. What it does not know it ignores, where zod refuses the schema, and
 * it never runs a pattern, which could take exponential time. It has no flat form.
 */
export class JsonSpace extends Space<JsonValue> {
  constructor(readonly schema: JsonObject) {
    super();
  }

  /** Draws a value as `sampleJson` does: patterns and other keywords may not be kept. */
  override sample(options?: SampleOptions): JsonValue {
    this.rejectMask(options);
    return sampleJson(this.schema, this.random);
  }

  override contains(value: unknown): value is JsonValue {
    return matchesSchema(value, this.schema, new SchemaResolver(this.schema));
  }

  override encode(value: JsonValue): JsonValue {
    return value;
  }

  override decode(json: JsonValue): JsonValue {
    return this.checkMember(json);
  }

  override toString(): string {
    const { properties } = resolveReferences(this.schema, this.schema);
    return `Json(${Object.keys(asJsonObject(properties) ?? {}).join(", ")})`;
  }
}
