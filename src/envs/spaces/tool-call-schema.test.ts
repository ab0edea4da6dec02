import { describe, expect, it } from "vitest";
import { toolCallSchema } from "./tool-call-schema.js";

describe("toolCallSchema", () => {
  it("moves references with a tool's schema, also those to all of it and to its identifier", () => {
    const parameters = {
      $id: "https://example.com/tree",
      type: "object",
      properties: { a: { $ref: "#" }, b: { $ref: "#/$defs/x" }, c: { $ref: "https://example.com/tree#/$defs/x" } },
      $defs: { x: { type: "null" } },
    };
    const schema = toolCallSchema([{ name: "grow", parameters }], { isList: false, argumentsKey: "arguments" }, false);
    const path = "#/anyOf/0/properties/arguments";
    expect(schema).toMatchObject({
      anyOf: [
        {
          properties: {
            arguments: {
              properties: { a: { $ref: path }, b: { $ref: `${path}/$defs/x` }, c: { $ref: `${path}/$defs/x` } },
            },
          },
        },
      ],
    });
    expect(JSON.stringify(schema)).not.toContain("$id");
  });
});
