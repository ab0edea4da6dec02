import { invalidEnv } from "../../core/errors.js";
import { asJsonObject, type JsonObject, type JsonValue } from "../../core/json.js";
import type { RandomStream } from "../../core/random/random-stream.js";
import { SchemaResolver } from "./schema-references.js";

/** Range of numbers without bounds, and of sizes without a maximum above their minimum. */
const UNBOUNDED = { number: 10, size: 3 };
/** Maximum length of an array or a string that a schema demands of a sample. */
const MAX_SAMPLE_LENGTH = 10_000;
/** Decimals of a number: as many as constrained decoding writes. */
const NUM_DECIMALS = 6;
/**
 * Depth from which the first alternative is drawn and optional fields are left out, so that
 * recursive schemas end.
 */
const MAX_RANDOM_DEPTH = 8;

/**
 * Draws a JSON value for a schema. Keywords beyond bounds, sizes and alternatives are ignored, so a
 * caller that needs a member validates it.
 * @throws ENV_INVALID for a schema that refers to itself too often, or demands too long a value.
 */
export function sampleJson(schema: JsonObject, random: RandomStream): JsonValue {
  return new JsonSampler(new SchemaResolver(schema), random).sample(schema);
}

class JsonSampler {
  constructor(
    private readonly resolver: SchemaResolver,
    private readonly random: RandomStream,
  ) {}

  sample(schemaJson: JsonValue | undefined, depth = 0): JsonValue {
    const { random } = this;
    const schema = this.resolver.resolve(schemaJson, depth);
    const { type, enum: values, const: constant, properties } = schema;
    if (constant !== undefined) return constant;
    if (Array.isArray(values) && values.length > 0) return random.choice(values as JsonValue[]);
    const alternatives = schema.anyOf ?? schema.oneOf;
    if (Array.isArray(alternatives) && alternatives.length > 0)
      return this.sample(this.pick(alternatives, depth), depth + 1);
    const typeName = Array.isArray(type) ? this.pick(type, depth) : type;
    switch (typeName) {
      case "null":
        return null;
      case "boolean":
        return random.integers(0, 2) === 1;
      case "integer":
      case "number":
        return this.sampleNumber(schema, typeName === "integer");
      case "string":
        return Array.from({ length: this.sampleLength(schema, "Length") }, () =>
          String.fromCodePoint(97 + random.integers(0, 26)),
        ).join("");
      case "array":
        return this.sampleArray(schema, depth);
      default:
        return this.sampleObject(asJsonObject(properties) ?? {}, schema, depth);
    }
  }

  private pick(options: readonly JsonValue[], depth: number): JsonValue {
    return depth < MAX_RANDOM_DEPTH ? this.random.choice(options) : options[0];
  }

  private sampleNumber(schema: JsonObject, isInteger: boolean): number {
    const { low, high } = readBounds(schema, isInteger ? 1 : 0);
    if (!isInteger) {
      const value = low + (high - low) * this.random.random();
      const rounded = Number(value.toFixed(NUM_DECIMALS));
      return rounded >= low && rounded <= high ? rounded : value;
    }
    const [first, last] = [Math.ceil(low), Math.floor(high)];
    // Integers beyond 2^53 cannot be drawn.
    return Number.isSafeInteger(last + 1 - first) && first < last ? this.random.integers(first, last + 1) : first;
  }

  private sampleArray(schema: JsonObject, depth: number): JsonValue[] {
    const { items, prefixItems } = schema;
    const prefix = Array.isArray(prefixItems) ? prefixItems.map((item) => this.sample(item, depth + 1)) : [];
    const length = items === undefined ? (readNumber(schema, "minItems") ?? 0) : this.sampleLength(schema, "Items");
    const rest = Math.max(0, checkLength(length) - prefix.length);
    return [...prefix, ...Array.from({ length: rest }, () => this.sample(items, depth + 1))];
  }

  private sampleObject(properties: JsonObject, { required }: JsonObject, depth: number): JsonObject {
    const names = Array.isArray(required) ? required : [];
    const drawn = Object.entries(properties).filter(
      ([name]) => names.includes(name) || (depth < MAX_RANDOM_DEPTH && this.random.integers(0, 2) === 1),
    );
    return Object.fromEntries(drawn.map(([name, property]) => [name, this.sample(property, depth + 1)]));
  }

  private sampleLength(schema: JsonObject, noun: "Length" | "Items"): number {
    const min = checkLength(readNumber(schema, `min${noun}`) ?? 0);
    const max = Math.floor(readNumber(schema, `max${noun}`) ?? Infinity);
    return this.random.integers(min, Math.max(min, Math.min(max, min + UNBOUNDED.size)) + 1);
  }
}

function readNumber(schema: JsonObject, name: string): number | undefined {
  return typeof schema[name] === "number" ? schema[name] : undefined;
}

/** Reads the bounds of a number; `step` is added to an exclusive one. */
function readBounds(schema: JsonObject, step: number): { low: number; high: number } {
  const shift = (value: number | undefined, by: number) => (value === undefined ? undefined : value + by);
  const low = readNumber(schema, "minimum") ?? shift(readNumber(schema, "exclusiveMinimum"), step);
  const high = readNumber(schema, "maximum") ?? shift(readNumber(schema, "exclusiveMaximum"), -step);
  return { low: low ?? (high ?? UNBOUNDED.number) - UNBOUNDED.number, high: high ?? (low ?? 0) + UNBOUNDED.number };
}

function checkLength(length: number): number {
  if (Number.isInteger(length) && length >= 0 && length <= MAX_SAMPLE_LENGTH) return length;
  throw invalidEnv(
    `The schema of an environment's values asks for ${length} elements; the minimum of a sample is 0 to ${MAX_SAMPLE_LENGTH}.`,
  );
}
