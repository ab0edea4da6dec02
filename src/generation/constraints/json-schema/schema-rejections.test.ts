import { describe, expect, it } from "vitest";
import { toolCallSchema, unionSchema } from "../../../envs/index.js";
import { compileToByteAutomaton } from "../output-constraint.js";
import type { JsonSchema } from "./keywords.js";

describe("schemaToExpression", () => {
  it.each<[JsonSchema, string]>([
    [{ type: "text" }, '"type" must be one or a list of string, integer'],
    [{ type: [] }, '"type" must be one or a list of'],
    [{ type: "string", minLength: -1 }, '"minLength" must be an integer >= 0, got -1'],
    [{ type: "string", minLength: 3, maxLength: 2 }, "matches no text"],
    [{ type: "string", pattern: "(?=a)" }, 'at #, "pattern": Invalid regular expression "(?=a)"'],
    [{ type: "string", pattern: 3 }, '"pattern" must be a string, got 3'],
    [{ type: "integer", multipleOf: 0 }, '"multipleOf" must be above 0, got 0'],
    [{ type: "integer", multipleOf: 2000 }, '"multipleOf" is supported up to 1000 units'],
    [{ enum: [1e308], not: { multipleOf: 0.125 } }, '1e+308 is too large to be divided by the "multipleOf" 0.125'],
    [{ type: "integer", multipleOf: 7, minimum: 8, maximum: 13 }, "matches no text"],
    [{ type: "array", prefixItems: [{ type: "null" }], items: false, minItems: 2 }, "matches no text"],
    [{ type: "array", prefixItems: {} }, '"prefixItems" must be a list of schemas'],
    [{ type: "integer", minimum: 1.2, maximum: 1.8 }, "matches no text"],
    [{ type: "number", minimum: "1" }, '"minimum" must be a number, got "1"'],
    [
      { type: "array", items: { type: "string" }, uniqueItems: true, minItems: 2 },
      '"uniqueItems" with "minItems" above 1 is supported for items with listed values',
    ],
    [{ type: "array", items: { type: "null" }, minItems: 2, maxItems: 1 }, "matches no text"],
    [{ type: "array", items: 3 }, "at #/items, a schema must be an object or a boolean, got 3"],
    [{ type: "array", contains: {}, maxContains: 2 }, '"contains" is supported without "maxContains"'],
    [{ type: "object", properties: { a: 1 } }, "at #/properties/a, a schema must be an object or a boolean, got 1"],
    [{ type: "object", properties: { "a/b~": { type: "x" } } }, 'at #/properties/a~1b~0, "type" must be'],
    [{ type: "object", properties: [] }, '"properties" must be an object with a schema for each name'],
    [{ type: "object", required: "a" }, '"required" must be a list of names'],
    [{ type: "object", properties: {}, additionalProperties: 1 }, '"additionalProperties" must be an object'],
    [{ type: "object", properties: { a: {} }, required: ["a"], maxProperties: 0 }, "matches no text"],
    [{ type: "object", properties: {}, required: ["a"], additionalProperties: false }, "matches no text"],
    [{ type: "object", minProperties: 2 }, '"minProperties" of 2 is not supported'],
    [{ type: "object", unevaluatedProperties: false }, '"unevaluatedProperties" is not supported'],
    [{ $dynamicRef: "#a" }, '"$dynamicRef" is not supported'],
    [{ oneOf: [] }, '"oneOf" must be a list of at least one schema'],
    [
      {
        oneOf: ["a", "a"].map((kind) => ({
          type: "object",
          properties: { kind: { const: kind } },
          required: ["kind"],
        })),
      },
      "matches no text",
    ],
    [{ $ref: "#/$defs/%E0%A4%A", $defs: {} }, '"$ref" is not valid percent-encoding'],
    [{ not: {} }, "matches no text"],
    [{ anyOf: [] }, '"anyOf" must be a list of at least one schema'],
    [{ enum: [] }, "matches no text"],
    [{ enum: "a" }, '"enum" must be a list'],
    [{ enum: [1, 2], type: "string" }, "matches no text"],
    [{ $ref: "#/$defs/a" }, '"#/$defs/a" does not exist'],
    [{ $ref: "https://example.com/a" }, '"$ref" must point into this schema'],
    [{ $ref: "#" }, "refers to itself"],
    [{ $ref: "#/$defs/a", $defs: { a: { $ref: "#/$defs/b" }, b: { $ref: "#/$defs/a" } } }, "refers to itself"],
    [{ allOf: [{ $ref: "#/$defs/a" }], $defs: { a: { not: { $ref: "#/$defs/a" } } } }, "refers to itself"],
    [
      { $ref: "#/$defs/a", $defs: { a: { type: "array", items: { $ref: "#/$defs/a" }, minItems: 1 } } },
      "matches no text",
    ],
    [{ type: "string", minLength: 2_000_000 }, "The JSON schema is too large"],
  ])("rejects %j", (schema, message) => {
    expect(() => compileToByteAutomaton({ jsonSchema: schema })).toThrowError(
      expect.objectContaining({ code: "INVALID_ARGUMENT", message: expect.stringContaining(message) as string }),
    );
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
      /more than 1000000/,
    ],
    [
      "has 120,000 optional properties",
      () => ({
        type: "object",
        properties: Object.fromEntries(Array.from({ length: 120_000 }, (_, i) => [`p${i}`, { type: "null" }])),
      }),
      /more than 1000000/,
    ],
  ])("rejects a schema that %s", (_, make, message) => {
    expect(() => compileToByteAutomaton({ jsonSchema: make() as JsonSchema })).toThrowError(
      expect.objectContaining({ code: "INVALID_ARGUMENT", message: expect.stringMatching(message) as string }),
    );
  });

  it("quickly rejects schemas whose shortest value grows exponentially", () => {
    const doubling = Object.fromEntries(
      Array.from({ length: 40 }, (_, i) => {
        const next = { $ref: `#/$defs/s${i + 1}` };
        return [`s${i}`, { type: "object", properties: { a: next, b: next }, required: ["a", "b"] }];
      }),
    );
    const schema = { $ref: "#/$defs/s0", $defs: { ...doubling, s40: { type: "null" } } };
    expect(() => compileToByteAutomaton({ jsonSchema: schema })).toThrowError(/matches no text/);
  });

  it("names the tool whose arguments have an unsupported schema", () => {
    const tools = [
      { name: "add", parameters: { type: "object", properties: { a: { type: "integer" } } } },
      { name: "search", parameters: { type: "object", properties: { query: { type: "text" } } } },
    ];
    const calls = [true, false].map((isList) => toolCallSchema(tools, { isList, argumentsKey: "arguments" }, true));
    const answerOrCall = unionSchema({ type: "object" }, calls[1]);
    for (const jsonSchema of [...calls, answerOrCall])
      expect(() => compileToByteAutomaton({ jsonSchema })).toThrow(
        /^The tool "search" cannot be called: Invalid JSON schema: at #\/properties\/query, "type" must be one or a list of/,
      );
    const plain = { type: "object", properties: { arguments: { type: "text" } } };
    expect(() => compileToByteAutomaton({ jsonSchema: plain })).toThrow(/^Invalid JSON schema: at #\/properties/);
  });
});
