import { LlamaGymError } from "../../../core/errors.js";
import { type SchemaEvaluator, formatCanonical } from "./evaluate-schema.js";
import { TYPE_BITS, typeOfValue } from "./keywords.js";
import { mergeBounds } from "./number-language.js";
import { allowsName, isOpen, listedNames, namedMemberTerms } from "./object-members.js";
import type { Term } from "./schema-document.js";
import type { ValueShape, ShapeExpander } from "./value-shape.js";
import type { StringLanguages } from "./string-language.js";

/** Maximum pairs of shapes, and maximum nesting, that are compared. */
const MAX_PAIRS = 2_500;
const MAX_DEPTH = 4;

interface CompareOptions {
  /**
   * Whether our shapes are written as they are, so that objects have listed names only unless they
   * are open.
   */
  readonly areOursWritten?: boolean;
  readonly depth?: number;
}

/** Finds shapes that have no value in common. */
export class ShapeComparer {
  constructor(
    private readonly expander: ShapeExpander,
    private readonly evaluator: SchemaEvaluator,
    private readonly languages: StringLanguages,
  ) {}

  /** Returns true only if no value has one of our shapes and one of theirs. */
  areDisjoint(ours: readonly ValueShape[], theirs: readonly ValueShape[], options: CompareOptions = {}): boolean {
    if (ours.length * theirs.length > MAX_PAIRS || (options.depth ?? 0) > MAX_DEPTH) return false;
    return ours.every((a) => theirs.every((b) => this.areShapesDisjoint(a, b, options)));
  }

  private areShapesDisjoint(a: ValueShape, b: ValueShape, options: CompareOptions): boolean {
    if (a.values !== undefined) return a.values.every((value) => this.excludesValue(b, value));
    if (b.values !== undefined) return b.values.every((value) => this.excludesValue(a, value));
    const types = a.types & b.types;
    const has = (type: keyof typeof TYPE_BITS) => (types & TYPE_BITS[type]) !== 0;
    return (
      !has("null") &&
      !has("boolean") &&
      (!has("number") || areNumbersDisjoint(a, b)) &&
      (!has("string") || this.areStringsDisjoint(a, b)) &&
      (!has("array") || this.areArraysDisjoint(a, b, options)) &&
      (!has("object") || this.areObjectsDisjoint(a, b, options))
    );
  }

  /** Returns true only if a shape does not have a value. */
  private excludesValue(shape: ValueShape, value: unknown): boolean {
    if (shape.values?.every((other) => formatCanonical(other) !== formatCanonical(value)) === true) return true;
    if ((shape.types & typeOfValue(value)) === 0) return true;
    if (shape.excluded.some((other) => formatCanonical(other) === formatCanonical(value))) return true;
    return typeof value === "string" && this.languageOf(shape)?.matches(value) === false;
  }

  private areStringsDisjoint(a: ValueShape, b: ValueShape): boolean {
    if (a.minLength > b.maxLength || b.minLength > a.maxLength) return true;
    const [language, other] = [this.languageOf(a), this.languageOf(b)];
    if (language === undefined || other === undefined) return false;
    return attempt(() => language.and(other).isEmpty) ?? false;
  }

  private languageOf(shape: ValueShape) {
    return attempt(() => this.languages.ofShape(shape));
  }

  private areArraysDisjoint(a: ValueShape, b: ValueShape, options: CompareOptions): boolean {
    if (a.minItems > b.maxItems || b.minItems > a.maxItems) return true;
    if (a.minItems === 0 && b.minItems === 0) return false;
    const first = ({ itemParts }: ValueShape) =>
      itemParts.flatMap(({ prefix, rest }) => {
        const term = prefix.length > 0 ? prefix[0] : rest;
        return term === undefined ? [] : [term];
      });
    return this.areTermsDisjoint(first(a), first(b), options);
  }

  private areObjectsDisjoint(a: ValueShape, b: ValueShape, options: CompareOptions): boolean {
    if (a.minProperties > b.maxProperties || b.minProperties > a.maxProperties) return true;
    const isListed = (name: string) => options.areOursWritten !== true || isOpen(a) || listedNames(a).has(name);
    return [...new Set([...a.required, ...b.required])].some(
      (name) =>
        !isListed(name) ||
        !allowsName(a, name, this.evaluator) ||
        !allowsName(b, name, this.evaluator) ||
        this.areTermsDisjoint(
          namedMemberTerms(a, name, this.languages),
          namedMemberTerms(b, name, this.languages),
          options,
        ),
    );
  }

  private areTermsDisjoint(ours: readonly Term[], theirs: readonly Term[], { depth = 0 }: CompareOptions): boolean {
    return this.areDisjoint(this.expander.expand(ours), this.expander.expand(theirs), { depth: depth + 1 });
  }
}

function areNumbersDisjoint(a: ValueShape, b: ValueShape): boolean {
  const isBelow = (low: ValueShape, high: ValueShape) => {
    const { maximum = Infinity, exclusiveMaximum = Infinity } = mergeBounds(low.bounds);
    const { minimum = -Infinity, exclusiveMinimum = -Infinity } = mergeBounds(high.bounds);
    return maximum < minimum || maximum <= exclusiveMinimum || exclusiveMaximum <= Math.max(minimum, exclusiveMinimum);
  };
  return isBelow(a, b) || isBelow(b, a);
}

/** Returns undefined for an automaton that is too large. */
function attempt<Result>(work: () => Result): Result | undefined {
  try {
    return work();
  } catch (error) {
    if (error instanceof LlamaGymError) return undefined;
    throw error;
  }
}
