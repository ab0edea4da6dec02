import { asJsonObject, formatJsonLine, type JsonObject, type JsonValue } from "../../core/json.js";
import { SchemaResolver } from "./schema-references.js";

/**
 * Formats a member of a schema as constrained decoding writes it: on one line, with the fields in
 * the schema's order.
 * @throws ENV_INVALID for a schema that refers to itself too often.
 */
export function formatMember(value: JsonValue, schema: JsonObject): string {
  const resolver = new SchemaResolver(schema);
  const order = (part: JsonValue, partSchema: JsonValue | undefined, depth: number): JsonValue => {
    const { items, properties, prefixItems = [] } = selectAlternative(part, partSchema, resolver, depth);
    if (Array.isArray(part))
      return part.map((item, i) => order(item, (prefixItems as readonly JsonValue[])[i] ?? items, depth + 1));
    const fields = asJsonObject(part);
    if (fields === undefined) return part;
    const schemas = asJsonObject(properties) ?? {};
    const names = [...Object.keys(schemas).filter((name) => Object.hasOwn(fields, name)), ...Object.keys(fields)];
    return Object.fromEntries(
      Array.from(new Set(names), (name) => [
        name,
        order(fields[name], Object.hasOwn(schemas, name) ? schemas[name] : undefined, depth + 1),
      ]),
    );
  };
  return formatJsonLine(order(value, schema, 0));
}

/** Resolves a schema; of alternatives, the first one whose fields a value has. */
function selectAlternative(
  value: JsonValue,
  schemaJson: JsonValue | undefined,
  resolver: SchemaResolver,
  depth: number,
): JsonObject {
  const schema = resolver.resolve(schemaJson, depth);
  const alternatives = schema.anyOf ?? schema.oneOf;
  if (!Array.isArray(alternatives)) return schema;
  const options = alternatives.map((option) => selectAlternative(value, option, resolver, depth + 1));
  return options.find((option) => hasFields(value, option, resolver, depth + 1)) ?? {};
}

function hasFields(value: JsonValue, { properties }: JsonObject, resolver: SchemaResolver, depth: number): boolean {
  const fields = asJsonObject(value);
  const schemas = asJsonObject(properties);
  if (fields === undefined || schemas === undefined) return fields === undefined && schemas === undefined;
  return Object.entries(fields).every(([name, field]) => {
    if (!Object.hasOwn(schemas, name)) return false;
    const { const: constant } = resolver.resolve(schemas[name], depth);
    return constant === undefined || constant === field;
  });
}
