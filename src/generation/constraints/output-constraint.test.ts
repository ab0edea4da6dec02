import { expect, it } from "vitest";
import { constraintKey, type OutputConstraint } from "./output-constraint.js";

it("gives constraints with different texts different keys, whatever characters they contain", () => {
  const constraints: readonly OutputConstraint[] = [
    { choices: ["a\u0000b"] },
    { choices: ["a", "b"] },
    { choices: ["a\u0000", "b"] },
    { choices: ["a", "\u0000b"] },
    { choices: ['a","b'] },
    { choices: ["a,b"] },
    { choices: [constraintKey({ regex: "a" })] },
    { regex: "a" },
    { jsonSchema: { const: "a" } },
  ];
  expect(new Set(constraints.map(constraintKey)).size).toBe(constraints.length);
});
