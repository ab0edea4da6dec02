import type { RegexExpression } from "../regex/expression.js";
import type { SchemaEvaluator } from "./evaluate-schema.js";
import type { JsonStringWriter } from "./json-text.js";
import type { Term } from "./schema-document.js";
import type { ShapeExpander } from "./value-shape.js";
import type { StringLanguages } from "./string-language.js";

/** What the expressions of arrays and objects need of the whole schema. */
export interface ValueWriter {
  readonly languages: StringLanguages;
  readonly strings: JsonStringWriter;
  readonly evaluator: SchemaEvaluator;
  readonly expander: ShapeExpander;
  /** Returns the expression of the values that satisfy all terms. */
  value(terms: readonly Term[]): RegexExpression;
}
