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
 * Maximum number of values of the items of an array with "uniqueItems" in any order: it has a rule
 * for each set of them.
 */
const MAX_UNIQUE_VALUES = 8;
/** Maximum number of rules of such an array with more values, which are in the schema's order. */
const MAX_ORDERED_RULES = 10_000;
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
  if (shape.isUnique && max > 1) return writeUnique(writer, { ...shape, maxItems: max }, path);
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

/**
 * Arrays without equal items: of a few values in any order, of many in the order of the schema, and
 * of values that are not listed at most one.
 */
function writeUnique(writer: ValueWriter, shape: ValueShape, path: string): RegexExpression {
  const { minItems: min, maxItems: max, itemParts, contains } = shape;
  const isPlain = itemParts.every(({ prefix }) => prefix.length === 0) && contains.length === 0;
  const values = isPlain ? listValues(writer, itemTerms(shape, 0)) : undefined;
  if (values !== undefined && values.length <= MAX_UNIQUE_VALUES) return writeSets(values, min, max);
  const ordered = values && writeOrdered(values, min, max);
  if (ordered !== undefined) return ordered;
  if (min <= 1) return writeArray(writer, { ...shape, maxItems: 1 }, path);
  throw schemaError(
    path,
    '"uniqueItems" with "minItems" above 1 is supported for items with listed values ("enum" or "const"); remove it, or list the values',
  );
}

/** Arrays of different texts in their order; undefined if there are too many. */
function writeOrdered(texts: readonly string[], min: number, max: number): RegexExpression | undefined {
  // More items than these need not be counted.
  const counted = max < texts.length ? max : Math.max(min, 1);
  if ((texts.length + 1) * (counted + 1) > MAX_ORDERED_RULES) return undefined;
  const rules = new Map<string, GrammarRule>();
  const from = (index: number, count: number): RegexExpression => {
    const key = `${index},${count}`;
    let rule = rules.get(key);
    if (rule === undefined) rules.set(key, (rule = { isValue: false, expression: () => write(index, count) }));
    return { kind: "rule", rule };
  };
  const write = (index: number, count: number): RegexExpression => {
    if (index === texts.length) return count >= min ? literal("]") : NO_MATCH;
    const separator = count === 0 ? EMPTY_TEXT : COMMA;
    const next = from(index + 1, Math.min(count + 1, counted));
    const taken = count === max ? [] : [sequence([separator, literal(texts[index]), next])];
    return alternatives([...taken, from(index + 1, count)]);
  };
  return sequence([literal("["), from(0, 0)]);
}

/** Arrays of different texts in any order. */
function writeSets(values: readonly string[], min: number, max: number): RegexExpression {
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
