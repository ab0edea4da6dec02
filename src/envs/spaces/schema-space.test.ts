import { describe, expect, it } from "vitest";
import { z } from "zod";
import { compileToByteAutomaton } from "../../generation/constraints/output-constraint.js";
import { SchemaSpace } from "./schema-space.js";

const move = z.object({
  direction: z.enum(["left", "right"]),
  steps: z.int().min(1).max(3),
  tags: z.array(z.string().max(3)).max(2),
  pace: z.union([z.number().min(0).max(1), z.null()]),
  isFast: z.boolean(),
});

describe("SchemaSpace", () => {
  it("has the choices of an enumeration of strings", () => {
    const space = new SchemaSpace(z.enum(["hit", "stay"]));
    expect(space.choices).toEqual(["hit", "stay"]);
    expect([space.parse(" hit "), space.parse("fold"), space.format("stay")]).toEqual(["hit", undefined, "stay"]);
    expect(new SchemaSpace({ const: "go" }).choices).toEqual(["go"]);
  });

  it("reads and writes the JSON of other schemas, as zod and as JSON schema", () => {
    const value: z.infer<typeof move> = { direction: "left", steps: 2, tags: ["a"], pace: null, isFast: true };
    for (const space of [new SchemaSpace(move), new SchemaSpace<typeof value>(z.toJSONSchema(move))]) {
      expect(space.choices).toBeUndefined();
      expect(space.parse(space.format(value))).toEqual(value);
      expect(space.parse('{"direction":"up"}')).toBeUndefined();
      expect(space.parse("left")).toBeUndefined();
      expect([space.contains(value), space.contains({ ...value, steps: 4 })]).toEqual([true, false]);
    }
  });

  it("samples members whose texts the constrained decoder can produce", () => {
    const space = new SchemaSpace(move);
    space.seed(1);
    const values = Array.from({ length: 50 }, () => space.sample());
    expect(values.every((value) => space.contains(value))).toBe(true);
    expect(new Set(values.map(({ direction }) => direction)).size).toBe(2);
    const automaton = compileToByteAutomaton({ jsonSchema: space.jsonSchema });
    const isMatch = (text: string) => automaton.accepting[automaton.walk(0, Buffer.from(text))] === 1;
    expect(values.filter((value) => !isMatch(space.format(value)))).toEqual([]);
    expect(isMatch(space.format({ ...values[0], steps: 4 }))).toBe(false);
    space.seed(1);
    expect(space.sample()).toEqual(values[0]);
  });

  it("formats a value as constrained decoding writes it, whatever the order of its fields", () => {
    const call = z.union([
      z.object({ name: z.literal("wait"), arguments: z.object({ turns: z.int() }) }),
      z.object({ name: z.literal("go"), arguments: z.object({ to: z.string(), by: z.array(z.string()) }) }),
    ]);
    const space = new SchemaSpace(call);
    const text = space.format({ arguments: { by: ["foot", "bus"], to: "a" }, name: "go" });
    expect(text).toBe('{"name": "go", "arguments": {"to": "a", "by": ["foot", "bus"]}}');
    const automaton = compileToByteAutomaton({ jsonSchema: space.jsonSchema });
    expect(automaton.accepting[automaton.walk(0, Buffer.from(text))]).toBe(1);
  });

  it("samples recursive schemas, optional fields and all alternatives", () => {
    const tree = z.object({
      name: z.enum(["a", "b"]),
      get children() {
        return z.array(tree).max(2).optional();
      },
    });
    const space = new SchemaSpace(tree);
    const values = Array.from({ length: 50 }, () => space.sample());
    expect(values.every((value) => space.contains(value))).toBe(true);
    expect(values.some(({ children }) => children === undefined)).toBe(true);
    expect(values.some(({ children }) => children?.some((child) => child.children !== undefined))).toBe(true);
  });

  it("rejects schemas that JSON cannot express", () => {
    expect(() => new SchemaSpace(z.string().transform(Number))).toThrow(/zod schema of plain JSON values/);
  });
});
