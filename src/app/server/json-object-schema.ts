import type { JsonSchema } from "../../generation/index.js";

const SCALAR = { type: ["string", "number", "boolean", "null"] };

/** JSON objects of scalars, and of lists and objects of scalars, for response formats without a schema. A third level would be too large an automaton. */
export const JSON_OBJECT_SCHEMA: JsonSchema = {
  type: "object",
  additionalProperties: {
    anyOf: [SCALAR, { type: "array", items: SCALAR }, { type: "object", additionalProperties: SCALAR }],
  },
};
