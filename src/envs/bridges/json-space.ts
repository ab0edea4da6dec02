import { invalidArgument } from "../../core/errors.js";
import type { RandomStream } from "../../core/random/random-stream.js";
import type { JsonValue } from "../../core/json.js";
import { Space, type SampleOptions } from "../spaces/space.js";
import { asJsonObject, type JsonObject } from "./channel.js";
import { matchesSchema, resolveReferences } from "./json-schema.js";

const LETTERS = Array.from("abcdefghijklmnopqrstuvwxyz ");
const MAX_SAMPLE_LENGTH = 20;
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
    return sampleFromSchema(this.schema, this.schema, this.random);
  }

  override contains(value: unknown): value is JsonValue {
    return matchesSchema(value, this.schema, this.schema);
  }

  override encode(value: JsonValue): JsonValue {
    return value;
  }

  override decode(json: JsonValue): JsonValue {
    return this.checkMember(json);
  }

  override get flatSize(): undefined {
    return undefined;
  }

  override flatten(): number[] {
    throw invalidArgument("Values of a JSON space have no flat form.");
  }

  override unflatten(): JsonValue {
    throw invalidArgument("Values of a JSON space have no flat form.");
  }

  override toString(): string {
    const { properties } = resolveReferences(this.schema, this.schema);
    const names = Object.keys(asJsonObject(properties) ?? {});
    return `Json(${names.length === 0 ? "" : names.join(", ")})`;
  }
}

function sampleFromSchema(schemaJson: JsonValue, root: JsonObject, random: RandomStream): JsonValue {
  const schema = resolveReferences(schemaJson, root);
  if (schema.const !== undefined) return schema.const;
  if (Array.isArray(schema.enum) && schema.enum.length > 0) return random.choice(schema.enum as JsonValue[]);
  const alternatives = schema.anyOf ?? schema.oneOf;
  if (Array.isArray(alternatives) && alternatives.length > 0)
    return sampleFromSchema(alternatives[0] as JsonValue, root, random);
  const type = Array.isArray(schema.type) ? (schema.type as readonly JsonValue[])[0] : schema.type;
  const readBound = (name: string, fallback: number) => (typeof schema[name] === "number" ? schema[name] : fallback);
  if (type === "boolean") return random.integers(0, 2) === 1;
  if (type === "integer" || type === "number") {
    const low = readBound("minimum", readBound("exclusiveMinimum", -1) + 1);
    const high = Math.max(low, readBound("maximum", readBound("exclusiveMaximum", low + DEFAULT_SAMPLE_RANGE + 1) - 1));
    return type === "integer" ? random.integers(low, high + 1) : random.uniform(low, high);
  }
  if (type === "string") {
    const minLength = readBound("minLength", 1);
    const length = random.integers(
      minLength,
      Math.max(minLength, Math.min(readBound("maxLength", MAX_SAMPLE_LENGTH), minLength + MAX_SAMPLE_LENGTH)) + 1,
    );
    return Array.from({ length }, () => random.choice(LETTERS)).join("");
  }
  if (type === "array") {
    return Array.from({ length: readBound("minItems", 0) }, () => sampleFromSchema(schema.items ?? {}, root, random));
  }
  if (type === "null") return null;
  const properties = asJsonObject(schema.properties) ?? {};
  const required = (Array.isArray(schema.required) ? schema.required : []) as readonly string[];
  return Object.fromEntries(required.map((name) => [name, sampleFromSchema(properties[name] ?? {}, root, random)]));
}
