import { type JsonSchema, readCount, readSchema, readSchemaMap, schemaError } from "./keywords.js";
import { readItems } from "./evaluate-schema.js";
import { type Term, escapePointerPart } from "./schema-document.js";
import type { ItemPart, MemberPart, ValueShape } from "./value-shape.js";

/**
 * Reads "enum" or "const"; of several lists, one is enough, because each value is checked against
 * all.
 */
export function readValues({ values }: ValueShape, schema: JsonSchema, path: string): readonly unknown[] | undefined {
  if (schema.enum !== undefined && !Array.isArray(schema.enum)) throw schemaError(path, '"enum" must be a list');
  if (values !== undefined) return values;
  if (schema.const !== undefined) return [schema.const];
  return schema.enum as readonly unknown[] | undefined;
}

/** Reads what a schema says of members. */
export function readMembers(schema: JsonSchema, path: string): MemberPart {
  const term = (keyword: string, name: string, value: unknown): Term => ({
    schema: readSchema(value, `${path}/${keyword}/${escapePointerPart(name)}`),
    path: `${path}/${keyword}/${escapePointerPart(name)}`,
    isNegated: false,
  });
  const { additionalProperties } = schema;
  if (additionalProperties !== undefined && typeof additionalProperties !== "boolean")
    readSchemaMap(schema, "additionalProperties", path);
  return {
    isList: schema.properties !== undefined,
    properties: new Map(
      Object.entries(readSchemaMap(schema, "properties", path)).map(([name, value]) => [
        name,
        term("properties", name, value),
      ]),
    ),
    patterns: Object.entries(readSchemaMap(schema, "patternProperties", path)).map(([source, value]) => ({
      source,
      value: term("patternProperties", source, value),
    })),
    additional:
      additionalProperties === undefined
        ? undefined
        : { schema: additionalProperties, path: `${path}/additionalProperties`, isNegated: false },
  };
}

/** Adds what a schema says of items. */
export function readItemPart({ itemParts }: ValueShape, schema: JsonSchema, path: string): readonly ItemPart[] {
  if (schema.items === undefined && schema.prefixItems === undefined) return itemParts;
  const { prefix, rest } = readItems(schema, path);
  const term = (value: unknown, at: string): Term => ({
    schema: readSchema(value, at),
    path: at,
    isNegated: false,
  });
  return [
    ...itemParts,
    {
      prefix: prefix.map((value, i) =>
        term(value, `${path}/${schema.prefixItems === undefined ? "items" : "prefixItems"}/${i}`),
      ),
      rest: rest === undefined ? undefined : term(rest, `${path}/items`),
    },
  ];
}

/** Adds "contains". @throws INVALID_ARGUMENT for a number of items that is not supported. */
export function readContains({ contains }: ValueShape, schema: JsonSchema, path: string): readonly Term[] {
  if (schema.contains === undefined) return contains;
  const min = readCount(schema, "minContains", path) ?? 1;
  if (min > 1 || schema.maxContains !== undefined)
    throw schemaError(path, '"contains" is supported without "maxContains", and with "minContains" of at most 1');
  return min === 0 ? contains : [...contains, { schema: schema.contains, path: `${path}/contains`, isNegated: false }];
}
