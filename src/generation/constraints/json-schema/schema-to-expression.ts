import { formatJsonLine } from "../../../core/json.js";
import {
  type RegexExpression,
  NO_MATCH,
  type GrammarRule,
  alternatives,
  literal,
  shared,
} from "../regex/expression.js";
import { SchemaEvaluator } from "./evaluate-schema.js";
import { SchemaExpander } from "./expand-schema.js";
import { JsonStringWriter } from "./json-text.js";
import { type JsonSchema, TYPE_BITS, stringifySchema } from "./keywords.js";
import { mergeBounds, writeNumbers } from "./number-language.js";
import { SchemaDocument, type Term } from "./schema-document.js";
import type { ValueShape } from "./value-shape.js";
import { StringLanguages } from "./string-language.js";
import type { ValueWriter } from "./value-writer.js";
import { writeArray } from "./write-array.js";
import { writeObject } from "./write-object.js";

/**
 * Converts a schema to an expression of the JSON texts of its values. Each value has one text: on
 * one line, with ", " and ": " between values, strings as JSON.stringify writes them, and
 * properties in the schema's order. docs/constrained-decoding.md lists the supported keywords.
 * @throws INVALID_ARGUMENT for a schema that is not JSON or too large; where the expression's rules
 * are read, for an unsupported keyword.
 */
export function schemaToExpression(schema: JsonSchema): RegexExpression {
  // A copy: getters and toJSON methods of the original run once.
  const copy = JSON.parse(stringifySchema(schema)) as JsonSchema;
  const document = new SchemaDocument(copy);
  return new SchemaWriter(document).value([{ schema: copy, path: "#", isNegated: false }]);
}

/** Writes the values of schemas as rules of an expression; equal schemas share one. */
class SchemaWriter implements ValueWriter {
  readonly languages = new StringLanguages();
  readonly strings = new JsonStringWriter();
  readonly evaluator: SchemaEvaluator;
  readonly expander: SchemaExpander;
  private readonly rules = new Map<string, GrammarRule>();
  private readonly numbers = new Map<string, RegexExpression>();

  constructor(private readonly document: SchemaDocument) {
    this.evaluator = new SchemaEvaluator(document, this.languages);
    this.expander = new SchemaExpander(document, this.evaluator, this.languages);
  }

  /** Returns the expression of the values that satisfy all terms. */
  value(terms: readonly Term[]): RegexExpression {
    const simple = this.document.simplify(terms);
    const key = this.document.key(simple);
    let rule = this.rules.get(key);
    if (rule === undefined) {
      rule = { isValue: true, expression: () => this.writeTerms(simple) };
      this.rules.set(key, rule);
    }
    return { kind: "rule", rule };
  }

  private writeTerms(terms: readonly Term[]): RegexExpression {
    const path = terms[0]?.path ?? "#";
    return alternatives(this.expander.shapes(terms).map((shape) => this.write(shape, path)));
  }

  private write(shape: ValueShape, path: string): RegexExpression {
    if (shape.values !== undefined) return alternatives([...new Set(shape.values.map(formatJsonLine))].map(literal));
    const has = (type: keyof typeof TYPE_BITS) => (shape.types & TYPE_BITS[type]) !== 0;
    const except = (...values: readonly (boolean | null)[]) =>
      values.filter((value) => !shape.excluded.includes(value)).map((value) => literal(String(value)));
    return alternatives([
      ...(has("object") ? [writeObject(this, shape, path)] : []),
      ...(has("array") ? [writeArray(this, shape, path)] : []),
      ...(has("string") ? [this.writeString(shape)] : []),
      ...(has("number") ? [this.writeNumbers(shape, path)] : []),
      ...(has("boolean") ? except(true, false) : []),
      ...(has("null") ? except(null) : []),
    ]);
  }

  private writeNumbers(shape: ValueShape, path: string): RegexExpression {
    const { types, bounds, divisors, excludedDivisors, excluded } = shape;
    const limits = mergeBounds(bounds);
    const key = JSON.stringify([types & TYPE_BITS.number, limits, divisors, excludedDivisors, excluded]);
    let expression = this.numbers.get(key);
    if (expression === undefined) this.numbers.set(key, (expression = shared(writeNumbers(shape, path))));
    return expression;
  }

  private writeString(shape: ValueShape): RegexExpression {
    const { minLength, maxLength } = shape;
    if (minLength > maxLength) return NO_MATCH;
    const automaton = this.languages.ofShape(shape);
    if (automaton === undefined) return this.strings.withLength(minLength, maxLength);
    return automaton.isEmpty ? NO_MATCH : this.strings.withContent(automaton);
  }
}
