import {
  TYPE_BITS,
  readCount,
  readNames,
  readNumber,
  readSchema,
  readSchemaMap,
  readSchemas,
  readTypes,
  schemaError,
  type JsonSchema,
} from "./keywords.js";
import { readBounds, readDependencies, readItems } from "./evaluate-schema.js";
import { escapePointerPart, type SchemaDocument, type Term } from "./schema-document.js";
import { isOpen, listedNames } from "./object-members.js";
import type { ValueShape, ShapeExpander } from "./value-shape.js";
import { NON_EMPTY_TEXTS, type StringLanguages, ofTexts } from "./string-language.js";
import type { TextAutomaton } from "../regex/text-automaton.js";

/**
 * Returns shapes of values that have a given shape and violate a schema, one for each way to
 * violate it. Ways that no shape can express are left out: "format" and "uniqueItems". Of members
 * with other names than the listed ones, one name stands for all.
 */
export function negateTerm(context: NegationContext, shape: ValueShape, term: Term): ValueShape[] {
  const { schema: source, path } = term;
  const schema = readSchema(source, path);
  if (typeof schema === "boolean") return schema ? [] : [shape];
  const ways = Object.keys(schema).flatMap((keyword) => negateKeyword(context, shape, { keyword, schema, path }));
  return ways.filter(isPossible);
}

function isPossible({ types, required, forbidden, minLength, maxLength, minItems, maxItems }: ValueShape): boolean {
  return (
    types !== 0 && minLength <= maxLength && minItems <= maxItems && !required.some((name) => forbidden.includes(name))
  );
}

export interface NegationContext {
  readonly expander: ShapeExpander;
  readonly document: SchemaDocument;
  readonly languages: StringLanguages;
}

interface Keyword {
  readonly keyword: string;
  readonly schema: JsonSchema;
  readonly path: string;
}

function negateKeyword(
  context: NegationContext,
  shape: ValueShape,
  { keyword, schema, path }: Keyword,
): readonly ValueShape[] {
  const { expander, document } = context;
  const at = (name: string, value: unknown = schema[name], isNegated = false): Term => ({
    schema: value,
    path: `${path}/${name}`,
    isNegated,
  });
  const violating = (terms: readonly Term[]) => terms.flatMap((term) => expander.addAll([shape], term));
  const all = (terms: readonly Term[]) =>
    terms.reduce((shapes: readonly ValueShape[], term) => expander.addAll(shapes, term), [shape]);
  switch (keyword) {
    case "$ref":
      return violating([{ ...document.resolve(schema.$ref, schema, path), isNegated: true }]);
    case "type":
      return [{ ...shape, types: shape.types & ~readTypes(schema, path) }];
    case "const":
      return excludeValues(context, shape, [schema.const], path);
    case "enum":
      if (!Array.isArray(schema.enum)) throw schemaError(path, '"enum" must be a list');
      return excludeValues(context, shape, schema.enum, path);
    case "allOf":
      return violating(readSchemas(schema, keyword, path).map((each, i) => at(`allOf/${i}`, each, true)));
    case "anyOf":
      return all(readSchemas(schema, keyword, path).map((each, i) => at(`anyOf/${i}`, each, true)));
    case "oneOf": {
      const options = readSchemas(schema, keyword, path);
      const none = all(options.map((each, i) => at(`oneOf/${i}`, each, true)));
      const pairs = options.flatMap((first, i) =>
        options.slice(i + 1).map((second, j) => all([at(`oneOf/${i}`, first), at(`oneOf/${i + 1 + j}`, second)])),
      );
      return [...none, ...pairs.flat()];
    }
    case "not":
      return violating([at("not")]);
    case "if":
      return [
        ...(schema.then === undefined ? [] : all([at("if"), at("then", schema.then, true)])),
        ...(schema.else === undefined ? [] : all([at("if", schema.if, true), at("else", schema.else, true)])),
      ];
    case "minimum":
    case "maximum":
      return negateBounds(shape, schema, path, keyword);
    case "exclusiveMinimum":
    case "exclusiveMaximum":
      return typeof schema[keyword] === "boolean" ? [] : negateBounds(shape, schema, path, keyword);
    default:
      return negateTypeKeyword(context, shape, { keyword, schema, path });
  }
}

function negateTypeKeyword(
  context: NegationContext,
  shape: ValueShape,
  { keyword, schema, path }: Keyword,
): readonly ValueShape[] {
  const only = (type: keyof typeof TYPE_BITS): ValueShape => ({ ...shape, types: shape.types & TYPE_BITS[type] });
  const count = readOptionalCount(schema, keyword, path);
  switch (keyword) {
    case "minLength":
      return count === 0 ? [] : [{ ...only("string"), maxLength: Math.min(shape.maxLength, count - 1) }];
    case "maxLength":
      return [{ ...only("string"), minLength: Math.max(shape.minLength, count + 1) }];
    case "minItems":
      return count === 0 ? [] : [{ ...only("array"), maxItems: Math.min(shape.maxItems, count - 1) }];
    case "maxItems":
      return [{ ...only("array"), minItems: Math.max(shape.minItems, count + 1) }];
    case "multipleOf":
      return [
        { ...only("number"), excludedDivisors: [...shape.excludedDivisors, readNumber(schema, keyword, path) ?? 1] },
      ];
    case "pattern":
      return [
        { ...only("string"), patterns: [...shape.patterns, { source: String(schema.pattern), path, isNegated: true }] },
      ];
    case "contains":
      return [
        {
          ...only("array"),
          itemParts: [...shape.itemParts, { prefix: [], rest: { schema: schema.contains, path, isNegated: true } }],
        },
      ];
    case "items":
    case "prefixItems":
      return negateItems(only("array"), schema, path, keyword);
    default:
      return negateObjectKeyword(context, only("object"), { keyword, schema, path });
  }
}

/** Negates keywords of objects; `shape` has this type alone. */
function negateObjectKeyword(
  context: NegationContext,
  shape: ValueShape,
  { keyword, schema, path }: Keyword,
): readonly ValueShape[] {
  const count = readOptionalCount(schema, keyword, path);
  switch (keyword) {
    case "minProperties":
      return count === 0 ? [] : [{ ...shape, maxProperties: Math.min(shape.maxProperties, count - 1) }];
    case "maxProperties":
      return [{ ...shape, minProperties: Math.max(shape.minProperties, count + 1) }];
    case "required":
      return readNames(schema.required, keyword, path).map((name) => ({
        ...shape,
        forbidden: [...shape.forbidden, name],
      }));
    case "properties":
      return Object.entries(readSchemaMap(schema, keyword, path)).map(([name, value]) =>
        withMember(shape, name, {
          schema: value,
          path: `${path}/properties/${escapePointerPart(name)}`,
          isNegated: true,
        }),
      );
    case "patternProperties":
      return Object.entries(readSchemaMap(schema, keyword, path)).flatMap(([source, value]) => {
        const names = context.languages.pattern(source, path);
        const term = { schema: value, path: `${path}/patternProperties/${escapePointerPart(source)}`, isNegated: true };
        return memberNames(shape, names).map((name) => withMember(shape, name, term));
      });
    case "propertyNames": {
      const violating = { schema: schema.propertyNames, path: `${path}/propertyNames`, isNegated: true };
      const languages = context.expander
        .shapes([violating])
        .filter(({ types, values }) => values === undefined && (types & TYPE_BITS.string) !== 0)
        .map((names) => context.languages.ofShape(names));
      return languages.flatMap((names) =>
        memberNames(shape, names ?? NON_EMPTY_TEXTS).map((name) =>
          withMember(shape, name, { schema: true, path, isNegated: false }),
        ),
      );
    }
    case "additionalProperties":
      return negateAdditional(shape, schema, path);
    case "dependencies":
    case "dependentRequired":
      return readDependencies({ [keyword]: schema[keyword] }, path).flatMap(({ name, required }) =>
        required.map((other) => ({
          ...shape,
          required: [...shape.required, name],
          forbidden: [...shape.forbidden, other],
        })),
      );
    default:
      return [];
  }
}

const COUNTS = ["minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"];

function readOptionalCount(schema: JsonSchema, keyword: string, path: string): number {
  return COUNTS.includes(keyword) ? (readCount(schema, keyword, path) ?? 0) : 0;
}

/**
 * Excludes scalars as they are, and arrays and objects by what a schema of them alone would
 * require.
 */
function excludeValues(
  context: NegationContext,
  shape: ValueShape,
  values: readonly unknown[],
  path: string,
): ValueShape[] {
  const isContainer = (value: unknown) => typeof value === "object" && value !== null;
  const excluded = { ...shape, excluded: [...shape.excluded, ...values.filter((value) => !isContainer(value))] };
  return values
    .filter(isContainer)
    .reduce(
      (shapes: ValueShape[], value) =>
        shapes.flatMap((each) => negateTerm(context, each, { schema: onlyValue(value), path, isNegated: false })),
      [excluded],
    );
}

/** Returns a schema of one array or object. */
function onlyValue(value: unknown): JsonSchema {
  if (Array.isArray(value)) {
    const items = value.map((item) => ({ const: item as unknown }));
    return { type: "array", minItems: items.length, maxItems: items.length, prefixItems: items };
  }
  const members = Object.entries(value as JsonSchema).map(([name, member]) => [name, { const: member }]);
  const names = members.map(([name]) => name);
  return {
    type: "object",
    required: names,
    properties: Object.fromEntries(members) as JsonSchema,
    additionalProperties: false,
    maxProperties: names.length,
  };
}

/** Returns the names of listed members in a language, and one other. */
function memberNames(shape: ValueShape, language: TextAutomaton): string[] {
  const listed = [...listedNames(shape)];
  const other = isOpen(shape) ? language.without(ofTexts([...listed, ...shape.forbidden])).shortestText() : undefined;
  return [...listed.filter((name) => language.matches(name)), ...(other === undefined ? [] : [other])];
}

function negateBounds(shape: ValueShape, schema: JsonSchema, path: string, keyword: string): readonly ValueShape[] {
  const bounds = readBounds(schema, path);
  const { minimum, maximum, exclusiveMinimum, exclusiveMaximum } = bounds;
  const options = keyword.toLowerCase().endsWith("minimum")
    ? [
        minimum === undefined ? undefined : { exclusiveMaximum: minimum },
        exclusiveMinimum === undefined ? undefined : { maximum: exclusiveMinimum },
      ]
    : [
        maximum === undefined ? undefined : { exclusiveMinimum: maximum },
        exclusiveMaximum === undefined ? undefined : { minimum: exclusiveMaximum },
      ];
  return options.flatMap((bound) =>
    bound === undefined ? [] : [{ ...shape, types: shape.types & TYPE_BITS.number, bounds: [...shape.bounds, bound] }],
  );
}

/** An item of the prefix, or one of the others, violates its schema. */
function negateItems(shape: ValueShape, schema: JsonSchema, path: string, keyword: string): readonly ValueShape[] {
  const { prefix, rest } = readItems(schema, path);
  const isPrefix = keyword === "prefixItems" || Array.isArray(schema.items);
  if (isPrefix)
    return prefix.map((value, i) => ({
      ...shape,
      minItems: Math.max(shape.minItems, i + 1),
      itemParts: [
        ...shape.itemParts,
        {
          prefix: Array.from({ length: i + 1 }, (_, j) => ({ schema: j === i ? value : false, path, isNegated: true })),
          rest: { schema: true, path, isNegated: false },
        },
      ],
    }));
  if (prefix.length > 0) return [];
  return [{ ...shape, contains: [...shape.contains, { schema: rest, path, isNegated: true }] }];
}

/** Requires a member whose value satisfies a term. */
function withMember(shape: ValueShape, name: string, value: Term): ValueShape {
  return {
    ...shape,
    required: [...shape.required, name],
    memberParts: [
      ...shape.memberParts,
      { isList: false, properties: new Map([[name, value]]), patterns: [], additional: undefined },
    ],
  };
}

/** A member that the shape lists, but not the schema, violates "additionalProperties". */
function negateAdditional(shape: ValueShape, schema: JsonSchema, path: string): readonly ValueShape[] {
  const listed = readSchemaMap(schema, "properties", path);
  if (schema.patternProperties !== undefined) return [];
  const names = new Set(shape.memberParts.flatMap(({ properties }) => [...properties.keys()]).concat(shape.required));
  return [...names]
    .filter((name) => !Object.hasOwn(listed, name))
    .map((name) =>
      withMember(shape, name, {
        schema: schema.additionalProperties,
        path: `${path}/additionalProperties`,
        isNegated: true,
      }),
    );
}
