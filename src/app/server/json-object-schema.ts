import type { JsonSchema } from "../../generation/index.js";

/** JSON objects of any values, for response formats without a schema. */
export const JSON_OBJECT_SCHEMA: JsonSchema = { type: "object" };
