import { LlamaGymError } from "../../core/errors.js";
import type { JsonValue } from "../../core/json.js";
import type { RandomStream } from "../../core/random/random-stream.js";
import { Space, type SampleOptions } from "../spaces/space.js";
import { asJsonObject, type JsonObject } from "./channel.js";
import { matchesSchema, resolveReferences, SchemaResolver } from "./json-schema.js";
import { MAX_SAMPLE_LENGTH } from "./limits.js";

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
  if (type === "array") {
    return Array.from({ length: checkSampleLength(readBound("minItems", 0)) }, () => samplePart(schema.items));
  }
  if (type === "null") return null;
  const properties = asJsonObject(schema.properties) ?? {};
  const required = (Array.isArray(schema.required) ? schema.required : []) as readonly string[];
  return Object.fromEntries(required.map((name) => [name, samplePart(properties[name])]));
}

function checkSampleLength(length: number): number {
  if (Number.isInteger(length) && length >= 0 && length <= MAX_SAMPLE_LENGTH) return length;
  throw new LlamaGymError(
    "ENV_INVALID",
    `The environment's action schema asks for ${length} elements; the minimum of a sample is 0 to ${MAX_SAMPLE_LENGTH}.`,
  );
}
