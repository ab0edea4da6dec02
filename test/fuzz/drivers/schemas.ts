import { AutoModelForCausalLM, type JsonSchema, type RandomStream } from "../../../src/index.js";
import type { Driver } from "../driver.js";
import { mutateJson } from "../mutate.js";

type Random = RandomStream;

const SCHEMAS: readonly unknown[] = [
  {
    type: "object",
    properties: { name: { type: "string", maxLength: 5 }, age: { type: "integer", minimum: 0, maximum: 120 } },
    required: ["name"],
    additionalProperties: false,
  },
  { $ref: "#/$defs/node", $defs: { node: { type: "object", properties: { next: { $ref: "#/$defs/node" } } } } },
  { anyOf: [{ const: { a: [1, null] } }, { enum: ["hit", "stay", 3] }, { type: ["null", "boolean"] }] },
  { type: "array", items: { type: "number" }, prefixItems: [{ type: "string" }], minItems: 1, maxItems: 3 },
  { allOf: [{ type: "string", pattern: "^a+$", minLength: 2 }], oneOf: [{ format: "date" }, { format: "uuid" }] },
];

const ATOMS = [
  "a",
  ".",
  "\\d",
  "\\w",
  "\\s",
  "[a-z]",
  "[^\\n]",
  "é",
  "\u{1f600}",
  "\\u{1F600}",
  "\\b",
  "\\1",
  "\\p{L}",
  "^",
  "$",
];
const QUANTIFIERS = ["", "*", "+", "?", "{3}", "{0,1000}", "{100000}", "{1000000000}", "{2,}", "{5,1}", "*?"];

function regex(random: Random, depth: number): string {
  if (depth === 0) return random.choice(ATOMS) + random.choice(QUANTIFIERS);
  const inner = () => regex(random, depth - 1);
  const kind = random.integers(6);
  if (kind === 0) return `(${inner()}|${inner()})${random.choice(QUANTIFIERS)}`;
  if (kind === 1)
    return `(?${random.choice([":", "=", "!", "<=", "<n>", "i:"])}${inner()})${random.choice(QUANTIFIERS)}`;
  if (kind === 2) return inner().repeat(random.choice([1, 2, 100]));
  if (kind === 3) return "(".repeat(random.choice([1, 50, 5000])) + inner() + ")".repeat(random.choice([1, 50, 5000]));
  if (kind === 4) return inner().slice(random.integers(3));
  return inner() + inner();
}

/** Schemas that JSON has no text for, and very large ones. */
function unusualSchema(random: Random): unknown {
  const circular: Record<string, unknown> = { type: "object", properties: {} };
  circular.items = circular.properties = circular;
  const count = random.choice([1000, 30_000, 1_000_000]);
  const strings = () => Array.from({ length: count }, (_, i) => `choice ${i}`);
  const makers = [
    () => circular,
    () => ({
      get type(): string {
        throw new Error("no type");
      },
    }),
    () => ({ enum: strings() }),
    () => ({ type: "object", properties: Object.fromEntries(strings().map((name) => [name, { type: "null" }])) }),
    () => ({ type: "string", pattern: "a?".repeat(count) }),
    () => random.choice([undefined, null, 5, "string", [], () => 0, Symbol("a"), 5n, new Map(), new Date(NaN)]),
  ];
  return random.choice(makers)();
}

function listChoices(random: Random): unknown {
  const words = ["hit", "stay", "", " ", "é", "a".repeat(1e5), "\ud800", 5, null, undefined, {}, "hit"];
  if (random.integers(20) === 0) return Array.from({ length: random.choice([1e4, 1e6]) }, (_, i) => `choice ${i}`);
  if (random.integers(10) === 0) return parseMutant(mutateJson(["hit", "stay"], random));
  return Array.from({ length: random.integers(5) }, () => random.choice(words));
}

/** Parses a mutant; one that is not JSON counts as a string. */
function parseMutant(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return text;
  }
}

/** JSON schemas, regular expressions and choices that constrain a completion. */
export const schemas: Driver = {
  timeLimitMs: 10_000,
  share: 1,
  async start() {
    const model = await AutoModelForCausalLM.fromPretrained("embedded", { device: "cpu", threads: 1 });
    return async (random) => {
      const kind = random.integers(8);
      const maxNewTokens = random.choice([1, 16, 100, 1000]);
      if (kind === 0) {
        const choices = listChoices(random) as string[];
        if (random.integers(4) === 0) await model.choose("hit or stay?", choices);
        else model.compileConstraint({ choices }, { maxNewTokens });
        return;
      }
      const schema =
        random.integers(20) === 0 ? unusualSchema(random) : parseMutant(mutateJson(random.choice(SCHEMAS), random));
      const pattern = kind < 3 ? { regex: regex(random, random.integers(6)) } : { jsonSchema: schema as JsonSchema };
      const constraint = model.compilePattern(pattern, { maxNewTokens });
      const cursor = constraint.cursor();
      for (let i = 0; i < 20 && cursor.allowedTokens.length > 0; i++)
        cursor.advance(random.choice([...cursor.allowedTokens]));
    };
  },
};
