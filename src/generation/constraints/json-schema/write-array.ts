import { formatJsonLine } from "../../../core/json.js";
import {
  EMPTY_TEXT,
  type RegexExpression,
  NO_MATCH,
  type GrammarRule,
  alternatives,
  literal,
  optional,
  repetition,
  sequence,
} from "../regex/expression.js";
import { TYPE_BITS, schemaError } from "./keywords.js";
import type { Term } from "./schema-document.js";
import type { ValueShape } from "./value-shape.js";
import type { ValueWriter } from "./value-writer.js";

/**
 * Maximum number of values of the items of an array with "uniqueItems": it has a rule for each set
 * of them.
 */
const MAX_UNIQUE_VALUES = 8;
/** Maximum "maxItems" with "contains". */
const MAX_CONTAINING_ITEMS = 100;

/** Maximum number of items of an array with a greater limit. */
const MAX_ITEMS = 1_000;

const COMMA = literal(", ");

/** Returns the expression of a shape's arrays. */
export function writeArray(writer: ValueWriter, shape: ValueShape, path: string): RegexExpression {
  const { itemParts, minItems: min, contains } = shape;
  const prefixLength = Math.max(0, ...itemParts.map(({ prefix }) => prefix.length));
  // A prefix ends the array unless a schema allows others.
  const isClosed = prefixLength > 0 && itemParts.every(({ rest }) => rest === undefined);
  const maxItems = Math.min(shape.maxItems, isClosed ? prefixLength : Infinity);
  const max = maxItems === Infinity ? maxItems : Math.min(maxItems, Math.max(min, MAX_ITEMS));
  if (min > max) return NO_MATCH;
  if (max === 0) return contains.length > 0 ? NO_MATCH : literal("[]");
  if (shape.isUnique && max > 1) return writeUnique(writer, shape, path);
  const itemAt = (index: number) => writer.value(itemTerms(shape, index));
  if (contains.length > 0) return writeContaining(writer, shape, path);
  const heads = Array.from({ length: Math.min(prefixLength, max) }, (_, i) => itemAt(i));
  const item = itemAt(prefixLength);
  // Without prefixes the first item has no comma before it.
  if (heads.length === 0) heads.push(item);
  let rest = repetition(sequence([COMMA, item]), Math.max(0, min - heads.length), max - heads.length);
  for (let i = heads.length - 1; i >= 0; i--) {
    rest = sequence([i === 0 ? EMPTY_TEXT : COMMA, heads[i], rest]);
    if (i >= min) rest = optional(rest);
  }
  return sequence([literal("["), rest, literal("]")]);
}

function itemTerms({ itemParts }: ValueShape, index: number): Term[] {
  return itemParts.flatMap(({ prefix, rest }) => {
    const term = index < prefix.length ? prefix[index] : rest;
    return term === undefined ? [] : [term];
  });
}

/** Arrays of which one item satisfies "contains". */
function writeContaining(writer: ValueWriter, shape: ValueShape, path: string): RegexExpression {
  const { contains, minItems: min, maxItems: max, itemParts } = shape;
  if (
    contains.length > 1 ||
    itemParts.some(({ prefix }) => prefix.length > 0) ||
    (max < Infinity && max > MAX_CONTAINING_ITEMS)
  )
    throw schemaError(
      path,
      `"contains" is supported once, without "prefixItems", and with "maxItems" of at most ${MAX_CONTAINING_ITEMS}`,
    );
  const terms = itemTerms(shape, 0);
  const item = writer.value(terms);
  const found = writer.value([...terms, ...contains]);
  const positions = max === Infinity ? Math.max(1, min) : max;
  const options = Array.from({ length: positions }, (_, before) => {
    // The last option has any number of items before, if there is no limit.
    const isLast = max === Infinity && before === positions - 1;
    return sequence([
      literal("["),
      repetition(sequence([item, COMMA]), before, isLast ? Infinity : before),
      found,
      repetition(sequence([COMMA, item]), Math.max(0, min - 1 - before), max - 1 - before),
      literal("]"),
    ]);
  });
  return alternatives(options);
}

/** Arrays without equal items, for items of a few values. */
function writeUnique(writer: ValueWriter, shape: ValueShape, path: string): RegexExpression {
  const values = listValues(writer, itemTerms(shape, 0));
  if (
    values === undefined ||
    values.length > MAX_UNIQUE_VALUES ||
    shape.itemParts.some(({ prefix }) => prefix.length > 0) ||
    shape.contains.length > 0
  )
    throw schemaError(
      path,
      `"uniqueItems" is supported for items of at most ${MAX_UNIQUE_VALUES} values ("enum" or "const"); remove it, or list the values`,
    );
  const { minItems: min, maxItems: max } = shape;
  const rules = new Map<number, GrammarRule>();
  /** What follows the items of a set. */
  const after = (used: number): RegexExpression => {
    let rule = rules.get(used);
    if (rule === undefined) rules.set(used, (rule = { isValue: false, expression: () => write(used) }));
    return { kind: "rule", rule };
  };
  const write = (used: number): RegexExpression => {
    const count = values.filter((_, i) => ((used >> i) & 1) === 1).length;
    const next = values.flatMap((text, i) =>
      count < max && ((used >> i) & 1) === 0
        ? [sequence([count === 0 ? EMPTY_TEXT : COMMA, literal(text), after(used | (1 << i))])]
        : [],
    );
    return alternatives([...next, ...(count >= min ? [literal("]")] : [])]);
  };
  return sequence([literal("["), after(0)]);
}

/** Lists the texts of the values of terms, if they are a few; undefined for others. */
function listValues({ expander }: ValueWriter, terms: readonly Term[]): string[] | undefined {
  const texts = new Set<string>();
  for (const { values, types, excluded } of expander.shapes(terms)) {
    if (values === undefined && ((types & ~(TYPE_BITS.boolean | TYPE_BITS.null)) !== 0 || excluded.length > 0))
      return undefined;
    const all = [true, false].filter(() => (types & TYPE_BITS.boolean) !== 0);
    for (const value of values ?? [...all, ...((types & TYPE_BITS.null) === 0 ? [] : [null])])
      texts.add(formatJsonLine(value));
  }
  return [...texts];
}
