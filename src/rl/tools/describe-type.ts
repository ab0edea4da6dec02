import { jsonEntries, jsonItems, keepWrittenForm, stringifyJson } from "../../core/lossless-json.js";
import { isSchema, type JsonSchema } from "../../generation/index.js";

/** Annotations, which every schema may have. */
const ANNOTATIONS = ["description", "title", "default", "$schema"];
/** Keywords that `describeType` reads; a schema with any other one is described by its JSON. */
const KEYWORDS = new Set([
  "type",
  "enum",
  "const",
  "minimum",
  "maximum",
  "items",
  "properties",
  "required",
  "additionalProperties",
  ...ANNOTATIONS,
]);
/** What stands next to other keywords in a schema of alternatives is not described in words. */
const ANYOF_KEYWORDS = new Set(["anyOf", ...ANNOTATIONS]);

/**
 * Describes a JSON schema in few words that a small model reads, in the order and punctuation of
 * the value: `{"order": integer from 1 to 99, "reason"?: "late" or "broken"}`.
 */
export function describeType(schema: unknown): string {
  if (!isSchema(schema)) return schema === false ? "nothing" : "any JSON";
  const known = "anyOf" in schema ? ANYOF_KEYWORDS : KEYWORDS;
  if (Object.keys(schema).some((keyword) => !known.has(keyword)))
    return stringifyJson(keepWrittenForm({ ...schema, $schema: undefined }, schema));
  const { type, enum: values, description } = schema;
  const note = typeof description === "string" && description !== "" ? ` (${description})` : "";
  const written = new Map(jsonEntries(schema));
  if (Array.isArray(schema.anyOf)) return joinOr(schema.anyOf.map(describeType)) + note;
  if (written.has("const")) return stringifyJson(written.get("const")) + note;
  if (Array.isArray(values)) return joinOr(jsonItems(values).map((value) => stringifyJson(value))) + note;
  if (type === undefined && isSchema(schema.properties)) return describeObject(schema) + note;
  const types = (Array.isArray(type) ? type : [type]).map((name) => describeNamedType(name, schema));
  return joinOr(types) + note;
}

function describeNamedType(type: unknown, schema: JsonSchema): string {
  switch (type) {
    case "integer":
    case "number":
      return type + describeBounds(schema);
    case "array":
      return schema.items === undefined ? "list" : `[${describeType(schema.items)}, ...]`;
    case "object":
      return isSchema(schema.properties) ? describeObject(schema) : "object";
    default:
      return typeof type === "string" ? type : "any JSON";
  }
}

function describeBounds(schema: JsonSchema): string {
  const bounds = new Map(jsonEntries(schema).map(([keyword, value]) => [keyword, stringifyJson(value)]));
  const [minimum, maximum] = [bounds.get("minimum"), bounds.get("maximum")];
  if (minimum !== undefined && maximum !== undefined) return ` from ${minimum} to ${maximum}`;
  if (minimum !== undefined) return ` of at least ${minimum}`;
  return maximum === undefined ? "" : ` of at most ${maximum}`;
}

function describeObject({ properties, required, additionalProperties }: JsonSchema): string {
  const needed = new Set(Array.isArray(required) ? (required as readonly string[]) : []);
  const described = jsonEntries(properties as JsonSchema);
  const others = [...needed].filter((name) => !Object.hasOwn(properties as JsonSchema, name));
  const members = [...described, ...others.map((name) => [name, true] as const)].map(
    ([name, schema]) => `${JSON.stringify(name)}${needed.has(name) ? "" : "?"}: ${describeType(schema)}`,
  );
  if (isSchema(additionalProperties)) members.push(`any name: ${describeType(additionalProperties)}`);
  return `{${members.join(", ")}}`;
}

function joinOr(items: readonly string[]): string {
  return items.length < 2 ? items.join("") : `${items.slice(0, -1).join(", ")} or ${items.at(-1)!}`;
}
