import type { RandomStream } from "../../core/random/random-stream.js";

export type PlainJsonSchema = Readonly<Record<string, unknown>>;

/** Range of numbers without bounds, and of sizes without a maximum above their minimum. */
const UNBOUNDED = { number: 10, size: 3 };

/** Draws a JSON value for a schema. Keywords beyond bounds, sizes and alternatives are ignored, so the caller validates it. */
export function sampleJson(schema: PlainJsonSchema, random: RandomStream): unknown {
  const { type, enum: values, const: constant, anyOf, oneOf } = schema;
  if (constant !== undefined) return constant;
  if (Array.isArray(values)) return random.choice(values as unknown[]);
  const alternatives = (anyOf ?? oneOf) as PlainJsonSchema[] | undefined;
  if (alternatives !== undefined) return sampleJson(random.choice(alternatives), random);
  const name = Array.isArray(type) ? random.choice(type as string[]) : (type as string | undefined);
  return samplers[name ?? "object"]?.(schema, random);
}

const samplers: Readonly<Record<string, (schema: PlainJsonSchema, random: RandomStream) => unknown>> = {
  null: () => null,
  boolean: (_, random) => random.integers(0, 2) === 1,
  integer: (schema, random) => {
    const { low, high } = readBounds(schema, 1);
    return random.integers(Math.ceil(low), Math.floor(high) + 1);
  },
  number: (schema, random) => {
    const { low, high } = readBounds(schema, 0);
    return low + (high - low) * random.random();
  },
  string: (schema, random) =>
    Array.from({ length: sampleSize(schema, "Length", random) }, () =>
      String.fromCodePoint(97 + random.integers(0, 26)),
    ).join(""),
  array: (schema, random) => {
    const { items, prefixItems = [] } = schema as { items?: PlainJsonSchema; prefixItems?: PlainJsonSchema[] };
    const prefix = prefixItems.map((item) => sampleJson(item, random));
    const length = items === undefined ? 0 : sampleSize(schema, "Items", random) - prefix.length;
    return [...prefix, ...Array.from({ length: Math.max(0, length) }, () => sampleJson(items!, random))];
  },
  object: (schema, random) => {
    const { properties = {} } = schema as { properties?: Readonly<Record<string, PlainJsonSchema>> };
    const entries = Object.entries(properties).map(([name, property]) => [name, sampleJson(property, random)]);
    return Object.fromEntries(entries);
  },
};

/** Reads the bounds of a number; `step` is added to an exclusive one. */
function readBounds(schema: PlainJsonSchema, step: number): { low: number; high: number } {
  const { minimum, exclusiveMinimum, maximum, exclusiveMaximum } = schema as Record<string, number | undefined>;
  const low = minimum ?? (exclusiveMinimum === undefined ? undefined : exclusiveMinimum + step);
  const high = maximum ?? (exclusiveMaximum === undefined ? undefined : exclusiveMaximum - step);
  return { low: low ?? (high ?? UNBOUNDED.number) - UNBOUNDED.number, high: high ?? (low ?? 0) + UNBOUNDED.number };
}

function sampleSize(schema: PlainJsonSchema, noun: "Length" | "Items", random: RandomStream): number {
  const sizes = schema as Record<string, number | undefined>;
  const min = sizes[`min${noun}`] ?? 0;
  return random.integers(min, Math.min(sizes[`max${noun}`] ?? Infinity, min + UNBOUNDED.size) + 1);
}
