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
import { formatJson } from "./json-text.js";
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
      expect(text).toBe(formatJson(value));
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
          expect([value, has(formatJson(value))]).toEqual([value, isValid(value)]);
          if (has(formatJson(value))) members++;
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

  it.each<[JsonSchema, string]>([
    [{}, "at #, any value would be allowed"],
    [{ type: "text" }, '"type" must be one or a list of string, integer'],
    [{ type: [] }, '"type" must be one or a list of'],
    [{ type: "string", format: "color" }, '"format" must be one of date, time, date-time, email, hostname'],
    [{ type: "string", format: "date", minLength: 3 }, '"format" is not supported with "minLength" and "maxLength"'],
    [{ type: "string", minimum: 3 }, '"minimum" is not supported'],
    [{ type: "string", minLength: -1 }, '"minLength" must be an integer >= 0, got -1'],
    [{ type: "string", minLength: 3, maxLength: 2 }, "no value is allowed"],
    [{ type: "string", pattern: "a", maxLength: 2 }, '"pattern" is not supported with "minLength" and "maxLength"'],
    [{ type: "string", pattern: "(?=a)" }, 'at #, "pattern": Invalid regular expression "(?=a)"'],
    [{ type: "integer", multipleOf: 0.5 }, '"multipleOf" is supported only for integers >= 1, got 0.5'],
    [{ type: "integer", multipleOf: 2000 }, '"multipleOf" is not supported with these bounds'],
    [{ type: "integer", multipleOf: 7, minimum: 3 }, '"multipleOf" is not supported with these bounds'],
    [{ type: "integer", multipleOf: 7, minimum: 8, maximum: 13 }, "no value is allowed"],
    [{ type: "array", prefixItems: [{ type: "null" }], items: false, minItems: 2 }, "no value is allowed"],
    [{ type: "array", prefixItems: {} }, '"prefixItems" must be a list of schemas'],
    [{ type: "integer", minimum: 1.2, maximum: 1.8 }, "no value is allowed"],
    [{ type: "number", minimum: "1" }, '"minimum" must be a number, got "1"'],
    [{ type: "array" }, '"items" is missing'],
    [{ type: "array", items: { type: "null" }, uniqueItems: true }, '"uniqueItems" is not supported'],
    [{ type: "array", items: { type: "null" }, minItems: 2, maxItems: 1 }, "no value is allowed"],
    [{ type: "array", items: [{ type: "null" }] }, "at #/items, a schema must be an object"],
    [{ type: "object" }, '"properties" is missing'],
    [{ type: "object", properties: { a: true } }, "at #/properties/a, a schema must be an object, got true"],
    [{ type: "object", properties: { "a/b~": {} } }, "at #/properties/a~1b~0, any value would be allowed"],
    [{ type: "object", properties: {}, required: ["a"] }, '"required" contains "a", which is not in "properties"'],
    [
      { type: "object", properties: {}, additionalProperties: 1 },
      '"additionalProperties" must be a boolean or a schema',
    ],
    [{ type: "object", properties: {}, maxProperties: 1 }, '"maxProperties" is not supported with "properties"'],
    [
      { type: "object", additionalProperties: { type: "null" }, required: ["a"] },
      '"required" is supported with "properties" or names of an "enum"',
    ],
    [{ type: "object", properties: {}, patternProperties: {} }, '"patternProperties" is not supported'],
    [{ oneOf: [] }, '"oneOf" must be a list of at least one schema'],
    [{ oneOf: [{ type: "integer" }, { type: "number" }] }, 'the options of "oneOf" must have different types'],
    [
      {
        oneOf: ["a", "a"].map((kind) => ({
          type: "object",
          properties: { kind: { const: kind } },
          required: ["kind"],
        })),
      },
      'the options of "oneOf" must have different types',
    ],
    [{ $ref: "#/$defs/%E0%A4%A", $defs: {} }, '"$ref" is not valid percent-encoding'],
    [{ allOf: [{ type: "null" }] }, '"allOf" is not supported'],
    [{ not: { type: "null" } }, '"not" is not supported'],
    [{ anyOf: [] }, '"anyOf" must be a list of at least one schema'],
    [{ anyOf: [{ type: "null" }], type: "null" }, '"type" is not supported with "anyOf"'],
    [{ enum: [] }, "no value is allowed"],
    [{ enum: "a" }, '"enum" must be a list'],
    [{ enum: [1, 2], type: "string" }, "no value is allowed"],
    [{ $ref: "#/$defs/a" }, '"#/$defs/a" does not exist'],
    [{ $ref: "https://example.com/a" }, '"$ref" must point into this schema'],
    [{ $ref: "#" }, '"#" refers to itself'],
    [{ $ref: "#/$defs/a", $defs: { a: { $ref: "#/$defs/b" }, b: { $ref: "#/$defs/a" } } }, "refers to itself"],
    [{ $ref: "#/$defs/a", $defs: { a: { type: "array", items: { $ref: "#/$defs/a" } } } }, "refers to itself"],
    [{ type: "array", items: { $ref: "#/items" } }, '"#/items" refers to itself'],
    [{ type: "string", minLength: 100_000 }, "The JSON schema is too large"],
  ])("rejects %j", (schema, message) => {
    expect(() => compileToByteAutomaton({ jsonSchema: schema })).toThrowError(
      expect.objectContaining({ code: "INVALID_ARGUMENT", message: expect.stringContaining(message) as string }),
    );
  });

  it.each<[string, z.ZodType]>([
    ["email", z.email()],
    ["uuid", z.uuid()],
    ["url", z.url()],
    ["hostname", z.hostname()],
    ["date", z.iso.date()],
    ["datetime", z.iso.datetime({ offset: true })],
    ["ipv4", z.ipv4()],
    ["ipv6", z.ipv6()],
    ["tuple", z.tuple([z.enum(["a", "b"]), z.int()])],
    ["tuple with a rest", z.tuple([z.null()]).rest(z.boolean())],
    ["optional tuple items", z.tuple([z.null(), z.boolean().optional(), z.boolean().optional()])],
    ["record", z.record(z.string(), z.int())],
    ["record of names", z.record(z.enum(["x", "y"]), z.boolean())],
    ["partial record", z.partialRecord(z.enum(["x", "y"]), z.boolean())],
    ["record of a pattern", z.record(z.string().regex(/^[a-z]{1,3}$/), z.null())],
    [
      "discriminated union",
      z.discriminatedUnion("type", [
        z.object({ type: z.literal("a"), x: z.boolean() }),
        z.object({ type: z.enum(["b", "c"]) }),
      ]),
    ],
    ["multiples", z.int().multipleOf(7)],
    ["multiples of a number", z.number().multipleOf(12)],
    ["positive multiples", z.int().positive().multipleOf(25)],
    ["few multiples", z.int().min(-100).max(100).multipleOf(30)],
    ["object that allows others", z.looseObject({ a: z.null() })],
  ])("generates values of zod's %s", (_, type) => {
    for (const text of texts(z.toJSONSchema(type), 50, 200)) {
      expect([text, type.safeParse(JSON.parse(text)).success]).toEqual([text, true]);
    }
  });

  it.each(["date", "date-time", "email", "hostname", "ipv4", "ipv6", "uri", "uuid"])(
    "generates the format %s",
    (format) => {
      const isValid = validator({ type: "string", format });
      for (const text of texts({ type: "string", format }, 50, 200)) {
        expect([text, isValid(JSON.parse(text))]).toEqual([text, true]);
      }
    },
  );

  it("matches known texts of each format", () => {
    const examples = {
      date: ["2024-02-28", "1999-12-31"],
      time: ["23:59:59Z", "00:00:00.5+01:00"],
      "date-time": ["2024-02-28T12:00:00Z"],
      email: ["a.b@example.com"],
      hostname: ["localhost", "a-b.example.org"],
      ipv4: ["127.0.0.1", "255.255.255.255"],
      ipv6: ["::1", "::", "fe80::1", "2001:db8:0:0:0:0:0:1", "1::"],
      uri: ["https://example.com", "http://localhost:8080/a%20b?q=1#top"],
      uuid: ["123e4567-e89b-12d3-a456-426614174000"],
    };
    for (const [format, values] of Object.entries(examples)) {
      const has = reader({ type: "string", format });
      expect(values.filter((value) => !has(JSON.stringify(value)))).toEqual([]);
      expect(
        ["", "x y", "300.1.1.1", "2024/02/28", "25:00:00Z", ":::"].filter((text) => has(JSON.stringify(text))),
      ).toEqual([]);
    }
  });

  it("accepts only valid days of each month", () => {
    const has = reader({ type: "string", format: "date" });
    expect(
      ["2023-02-29", "2023-02-30", "2023-04-31", "2023-13-01", "2023-01-00"].filter((day) => has(`"${day}"`)),
    ).toEqual([]);
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
    expect(compileToByteAutomaton({ jsonSchema: schema }).stateCount).toBe(5);
  });

  it.each<[string, () => unknown, RegExp]>([
    ["is deep", () => Array.from({ length: 20_000 }).reduce((items) => ({ type: "array", items }), {}), /too deeply/],
    [
      "has a deep value",
      () => ({ const: Array.from({ length: 2000 }).reduce((value) => [value], 1) }),
      /more than 500 levels/,
    ],
    [
      "is circular",
      () => {
        const schema: Record<string, unknown> = { type: "array" };
        schema.items = schema;
        return schema;
      },
      /must be plain JSON: Converting circular structure/,
    ],
    [
      "throws",
      () => ({
        get type() {
          throw new Error("no type today");
        },
      }),
      /must be plain JSON: no type today/,
    ],
    ["has a bigint", () => ({ const: 1n }), /must be plain JSON: /],
    [
      "has 1,000,000 values",
      () => ({ enum: Array.from({ length: 1_000_000 }, (_, i) => `v${i}`) }),
      /more than 262144/,
    ],
    [
      "has 30,000 optional properties",
      () => ({
        type: "object",
        properties: Object.fromEntries(Array.from({ length: 30_000 }, (_, i) => [`p${i}`, { type: "null" }])),
      }),
      /more than 262144/,
    ],
    [
      "has 3,000 optional properties",
      () => ({
        type: "object",
        properties: Object.fromEntries(Array.from({ length: 3000 }, (_, i) => [`p${i}`, { type: "null" }])),
      }),
      /too large/,
    ],
  ])("rejects a schema that %s", (_, make, message) => {
    expect(() => compileToByteAutomaton({ jsonSchema: make() as JsonSchema })).toThrowError(
      expect.objectContaining({ code: "INVALID_ARGUMENT", message: expect.stringMatching(message) as string }),
    );
  });

  it("quickly rejects schemas that grow exponentially or are nested too deeply", () => {
    const doubling = Object.fromEntries(
      Array.from({ length: 40 }, (_, i) => {
        const next = { $ref: `#/$defs/s${i + 1}` };
        return [`s${i}`, { type: "object", properties: { a: next, b: next }, required: ["a", "b"] }];
      }),
    );
    const schema = { $ref: "#/$defs/s0", $defs: { ...doubling, s40: { type: "null" } } };
    expect(() => compileToByteAutomaton({ jsonSchema: schema })).toThrowError(/too large/);
    const deep = Array.from({ length: 101 }).reduce<JsonSchema>((items) => ({ type: "array", items }), {
      type: "null",
    });
    expect(() => compileToByteAutomaton({ jsonSchema: deep })).toThrowError(
      /schemas are nested more than 100 levels deep/,
    );
  });
});
