import { invalidEnv } from "../../core/errors.js";
import { type JsonObject, type JsonValue, asJsonObject } from "../../core/json.js";
import { MAX_MESSAGE_DEPTH, MAX_SCHEMA_STEPS, MAX_SAMPLE_LENGTH } from "./limits.js";
import type { RandomStream } from "../../core/random/random-stream.js";
import { Space, type SampleOptions } from "../spaces/space.js";

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
class SchemaResolver {
  private steps = 0;

  constructor(private readonly root: JsonObject) {}

  /** @throws ENV_INVALID when schemas refer to themselves too often. */
  resolve(schema: JsonValue | undefined, depth: number): JsonObject {
    if (depth <= MAX_MESSAGE_DEPTH && ++this.steps <= MAX_SCHEMA_STEPS) return resolveReferences(schema, this.root);
    throw invalidEnv(
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

const LETTERS = Array.from("abcdefghijklmnopqrstuvwxyz ");
const DEFAULT_SAMPLE_LENGTH = 20;
/** Upper bound of sampled numbers where a schema has none. */
const DEFAULT_SAMPLE_RANGE = 100;

/** JSON values that match a JSON Schema, as in environments of other frameworks. It has no flat form. */
export class JsonSpace extends Space<JsonValue> {
  constructor(readonly schema: JsonObject) {
    super();
  }

  /** Samples a simple member: without optional fields, with short strings, ignoring patterns. */
  override sample(options?: SampleOptions): JsonValue {
    this.rejectMask(options);
    return sampleFromSchema(this.schema, new SchemaResolver(this.schema), this.random, 0);
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

function sampleFromSchema(
  schemaJson: JsonValue,
  resolver: SchemaResolver,
  random: RandomStream,
  depth: number,
): JsonValue {
  const schema = resolver.resolve(schemaJson, depth);
  const samplePart = (part: JsonValue = {}) => sampleFromSchema(part, resolver, random, depth + 1);
  if (schema.const !== undefined) return schema.const;
  if (Array.isArray(schema.enum) && schema.enum.length > 0) return random.choice(schema.enum as JsonValue[]);
  const alternatives = schema.anyOf ?? schema.oneOf;
  if (Array.isArray(alternatives) && alternatives.length > 0) return samplePart(alternatives[0] as JsonValue);
  const type = Array.isArray(schema.type) ? (schema.type as readonly JsonValue[])[0] : schema.type;
  const readBound = (name: string, fallback: number) => (typeof schema[name] === "number" ? schema[name] : fallback);
  if (type === "boolean") return random.integers(0, 2) === 1;
  if (type === "integer" || type === "number") {
    const low = readBound("minimum", readBound("exclusiveMinimum", -1) + 1);
    const high = Math.max(low, readBound("maximum", readBound("exclusiveMaximum", low + DEFAULT_SAMPLE_RANGE + 1) - 1));
    if (type === "number") return random.uniform(low, high);
    const [first, last] = [Math.ceil(low), Math.floor(high)];
    // Integers beyond 2^53 cannot be drawn.
    return Number.isSafeInteger(last + 1 - first) && first < last ? random.integers(first, last + 1) : first;
  }
  if (type === "string") {
    const low = checkSampleLength(readBound("minLength", 1));
    const high = Math.max(low, Math.min(readBound("maxLength", DEFAULT_SAMPLE_LENGTH), low + DEFAULT_SAMPLE_LENGTH));
    return Array.from({ length: random.integers(low, high + 1) }, () => random.choice(LETTERS)).join("");
  }
  if (type === "array")
    return Array.from({ length: checkSampleLength(readBound("minItems", 0)) }, () => samplePart(schema.items));
  if (type === "null") return null;
  const properties = asJsonObject(schema.properties) ?? {};
  const required = (Array.isArray(schema.required) ? schema.required : []) as readonly string[];
  return Object.fromEntries(required.map((name) => [name, samplePart(properties[name])]));
}

function checkSampleLength(length: number): number {
  if (Number.isInteger(length) && length >= 0 && length <= MAX_SAMPLE_LENGTH) return length;
  throw invalidEnv(
    `The environment's action schema asks for ${length} elements; the minimum of a sample is 0 to ${MAX_SAMPLE_LENGTH}.`,
  );
}
