import { countCharacters, toCharacters } from "./code-points.js";
import { PythonDict, DictView } from "./dict.js";
import { spendItems, spendSteps } from "./limits.js";
import {
  Bytes,
  Lazy,
  PythonRange,
  PythonTuple,
  Undefined,
  type Value,
  asString,
  getPythonType,
  isList,
} from "./values.js";

/** Returns the items of a value that has them in memory, or undefined. */
function readItems(value: Value): readonly Value[] | undefined {
  if (isList(value)) return value;
  if (value instanceof PythonTuple) return value.items;
  if (value instanceof PythonDict) return value.keys();
  if (value instanceof DictView || value instanceof PythonRange) return value.toArray();
  if (value instanceof Undefined) return [];
  if (value instanceof Bytes) return Array.from(value.bytes);
  const text = asString(value);
  if (text === undefined) return undefined;
  spendItems(text.length);
  return Array.from(toCharacters(text));
}

export function isIterable(value: Value): boolean {
  return value instanceof Lazy || asString(value) !== undefined || readItems(value) !== undefined;
}

/**
 * Returns all items, keys or characters; none for an undefined name. @throws for what cannot be
 * iterated.
 */
export function iterate(value: Value): readonly Value[] {
  const items = readItems(value);
  if (items) return items;
  return Array.from(readLazily(getIterator(value)));
}

/** Returns an iterator of items, keys or characters. @throws as `iterate`. */
export function getIterator(value: Value): Iterator<Value> {
  if (value instanceof Lazy) return value.iterator;
  const items = readItems(value);
  if (!items) throw new Error(`'${getPythonType(value)}' object is not iterable`);
  return items[Symbol.iterator]();
}

function* readLazily(iterator: Iterator<Value>): Generator<Value> {
  for (let next = iterator.next(); next.done !== true; next = iterator.next()) {
    spendItems(1);
    yield next.value;
  }
}

/** Creates a generator of the values that a function yields. */
export function lazy(source: Value, transform: (items: Iterable<Value>) => Iterator<Value>): Lazy {
  const start = function* (): Generator<Value> {
    const results = transform(readLazily(getIterator(source)));
    for (let next = results.next(); next.done !== true; next = results.next()) {
      spendSteps(1);
      yield next.value;
    }
  };
  return new Lazy(start());
}

/** Returns len(value), or undefined for a value without one. */
export function findLength(value: Value): number | undefined {
  const text = asString(value);
  if (text !== undefined) return countCharacters(text);
  if (isList(value) || value instanceof PythonRange) return value.length;
  if (value instanceof PythonTuple) return value.items.length;
  if (value instanceof PythonDict) return value.size;
  if (value instanceof DictView) return value.dict.size;
  if (value instanceof Bytes) return value.bytes.length;
  return value instanceof Undefined ? 0 : undefined;
}

/** Returns len(value). @throws for a value without one. */
export function getLength(value: Value): number {
  const length = findLength(value);
  if (length === undefined) throw new Error(`object of type '${getPythonType(value)}' has no len()`);
  return length;
}
