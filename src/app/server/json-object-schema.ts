import type { JsonSchema } from "../../generation/index.js";

/** Levels of lists and objects that a completion may have where any JSON object is allowed; each doubles the automaton. */
const MAX_LEVELS = 2;

/** Any JSON object of a few levels, for response formats without a schema. */
export const JSON_OBJECT_SCHEMA: JsonSchema = { type: "object", additionalProperties: anyValue(MAX_LEVELS) };

function anyValue(levels: number): JsonSchema {
  const scalar = { type: ["string", "number", "boolean", "null"] };
  if (levels === 0) return scalar;
  const inner = anyValue(levels - 1);
  return {
    anyOf: [scalar, { type: "array", items: inner }, { type: "object", additionalProperties: inner }],
  };
}
