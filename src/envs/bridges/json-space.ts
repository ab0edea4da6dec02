import { LlamaGymError } from "../../errors.js";
import type { RandomStream } from "../../tensor/random.js";
import type { JsonValue } from "../json.js";
import { Space, type SampleOptions } from "../spaces/space.js";
import { asObject, type JsonObject } from "./channel.js";
import { matches, resolved } from "./json-schema.js";

const LETTERS = Array.from("abcdefghijklmnopqrstuvwxyz ");
const LONGEST_SAMPLE = 20;
/** Where a schema sets no bounds, numbers are drawn from 0 to this. */
const SAMPLE_RANGE = 100;

/** JSON values that a JSON Schema allows: what environments of other frameworks take and give. It has no flat form. */
export class JsonSpace extends Space<JsonValue> {
  constructor(readonly schema: JsonObject) {
    super();
  }

  /** A simple member: optional fields are left out, texts are short. Of a pattern it knows nothing. */
  override sample(options?: SampleOptions): JsonValue {
    this.refuseMask(options);
    return sampleOf(this.schema, this.schema, this.random);
  }

  override contains(value: unknown): value is JsonValue {
    return matches(value, this.schema, this.schema);
  }

  override encode(value: JsonValue): JsonValue {
    return value;
  }

  override decode(json: JsonValue): JsonValue {
    return this.member(json);
  }

  override get flatSize(): undefined {
    return undefined;
  }

  override flatten(): number[] {
    throw new LlamaGymError("INVALID_ARGUMENT", "Values of a JSON space have no flat form.");
  }

  override unflatten(): JsonValue {
    throw new LlamaGymError("INVALID_ARGUMENT", "Values of a JSON space have no flat form.");
  }

  override toString(): string {
    const { properties } = resolved(this.schema, this.schema);
    const names = Object.keys(asObject(properties) ?? {});
    return `Json(${names.length === 0 ? "" : names.join(", ")})`;
  }
}

function sampleOf(given: JsonValue, root: JsonObject, random: RandomStream): JsonValue {
  const schema = resolved(given, root);
  if (schema.const !== undefined) return schema.const;
  if (Array.isArray(schema.enum) && schema.enum.length > 0) return random.choice(schema.enum as JsonValue[]);
  const alternatives = schema.anyOf ?? schema.oneOf;
  if (Array.isArray(alternatives) && alternatives.length > 0)
    return sampleOf(alternatives[0] as JsonValue, root, random);
  const type = Array.isArray(schema.type) ? (schema.type as readonly JsonValue[])[0] : schema.type;
  const bound = (name: string, otherwise: number) => (typeof schema[name] === "number" ? schema[name] : otherwise);
  if (type === "boolean") return random.integers(0, 2) === 1;
  if (type === "integer" || type === "number") {
    const low = bound("minimum", bound("exclusiveMinimum", -1) + 1);
    const high = Math.max(low, bound("maximum", bound("exclusiveMaximum", low + SAMPLE_RANGE + 1) - 1));
    return type === "integer" ? random.integers(low, high + 1) : random.uniform(low, high);
  }
  if (type === "string") {
    const least = bound("minLength", 1);
    const length = random.integers(
      least,
      Math.max(least, Math.min(bound("maxLength", LONGEST_SAMPLE), least + LONGEST_SAMPLE)) + 1,
    );
    return Array.from({ length }, () => random.choice(LETTERS)).join("");
  }
  if (type === "array") {
    return Array.from({ length: bound("minItems", 0) }, () => sampleOf(schema.items ?? {}, root, random));
  }
  if (type === "null") return null;
  const properties = asObject(schema.properties) ?? {};
  const required = (Array.isArray(schema.required) ? schema.required : []) as readonly string[];
  return Object.fromEntries(required.map((name) => [name, sampleOf(properties[name] ?? {}, root, random)]));
}
