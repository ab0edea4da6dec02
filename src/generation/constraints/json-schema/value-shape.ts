import { ALL_TYPES } from "./keywords.js";
import type { Bounds } from "./number-range.js";
import type { Term } from "./schema-document.js";

/** What one schema says of an object's members. */
export interface MemberPart {
  /** Whether it lists properties, so that others are only written if it says so. */
  readonly isList: boolean;
  readonly properties: ReadonlyMap<string, Term>;
  readonly patterns: readonly { readonly source: string; readonly value: Term }[];
  /** Of members of other names; undefined for any value. */
  readonly additional: Term | undefined;
}

/** What one schema says of an array's items. */
export interface ItemPart {
  readonly prefix: readonly Term[];
  /** Of the items after the prefix; undefined for any value. */
  readonly rest: Term | undefined;
}

/** A pattern that a string matches or not. */
export interface StringPattern {
  readonly source: string;
  readonly path: string;
  readonly isNegated: boolean;
}

/** The values that satisfy each of several restrictions, of which none is a choice. */
export interface ValueShape {
  /** Bits of the types. */
  readonly types: number;
  /**
   * The only possible values; undefined for no restriction. They may violate the other
   * restrictions.
   */
  readonly values: readonly unknown[] | undefined;
  readonly excluded: readonly unknown[];
  readonly bounds: readonly Bounds[];
  readonly divisors: readonly number[];
  /** Numbers of which it is no multiple. */
  readonly excludedDivisors: readonly number[];
  readonly minLength: number;
  readonly maxLength: number;
  readonly patterns: readonly StringPattern[];
  /** Names of FORMATS. */
  readonly formats: readonly string[];
  readonly minItems: number;
  readonly maxItems: number;
  readonly isUnique: boolean;
  readonly itemParts: readonly ItemPart[];
  /** Restrictions of which at least one item satisfies each. */
  readonly contains: readonly Term[];
  readonly minProperties: number;
  readonly maxProperties: number;
  readonly required: readonly string[];
  readonly forbidden: readonly string[];
  readonly memberParts: readonly MemberPart[];
  /** Restrictions of names. */
  readonly names: readonly Term[];
  /** Restrictions that values must violate, which are not yet expressed by the others. */
  readonly negated: readonly Term[];
  /** Bits of the types that some restriction is about. */
  readonly mentionedTypes: number;
}

export const ANY_SHAPE: ValueShape = {
  types: ALL_TYPES,
  values: undefined,
  excluded: [],
  bounds: [],
  divisors: [],
  excludedDivisors: [],
  minLength: 0,
  maxLength: Infinity,
  patterns: [],
  formats: [],
  minItems: 0,
  maxItems: Infinity,
  isUnique: false,
  itemParts: [],
  contains: [],
  minProperties: 0,
  maxProperties: Infinity,
  required: [],
  forbidden: [],
  memberParts: [],
  names: [],
  negated: [],
  mentionedTypes: 0,
};

/** Expands schemas into the shapes of their values. */
export interface ShapeExpander {
  /**
   * Returns the shapes of values that satisfy all terms: some values, if not all of them can be
   * written.
   */
  shapes(terms: readonly Term[]): readonly ValueShape[];
  /** Returns shapes that all values that satisfy the terms have; `negated` is not yet expressed. */
  expand(terms: readonly Term[]): readonly ValueShape[];
  /** Adds a term to each shape. */
  addAll(shapes: readonly ValueShape[], term: Term): readonly ValueShape[];
}
