import { describe, expect, it } from "vitest";
import { compileToByteAutomaton } from "../output-constraint.js";
import type { JsonSchema } from "./keywords.js";

describe("schemaToExpression", () => {
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
