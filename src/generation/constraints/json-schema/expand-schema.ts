import {
  ALL_TYPES,
  UNSUPPORTED_KEYWORDS,
  readCount,
  readNames,
  readNumber,
  readSchema,
  readSchemas,
  readTypes,
  schemaError,
  typeOfKeyword,
  type JsonSchema,
} from "./keywords.js";
import { readContains, readItemPart, readMembers, readValues } from "./read-parts.js";
import { readBounds, readDependencies, type SchemaEvaluator } from "./evaluate-schema.js";
import { FORMATS } from "./formats.js";
import { escapePointerPart, type SchemaDocument, type Term } from "./schema-document.js";
import type { StringLanguages } from "./string-language.js";
import { ANY_SHAPE, type ValueShape, type ShapeExpander } from "./value-shape.js";
import { type NegationContext, negateTerm } from "./negate-schema.js";
import { ShapeComparer } from "./compare-shapes.js";

/** Maximum combinations of the options of a schema. */
const MAX_SHAPES = 1_000;
/**
 * Maximum number of times that a term is added to a shape, for combinations of which few remain.
 */
const MAX_STEPS = 200_000;
/**
 * Maximum nesting of schemas that apply to one value; more come from schemas that refer to
 * themselves.
 */
const MAX_NESTING = 200;

/**
 * Expands schemas into the shapes of their values: a value satisfies a schema if it has one of the
 * shapes.
 */
export class SchemaExpander implements ShapeExpander {
  private readonly expanded = new Map<string, readonly ValueShape[]>();
  private readonly resolved = new Map<string, readonly ValueShape[]>();
  /** Schemas that are being expanded, which must not apply to the same value again. */
  private readonly active = new Set<string>();
  private nesting = 0;
  private steps = 0;
  private readonly comparer: ShapeComparer;
  private readonly negation: NegationContext;

  constructor(
    private readonly document: SchemaDocument,
    private readonly evaluator: SchemaEvaluator,
    languages: StringLanguages,
  ) {
    this.comparer = new ShapeComparer(this, evaluator, languages);
    this.negation = { expander: this, document, languages };
  }

  shapes(terms: readonly Term[]): readonly ValueShape[] {
    const key = this.document.key(terms);
    let shapes = this.resolved.get(key);
    if (shapes === undefined) {
      const path = terms[0]?.path ?? "#";
      shapes = this.expand(terms)
        .flatMap((shape) => this.subtract(shape, terms, path))
        .map(inferTypes);
      this.resolved.set(key, shapes);
    }
    return shapes;
  }

  expand(terms: readonly Term[]): readonly ValueShape[] {
    const key = this.document.key(terms);
    let shapes = this.expanded.get(key);
    if (shapes === undefined) {
      shapes = terms.reduce((all, term) => this.addAll(all, term), [ANY_SHAPE]);
      this.expanded.set(key, shapes);
    }
    return shapes;
  }

  addAll(shapes: readonly ValueShape[], term: Term): ValueShape[] {
    const result = shapes.flatMap((shape) => this.add(shape, term));
    if (result.length > MAX_SHAPES)
      throw schemaError(term.path, `its options have more than ${MAX_SHAPES} combinations`);
    return result;
  }

  /** Adds a term to a shape. */
  add(shape: ValueShape, term: Term): readonly ValueShape[] {
    const { schema: source, path, isNegated } = term;
    if (++this.steps > MAX_STEPS) throw schemaError(path, "the schema has too many combinations of options");
    const schema = readSchema(source, path);
    if (typeof schema === "boolean") return schema === isNegated ? [] : [shape];
    if (isNegated) return [{ ...shape, negated: [...shape.negated, term] }];
    const key = this.document.termKey(term);
    if (this.active.has(key))
      throw schemaError(path, "the schema refers to itself without a property or item in between");
    this.active.add(key);
    const shapes = this.applyKeywords(shape, schema, path);
    this.active.delete(key);
    return shapes;
  }

  private applyKeywords(shape: ValueShape, schema: JsonSchema, path: string): readonly ValueShape[] {
    const unsupported = UNSUPPORTED_KEYWORDS.find((name) => schema[name] !== undefined);
    if (unsupported !== undefined) throw schemaError(path, `"${unsupported}" is not supported`);
    let shapes: readonly ValueShape[] = [this.applyScalars(shape, schema, path)];
    // In the schema's order, which is the order of properties.
    for (const keyword of Object.keys(schema)) {
      shapes = this.applyApplicator(shapes, keyword, schema, path);
      if (shapes.length === 0) break;
    }
    return shapes.filter(({ types, values }) => (values?.length ?? types) > 0);
  }

  private applyApplicator(
    shapes: readonly ValueShape[],
    keyword: string,
    schema: JsonSchema,
    path: string,
  ): readonly ValueShape[] {
    const at = (name: string, value: unknown = schema[name], isNegated = false): Term => ({
      schema: value,
      path: `${path}/${name}`,
      isNegated,
    });
    const anyOf = (options: readonly (readonly Term[])[]) =>
      options.flatMap((terms) => terms.reduce((all: readonly ValueShape[], term) => this.addAll(all, term), shapes));
    switch (keyword) {
      case "$ref":
        return this.addAll(shapes, this.document.resolve(schema.$ref, schema, path));
      case "allOf":
        return readSchemas(schema, keyword, path).reduce(
          (all: readonly ValueShape[], each, i) => this.addAll(all, at(`allOf/${i}`, each)),
          shapes,
        );
      case "anyOf":
        return anyOf(readSchemas(schema, keyword, path).map((each, i) => [at(`anyOf/${i}`, each)]));
      case "oneOf": {
        const options = readSchemas(schema, keyword, path);
        return anyOf(
          options.map((option, i) => [
            at(`oneOf/${i}`, option),
            ...options.flatMap((other, j) => (j === i ? [] : [at(`oneOf/${j}`, other, true)])),
          ]),
        );
      }
      case "not":
        return this.addAll(shapes, at("not", schema.not, true));
      case "if":
        return anyOf([
          [at("if"), at("then", schema.then ?? true)],
          [at("if", schema.if, true), at("else", schema.else ?? true)],
        ]);
      case "properties":
      case "patternProperties":
      case "additionalProperties":
        return firstOf(schema, ["properties", "patternProperties", "additionalProperties"]) === keyword
          ? shapes.map((shape) => ({
              ...shape,
              memberParts: [...shape.memberParts, readMembers(schema, path)],
            }))
          : shapes;
      case "dependencies":
      case "dependentRequired":
      case "dependentSchemas":
        return firstOf(schema, ["dependencies", "dependentRequired", "dependentSchemas"]) === keyword
          ? this.applyDependencies(shapes, schema, path)
          : shapes;
      default:
        return shapes;
    }
  }

  private applyDependencies(shapes: readonly ValueShape[], schema: JsonSchema, path: string): readonly ValueShape[] {
    return readDependencies(schema, path).reduce(
      (all: readonly ValueShape[], { name, required, schema: dependent }) => {
        const term = { schema: dependent, path: `${path}/dependencies/${escapePointerPart(name)}`, isNegated: false };
        const present = all.map((shape) => ({ ...shape, required: [...shape.required, name, ...required] }));
        const absent = all
          .filter((shape) => !shape.required.includes(name))
          .map((shape) => ({ ...shape, forbidden: [...shape.forbidden, name] }));
        const result = [...absent, ...this.addAll(present, term)];
        if (result.length > MAX_SHAPES)
          throw schemaError(path, `its dependencies have more than ${MAX_SHAPES} combinations`);
        return result;
      },
      shapes,
    );
  }

  /** Applies the keywords that restrict a value without further schemas, and those of items. */
  private applyScalars(shape: ValueShape, schema: JsonSchema, path: string): ValueShape {
    const { pattern, format, required } = schema;
    if (pattern !== undefined && typeof pattern !== "string")
      throw schemaError(path, `"pattern" must be a string, got ${JSON.stringify(pattern)}`);
    const divisor = readNumber(schema, "multipleOf", path);
    if (divisor !== undefined && divisor <= 0) throw schemaError(path, `"multipleOf" must be above 0, got ${divisor}`);
    const max = (keyword: string, value: number) => Math.max(value, readCount(schema, keyword, path) ?? 0);
    const min = (keyword: string, value: number) => Math.min(value, readCount(schema, keyword, path) ?? Infinity);
    const isFormat = typeof format === "string" && Object.hasOwn(FORMATS, format);
    const mentioned = Object.keys(schema)
      .filter((name) => name !== "format" || isFormat)
      .reduce((bits, name) => bits | typeOfKeyword(name), shape.mentionedTypes);
    return {
      ...shape,
      types: schema.type === undefined ? shape.types : shape.types & readTypes(schema, path),
      values: readValues(shape, schema, path),
      bounds: [...shape.bounds, readBounds(schema, path)],
      divisors: divisor === undefined ? shape.divisors : [...shape.divisors, divisor],
      minLength: max("minLength", shape.minLength),
      maxLength: min("maxLength", shape.maxLength),
      patterns:
        pattern === undefined ? shape.patterns : [...shape.patterns, { source: pattern, path, isNegated: false }],
      formats: isFormat ? [...shape.formats, format] : shape.formats,
      minItems: max("minItems", shape.minItems),
      maxItems: min("maxItems", shape.maxItems),
      isUnique: shape.isUnique || schema.uniqueItems === true,
      itemParts: readItemPart(shape, schema, path),
      contains: readContains(shape, schema, path),
      minProperties: max("minProperties", shape.minProperties),
      maxProperties: min("maxProperties", shape.maxProperties),
      required: required === undefined ? shape.required : [...shape.required, ...readNames(required, "required", path)],
      names:
        schema.propertyNames === undefined
          ? shape.names
          : [...shape.names, { schema: schema.propertyNames, path: `${path}/propertyNames`, isNegated: false }],
      mentionedTypes: mentioned,
    };
  }

  /** Expresses what a shape's values must violate by its other restrictions. */
  private subtract(shape: ValueShape, terms: readonly Term[], path: string): readonly ValueShape[] {
    if (shape.values !== undefined) {
      const values = shape.values.filter((value) => this.evaluator.satisfiesAll(value, terms));
      return values.length === 0 ? [] : [{ ...shape, values, negated: [] }];
    }
    const [term, ...others] = shape.negated;
    if (term === undefined) return shape.types === 0 ? [] : [shape];
    if (++this.nesting > MAX_NESTING) throw schemaError(path, "the schema refers to itself in a negation");
    const rest = { ...shape, negated: others };
    const positive = { ...term, isNegated: false };
    // A shape compared with inferred types keeps them: other negations may be about other types.
    const inferred = inferTypes(rest);
    const shapes = this.comparer.areDisjoint([inferred], this.expand([positive]), { areOursWritten: true })
      ? [inferred]
      : negateTerm(this.negation, rest, positive);
    const result = shapes.flatMap((each) => this.subtract(each, terms, path));
    if (result.length > MAX_SHAPES) throw schemaError(path, `its negations have more than ${MAX_SHAPES} combinations`);
    this.nesting--;
    return result;
  }
}

/** Restricts a shape without a type to the types that its keywords are about. */
function inferTypes(shape: ValueShape): ValueShape {
  const isUntyped = shape.types === ALL_TYPES && shape.values === undefined && shape.mentionedTypes !== 0;
  return isUntyped ? { ...shape, types: shape.mentionedTypes } : shape;
}

function firstOf(schema: JsonSchema, keywords: readonly string[]): string | undefined {
  return Object.keys(schema).find((name) => keywords.includes(name));
}
