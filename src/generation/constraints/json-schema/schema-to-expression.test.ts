import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import {
  createPatternConstraint,
  sampleRandomTokens,
  createVocabulary,
} from "../../../../test/support/constrained-sampling.js";
import { createTestTokenizer } from "../../../../test/support/text.js";
import { RandomStream } from "../../../core/random/random-stream.js";
import { DEAD_STATE } from "../automaton/byte-automaton.js";
import { compileToByteAutomaton } from "../output-constraint.js";
import { formatJsonLine } from "../../../core/json.js";
import type { JsonSchema } from "./keywords.js";

const tokenizer = createTestTokenizer("gpt2");
const vocabulary = createVocabulary(tokenizer);

/** Returns a function that checks whether a text is a value of a schema. */
function reader(schema: JsonSchema): (text: string) => boolean {
  const automaton = compileToByteAutomaton({ jsonSchema: schema });
  return (text) => {
    const state = automaton.walk(0, Buffer.from(text));
    return state !== DEAD_STATE && automaton.accepting[state] === 1;
  };
}

/** Samples texts of a schema. */
function texts(schema: JsonSchema, count: number, maxNewTokens = 60): string[] {
  const constraint = createPatternConstraint(vocabulary, { jsonSchema: schema }, { maxNewTokens });
  const random = new RandomStream(1);
  return Array.from({ length: count }, () =>
    tokenizer.decode(sampleRandomTokens(constraint, random), { skipSpecialTokens: true }),
  );
}

/** Returns a function that validates values with zod, an independent implementation. */
function validator(schema: JsonSchema): (value: unknown) => boolean {
  const type = z.fromJSONSchema(schema);
  return (value) => type.safeParse(value).success;
}

const action: JsonSchema = {
  type: "object",
  properties: {
    thought: { type: "string", maxLength: 20 },
    action: { enum: ["left", "right", 'go "up"'] },
    force: { type: "number", minimum: -2, maximum: 2 },
    steps: { type: "array", items: { $ref: "#/$defs/step" }, minItems: 1, maxItems: 3 },
    sure: { type: ["boolean", "null"] },
  },
  required: ["action", "steps"],
  additionalProperties: false,
  $defs: { step: { anyOf: [{ type: "integer", minimum: 1, exclusiveMaximum: 100 }, { const: "stay" }] } },
};

describe("schemaToExpression", () => {
  it.each<[string, JsonSchema]>([
    ["an action", action],
    ["a string", { type: "string" }],
    ["a string of some length", { type: "string", minLength: 2, maxLength: 5 }],
    ["a string of a pattern", { type: "string", pattern: '^[a-c"\\\\\\n]{1,4}$' }],
    ["a string with a pattern in it", { type: "string", pattern: "ab|^c" }],
    ["an integer", { type: "integer" }],
    ["a number", { type: "number" }],
    ["a number within bounds", { type: "number", exclusiveMinimum: -0.75, maximum: 12.0625 }],
    [
      "lists of lists",
      { type: "array", items: { type: "array", items: { type: "boolean" }, maxItems: 2 }, minItems: 1 },
    ],
    [
      "optional properties",
      {
        type: "object",
        properties: { a: { type: "null" }, b: { type: "integer" }, 'c/~"d': { type: "boolean" } },
      },
    ],
    ["no properties", { type: "object", properties: {} }],
    ["an empty list", { type: "array", maxItems: 0 }],
  ])("generates valid JSON in its only form: %s", (_, schema) => {
    const isValid = validator(schema);
    for (const text of texts(schema, 200)) {
      const value: unknown = JSON.parse(text);
      expect([text, isValid(value)]).toEqual([text, true]);
      expect(text).toBe(formatJsonLine(value));
    }
  });

  it("accepts exactly the values of a small schema, each in one form", () => {
    const schema = {
      type: "object",
      properties: {
        a: { type: "integer", minimum: -1, maximum: 1 },
        b: { type: "array", items: { type: "boolean" }, maxItems: 2 },
        c: { enum: [null, "x", 1.5] },
      },
      required: ["b"],
    };
    const has = reader(schema);
    const isValid = validator({ ...schema, additionalProperties: false });
    const some = (values: unknown[]) => [undefined, ...values];
    const lists = [[], [true], [false], [true, false], [false, false, true], [1]];
    let members = 0;
    for (const a of some([-2, -1, 0, 1, 2, "0"])) {
      for (const b of some(lists)) {
        for (const c of some([null, "x", 1.5, "y", 2])) {
          const value = Object.fromEntries(Object.entries({ a, b, c }).filter(([, member]) => member !== undefined));
          expect([value, has(formatJsonLine(value))]).toEqual([value, isValid(value)]);
          if (has(formatJsonLine(value))) members++;
        }
      }
    }
    expect(members).toBe(4 * 4 * 4);
    for (const text of [
      '{"b":[]}',
      '{ "b": []}',
      '{"b": [], "b": []}',
      '{"b": [], "a": 1}',
      '{"b": []} ',
      '{"b": [],}',
    ])
      expect([text, has(text)]).toEqual([text, false]);
  });

  it("accepts exactly the integers within bounds", () => {
    const bound = fc.oneof(fc.integer({ min: -1200, max: 1200 }), fc.double({ min: -50, max: 50, noNaN: true }));
    fc.assert(
      fc.property(bound, bound, fc.boolean(), fc.boolean(), (a, b, openLow, openHigh) => {
        const [low, high] = a < b ? [a, b] : [b, a];
        const within = (value: number) =>
          (openLow ? value > low : value >= low) && (openHigh ? value < high : value <= high);
        const around = [
          ...Array.from({ length: 41 }, (_, i) => i - 20),
          ...[low, high, low * 10, high / 10].map(Math.round),
        ];
        const candidates = around.flatMap((value) => [value - 1, value + 0, value + 1]);
        const schema = {
          type: "integer",
          [openLow ? "exclusiveMinimum" : "minimum"]: low,
          [openHigh ? "exclusiveMaximum" : "maximum"]: high,
        };
        const first = openLow ? Math.floor(low) + 1 : Math.ceil(low);
        fc.pre(within(first));
        const has = reader(schema);
        for (const value of candidates) expect([value, has(String(value))]).toEqual([value, within(value)]);
        for (const text of ["-0", "00", "01", "+1", "1.0", "", "-"]) expect([text, has(text)]).toEqual([text, false]);
      }),
      { numRuns: 60 },
    );
  });

  it("accepts exactly the numbers of six decimals within bounds", () => {
    const units = fc.integer({ min: -3_000_000, max: 3_000_000 });
    const decimal = (unit: number) =>
      JSON.stringify(unit / 1e6).replace(
        /^(-?)(\d)(?:\.(\d+))?e-(\d+)$/,
        (_, sign: string, d: string, rest = "", shift: string) =>
          `${sign}0.${"0".repeat(Number(shift) - 1)}${d}${rest}`,
      );
    fc.assert(
      fc.property(
        units,
        units,
        fc.array(units, { minLength: 20, maxLength: 20 }),
        fc.boolean(),
        (a, b, others, open) => {
          const [low, high] = a < b ? [a, b] : [b, a];
          fc.pre(high > low + 1);
          const has = reader({
            type: "number",
            [open ? "exclusiveMinimum" : "minimum"]: low / 1e6,
            [open ? "exclusiveMaximum" : "maximum"]: high / 1e6,
          });
          for (const unit of [
            ...others,
            low - 1,
            low,
            low + 1,
            high - 1,
            high,
            high + 1,
            0,
            1,
            -1,
            1_000_000,
            -2_500_000,
          ]) {
            const within = open ? unit > low && unit < high : unit >= low && unit <= high;
            expect([decimal(unit), has(decimal(unit))]).toEqual([decimal(unit), within]);
          }
          for (const text of ["-0", "0.0", "0.50", "-0.0", "00.5", ".5", "1.", "1e0", "0.0000001"])
            expect(has(text)).toBe(false);
        },
      ),
      { numRuns: 60 },
    );
    const has = reader({ type: "number" });
    expect(["0", "9007199254740991", "-999999999.999999", "0.000001"].filter((text) => !has(text))).toEqual([]);
    expect(["9007199254740992", "1000000000.5", "0.0000001"].filter(has)).toEqual([]);
    const tiny = reader({ type: "number", minimum: 1e-7, exclusiveMaximum: 1e21 });
    expect(["0.000001", "1"].filter((text) => !tiny(text))).toEqual([]);
    expect(tiny("0")).toBe(false);
  });

  it("accepts schemas that zod exports", () => {
    const type = z.object({
      kind: z.literal("move"),
      direction: z.enum(["n", "s"]).optional(),
      count: z.int(),
      tags: z.array(z.string().max(3)).max(2),
      next: z.union([z.null(), z.object({ x: z.number() })]),
    });
    for (const text of texts(z.toJSONSchema(type), 100)) expect(type.safeParse(JSON.parse(text)).success).toBe(true);
  });

  it("matches exactly the multiples within bounds", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 300 }), fc.integer({ min: 0, max: 10 ** 12 }), (multipleOf, value) => {
        const has = reader({ type: "integer", multipleOf });
        expect(has(String(value))).toBe(value % multipleOf === 0);
        expect(has(String(-value * multipleOf))).toBe(true);
        const narrow = reader({ type: "integer", multipleOf, minimum: -500, maximum: 700 });
        for (const near of [-500, -301, 0, 299, 700, 701]) {
          expect(narrow(String(near))).toBe(near <= 700 && near % multipleOf === 0);
        }
      }),
      { numRuns: 20 },
    );
  });

  it("reads a schema's getters once", () => {
    let reads = 0;
    const schema = {
      get type() {
        if (reads++ > 0) throw new Error("it was read again");
        return "null";
      },
    };
    expect(reader(schema)("null")).toBe(true);
  });
});
