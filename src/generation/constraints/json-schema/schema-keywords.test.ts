import { Ajv } from "ajv";
import { Ajv2020 } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import { describe, expect, it } from "vitest";
import { randomTextsOf, readerOf } from "../../../../test/support/random-texts.js";
import { RandomStream } from "../../../core/random/random-stream.js";
import { formatJsonLine } from "../../../core/json.js";
import type { JsonSchema } from "./keywords.js";

const TEN = "a b c d e f g h i j".split(" ");

/** Returns a function that validates values with ajv, an independent implementation. */
function validatorOf(schema: JsonSchema): (value: unknown) => boolean {
  const ajv = new (schema.additionalItems === undefined ? Ajv2020 : Ajv)({
    strict: false,
    logger: false,
    multipleOfPrecision: 6,
  });
  addFormats.default(ajv);
  return ajv.compile(schema);
}

const tree = {
  $ref: "#/$defs/node",
  $defs: {
    node: {
      type: "object",
      properties: { value: { type: "integer" }, children: { type: "array", items: { $ref: "#/$defs/node" } } },
      required: ["value"],
    },
  },
};
const kinds = ["circle", "square"].map((kind) => ({
  type: "object",
  properties: { kind: { const: kind }, size: { type: "integer" } },
  required: ["kind"],
}));

/** Schemas with values that they allow, and values that they do not. */
const cases: [name: string, schema: JsonSchema, allowed: unknown[], others: unknown[]][] = [
  ["no restriction", {}, [1, "a", null, [[]], { a: [{ b: {} }] }], []],
  [
    "one of overlapping options, with a keyword of another type",
    { properties: {}, oneOf: [{ minLength: 1 }, { oneOf: [{ type: "string" }, true] }] },
    [],
    ["", 1],
  ],
  [
    "one of the values that are no numbers and even numbers, with a keyword of another type",
    { dependentSchemas: {}, oneOf: [{ not: { type: "number" } }, { multipleOf: 2 }] },
    [],
    [1, 1.5],
  ],
  [
    "texts by a condition without consequences",
    { if: { oneOf: [{ type: "string" }] }, minLength: 1, not: { type: "object" } },
    ["a"],
    [{}, ""],
  ],
  [
    "one of objects with a name and all objects",
    { type: "object", oneOf: [{ required: ["x"] }, { propertyNames: { type: "string" } }] },
    [{}],
    [{ x: 1 }],
  ],
  ["an object of any members", { type: "object" }, [{}, { a: 1, b: { c: [null] } }], [[], 1]],
  ["an array of any items", { type: "array" }, [[], [1, [2], {}]], [{}]],
  [
    "additional properties",
    { properties: { a: { type: "null" } }, additionalProperties: true },
    [{ a: null, b: 1 }, { b: [] }],
    [{ a: 1 }, 3],
  ],
  [
    "additional properties of a schema",
    { type: "object", properties: { a: {} }, additionalProperties: { type: "integer" } },
    [{ a: "x", b: 1, c: 2 }, {}],
    [{ b: "x" }],
  ],
  ["unknown names", { type: "null", "x-order": 3, unit: "m", enumNames: ["a"] }, [null], [1]],
  ["no type", { properties: { a: { minLength: 2 } }, required: ["a"] }, [{ a: "xy" }], [{ a: "x" }, {}]],
  ["boolean schemas", { type: "object", properties: { a: true, b: false } }, [{}, { a: [1] }], [{ b: 1 }]],
  [
    "a reference with other keywords",
    { $ref: "#/$defs/a", maxLength: 3, $defs: { a: { type: "string", minLength: 2 } } },
    ["ab", "abc"],
    ["a", "abcd"],
  ],
  [
    "an enumeration with other keywords",
    { enum: ["a", "abc", 3, null], type: ["string", "null"], minLength: 2 },
    ["abc", null],
    ["a", 3],
  ],
  [
    "references by anchor and identifier",
    {
      $id: "https://example.com/root",
      type: "array",
      items: { anyOf: [{ $ref: "#x" }, { $ref: "other" }] },
      $defs: { x: { $anchor: "x", type: "null" }, y: { $id: "other", const: 5 } },
    },
    [[null, 5]],
    [[6]],
  ],
  [
    "merged objects",
    {
      allOf: [
        { type: "object", properties: { a: { type: "integer" } }, required: ["a"] },
        { properties: { a: { minimum: 3 }, b: { type: "null" } } },
      ],
    },
    [{ a: 3 }, { a: 4, b: null }],
    [{ a: 2 }, { b: null }, {}],
  ],
  [
    "merged arrays",
    {
      allOf: [
        { type: "array", items: { type: "string" }, maxItems: 2 },
        { items: { maxLength: 1 }, minItems: 1 },
      ],
    },
    [["a"], ["a", "b"]],
    [[], ["ab"], ["a", "b", "c"]],
  ],
  [
    "merged strings",
    { type: "string", allOf: [{ pattern: "^a" }, { pattern: "z$" }, { maxLength: 4 }] },
    ["az", "abyz"],
    ["a", "z", "abcdz"],
  ],
  [
    "a pattern with a length",
    { type: "string", pattern: "^[a-c]+$", minLength: 2, maxLength: 3 },
    ["ab", "abc"],
    ["a", "abca", "d"],
  ],
  ["a format with a length", { type: "string", format: "email", maxLength: 8 }, ["a@b.org"], ["abc@b.org", "a"]],
  [
    "options with common keywords",
    {
      type: "object",
      properties: { a: { type: "null" }, b: { type: "null" } },
      anyOf: [{ required: ["a"] }, { required: ["b"] }],
    },
    [{ a: null }, { b: null }, { a: null, b: null }],
    [{}],
  ],
  [
    "exactly one of two properties",
    {
      type: "object",
      properties: { a: { type: "null" }, b: { type: "null" } },
      oneOf: [{ required: ["a"] }, { required: ["b"] }],
    },
    [{ a: null }, { b: null }],
    [{}, { a: null, b: null }],
  ],
  ["integers or numbers, but not both", { oneOf: [{ type: "integer" }, { type: "number" }] }, [0.5], [1]],
  [
    "overlapping ranges, but not both",
    {
      oneOf: [
        { type: "integer", minimum: 0, maximum: 9 },
        { type: "integer", minimum: 5, maximum: 12 },
      ],
    },
    [4, 10, 12],
    [5, 9, 13],
  ],
  [
    "objects of which one kind may be null",
    { oneOf: [{ ...kinds[0], type: ["object", "null"] }, kinds[1]] },
    [null, { kind: "square" }, { kind: "circle", size: 1 }],
    [{ kind: "x" }],
  ],
  [
    "objects that may both be null",
    { oneOf: kinds.map((kind) => ({ ...kind, type: ["object", "null"] })) },
    [{ kind: "square" }],
    [null],
  ],
  [
    "objects and strings that overlap",
    { oneOf: [{ ...kinds[0], type: ["object", "string"] }, { type: ["string", "integer"] }] },
    [{ kind: "circle" }, 3],
    ["a"],
  ],
  [
    "a condition",
    JSON.parse(`{
      "type": "object",
      "properties": { "kind": { "enum": ["a", "b"] }, "size": { "type": "integer" } },
      "required": ["kind"],
      "if": { "properties": { "kind": { "const": "a" } } },
      "then": { "required": ["size"] },
      "else": { "properties": { "size": false } }
    }`) as JsonSchema,
    [{ kind: "a", size: 1 }, { kind: "b" }],
    [{ kind: "a" }, { kind: "b", size: 1 }],
  ],
  [
    "values that are not allowed",
    { type: ["integer", "string", "boolean"], not: { enum: [3, "x", true] } },
    [4, "y", false],
    [3, "x", true],
  ],
  [
    "a type that is not allowed",
    { not: { type: ["object", "array", "string", "number"] } },
    [null, true],
    [1, "a", {}],
  ],
  [
    "a required property that is not allowed",
    { type: "object", properties: { a: {}, b: {} }, not: { required: ["a"] } },
    [{}, { b: 1 }],
    [{ a: 1 }],
  ],
  [
    "a pattern that is not allowed",
    { type: "string", maxLength: 3, not: { pattern: "^a|z" } },
    ["b", ""],
    ["ab", "bz"],
  ],
  [
    "patterns of names",
    {
      type: "object",
      patternProperties: { "^x-": { type: "integer" }, y$: { minimum: 5 } },
      additionalProperties: false,
    },
    [{ "x-a": 1 }, { "x-y": 5, ay: 7 }],
    [{ "x-a": "b" }, { "x-y": 4 }, { b: 1 }],
  ],
  [
    "properties that match a pattern too",
    {
      type: "object",
      properties: { ab: { type: "integer" } },
      patternProperties: { "^a": { minimum: 3 } },
      additionalProperties: { type: "null" },
    },
    [{ ab: 3, ac: 9, b: null }],
    [{ ab: 2 }, { ac: 1 }, { b: 1 }],
  ],
  [
    "names of a schema",
    { type: "object", propertyNames: { pattern: "^[a-z]+$", maxLength: 2 }, additionalProperties: { type: "null" } },
    [{ ab: null }],
    [{ abc: null }, { A: null }],
  ],
  [
    "names of a list, at least two",
    {
      type: "object",
      propertyNames: { enum: ["a", "b", "c"] },
      additionalProperties: { type: "null" },
      minProperties: 2,
    },
    [{ a: null, c: null }],
    [{ a: null }, { d: null, e: null }],
  ],
  [
    "a number of properties",
    { type: "object", properties: { a: {}, b: {}, c: {} }, minProperties: 1, maxProperties: 2 },
    [{ a: 1 }, { a: 1, c: 1 }],
    [{}, { a: 1, b: 1, c: 1 }],
  ],
  [
    "at most one property",
    { type: "object", properties: { a: {}, b: {} }, maxProperties: 1 },
    [{}, { b: 1 }],
    [{ a: 1, b: 1 }],
  ],
  [
    "a number of others",
    {
      type: "object",
      properties: { a: {} },
      required: ["a"],
      additionalProperties: {},
      minProperties: 2,
      maxProperties: 3,
    },
    [
      { a: 1, x: 1 },
      { a: 1, x: 1, y: 1 },
    ],
    [{ a: 1 }, { a: 1, x: 1, y: 1, z: 1 }],
  ],
  [
    "dependencies",
    {
      type: "object",
      properties: { a: {}, b: {}, c: {} },
      dependentRequired: { a: ["b"] },
      dependentSchemas: { b: { required: ["c"] } },
    },
    [{}, { c: 1 }, { a: 1, b: 1, c: 1 }],
    [{ a: 1 }, { b: 1 }],
  ],
  [
    "a tuple of an earlier draft",
    { items: [{ type: "null" }, { type: "boolean" }], additionalItems: { type: "integer" } },
    [[null, true, 3], [null]],
    [[true], [null, true, "a"]],
  ],
  [
    "different items",
    { type: "array", items: { enum: ["a", "b", "c"] }, uniqueItems: true, minItems: 1, maxItems: 2 },
    [["a"], ["c", "a"]],
    [[], ["a", "a"], ["a", "b", "c"]],
  ],
  [
    "different items of many values, in their order",
    { type: "array", items: { enum: TEN }, uniqueItems: true, minItems: 2, maxItems: 3 },
    [
      ["a", "b"],
      ["c", "h", "j"],
      ["i", "j"],
    ],
    [["a"], ["b", "b"], ["j", "a"], ["a", "b", "c", "d"]],
  ],
  [
    "different items of many values, as many as there are",
    { type: "array", items: { enum: TEN }, uniqueItems: true },
    [[], ["j"], TEN],
    [
      ["a", "a"],
      ["b", "a"],
    ],
  ],
  [
    "at most one item of values that are not listed",
    { type: "array", items: { type: "string", maxLength: 3 }, uniqueItems: true, maxItems: 5 },
    [[], ["a"]],
    [["a", "a"], [1]],
  ],
  [
    "one item that must occur, of different ones",
    { type: "array", items: { type: "integer" }, uniqueItems: true, contains: { minimum: 5 } },
    [[7]],
    [[], [4], [7, 7]],
  ],
  [
    "an item that must occur",
    { type: "array", items: { type: "integer" }, contains: { minimum: 5 }, maxItems: 3 },
    [[5], [1, 2, 9]],
    [[], [1, 2], [5, 5, 5, 5]],
  ],
  [
    "a tree",
    tree,
    [{ value: 1 }, { value: 1, children: [{ value: 2, children: [] }] }],
    [{}, { value: 1, children: [{}] }],
  ],
  [
    "multiples with decimals",
    { type: "number", multipleOf: 0.25, minimum: -1, exclusiveMaximum: 3 },
    [0, 0.25, -0.5, 2.75],
    [0.3, 3, -1.25],
  ],
  [
    "multiples of two numbers",
    { type: "integer", allOf: [{ multipleOf: 4 }, { multipleOf: 6 }], minimum: 1 },
    [12, 24],
    [4, 6, 0],
  ],
  [
    "numbers that are no multiples",
    { type: "integer", multipleOf: 3, not: { multipleOf: 6 }, minimum: 0 },
    [3, 9, 27],
    [0, 6, 4, 12],
  ],
  ["anchors in groups", { type: "string", pattern: "(^$)|(^[ab]{2}$)" }, ["", "ab"], ["a", "abc"]],
  ["a lookahead", { type: "string", pattern: "^(?!ab)[a-c]{2,3}$" }, ["ba", "aab"], ["ab", "abc"]],
];

describe("JSON schema keywords", () => {
  it.each(cases)("allow exactly the values of %s", (_, schema, allowed, others) => {
    const isValid = validatorOf(schema);
    const accepts = readerOf(schema);
    for (const value of allowed)
      expect([value, isValid(value), accepts(formatJsonLine(value))]).toEqual([value, true, true]);
    for (const value of others) expect([value, accepts(formatJsonLine(value))]).toEqual([value, false]);
  });

  it.each(cases)("write only values of %s", (_, schema) => {
    const isValid = validatorOf(schema);
    const write = randomTextsOf(schema, new RandomStream(1));
    for (let i = 0; i < 100; i++) {
      const text = write();
      const value: unknown = JSON.parse(text);
      expect([text, isValid(value)]).toEqual([text, true]);
    }
  });

  it("limit the depth to which values are nested in themselves", () => {
    const accepts = readerOf({ type: "array", items: { $ref: "#" } });
    const nested = (depth: number) => "[".repeat(depth) + "]".repeat(depth);
    expect([32, 33, 34].map((depth) => accepts(nested(depth)))).toEqual([true, true, false]);
  });

  it("share the states of repeated parts", () => {
    const many = (count: number, value: JsonSchema) => ({
      type: "object",
      properties: Object.fromEntries(Array.from({ length: count }, (_, i) => [`p${i}`, value])),
    });
    for (const schema of [
      many(24, { type: "number", minimum: -2.5, maximum: 1e6 }),
      many(200, { type: "string", maxLength: 1000 }),
      many(3000, { type: "null" }),
      { type: "array", items: many(3, { type: "string", maxLength: 40_000 }), maxItems: 500 },
    ])
      expect(readerOf(schema)(JSON.stringify([schema]))).toBe(false);
  });

  it("allow one order of properties: the schema's, with required and others after it", () => {
    const accepts = readerOf({
      allOf: [{ properties: { a: { type: "null" } } }, { properties: { b: { type: "null" } } }],
      required: ["c"],
      additionalProperties: { type: "integer" },
      properties: {},
    });
    expect(accepts('{"a": null, "b": null, "c": 1}')).toBe(false);
    const open = readerOf({ properties: { a: {}, b: {} }, required: ["c"], additionalProperties: { type: "integer" } });
    expect(open('{"a": 1, "b": 2, "c": 3, "x": 4, "w": 5}')).toBe(true);
    for (const text of ['{"b": 1, "a": 2, "c": 3}', '{"x": 4, "c": 3}', '{"c": 3, "a": 1}'])
      expect(open(text)).toBe(false);
  });
});
