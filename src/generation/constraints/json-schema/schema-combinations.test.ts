import { Ajv2020 } from "ajv/dist/2020.js";
import { expect, it } from "vitest";
import { readerOf } from "../../../../test/support/random-texts.js";
import { RandomStream } from "../../../core/random/random-stream.js";
import { formatJsonLine } from "../../../core/json.js";
import type { JsonSchema } from "./keywords.js";

const random = new RandomStream(41);
const pick = <Item>(items: readonly Item[]): Item => items[random.integers(items.length)];

const NAMES = ["a", "b", "ab"];
const VALUES = [null, true, 0, 1, 2, 1.5, "", "a", "ab", [], [1], [1, 1], ["a", "b"], {}, { a: 1 }, { a: "a", b: 2 }];
const LEAVES: readonly unknown[] = [
  true,
  { type: "string" },
  { type: "integer" },
  { type: ["string", "null"] },
  { type: "number", minimum: 1 },
  { maxLength: 1 },
  { type: "object" },
  { type: ["integer", "object"] },
  { pattern: "^a" },
  { const: 1 },
];

/** Returns a keyword with a random value. */
function drawKeyword(depth: number): JsonSchema {
  const draw = () => drawSchema(depth - 1);
  return pick<() => JsonSchema>([
    () => ({ type: pick<unknown>(["object", "array", "string", ["object", "null"], ["string", "integer"]]) }),
    () => ({ properties: { [pick(NAMES)]: draw() } }),
    () => ({ required: [pick(NAMES)] }),
    () => ({ additionalProperties: draw() }),
    () => ({ patternProperties: { "^a": draw() } }),
    () => ({ propertyNames: draw() }),
    () => ({ maxProperties: 1 }),
    () => ({ dependentRequired: { a: ["b"] } }),
    () => ({ dependentSchemas: { a: draw() } }),
    () => ({ oneOf: [draw(), draw()] }),
    () => ({ anyOf: [draw(), draw()] }),
    () => ({ allOf: [draw(), draw()] }),
    () => ({ not: draw() }),
    () => Object.fromEntries(["if", "then"].map((name) => [name, draw()])),
    () => ({ if: draw(), else: draw() }),
    () => ({ items: draw() }),
    () => ({ minItems: 1 }),
    () => ({ contains: draw() }),
    () => ({ enum: [pick(VALUES), pick(VALUES), pick(VALUES)] }),
    () => ({ minLength: 1 }),
    () => ({ multipleOf: 2 }),
  ])();
}

function drawSchema(depth: number): unknown {
  if (depth === 0) return pick(LEAVES);
  return Object.assign({}, ...Array.from({ length: 1 + random.integers(3) }, () => drawKeyword(depth))) as JsonSchema;
}

// Without "prefixItems", with which ajv leaves out "contains" of an empty array.
it("random combinations of keywords accept no value that ajv rejects", () => {
  const ajv = new Ajv2020({ strict: false, logger: false });
  let accepted = 0;
  for (let i = 0; i < 400; i++) {
    const schema = drawSchema(2) as JsonSchema;
    const isValid = ajv.compile(schema);
    let reads: (text: string) => boolean;
    try {
      reads = readerOf(schema);
    } catch {
      continue;
    }
    for (const value of VALUES) {
      if (!reads(formatJsonLine(value))) continue;
      expect(`${JSON.stringify(schema)} ${JSON.stringify(value)} ${isValid(value)}`).toMatch(/true$/);
      accepted++;
    }
  }
  expect(accepted).toBeGreaterThan(500);
});
