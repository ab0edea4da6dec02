import { findStringEnd, isJsonObject } from "./json.js";
import { runSteps, type Steps } from "./steps.js";

/**
 * A number as JSON text, where JavaScript's number is another value or of another kind: 10.0, 1e22,
 * 12345678901234567890.
 */
export class JsonNumber {
  constructor(readonly text: string) {}

  /** Whether Python reads a float. */
  get isFloat(): boolean {
    return /[.e]/i.test(this.text);
  }
}

/** What JavaScript's values of an array or object lose of its text. */
interface WrittenForm {
  /** The keys in their order; integer-like ones move to the front in an object. */
  readonly keys: readonly string[];
  /** By key or index. */
  readonly numbers: ReadonlyMap<string | number, JsonNumber>;
}

/** The forms of parsed arrays and objects that lose something. */
const writtenForms = new WeakMap<object, WrittenForm>();

/** What a text without lossy numbers and keys does not contain. */
const MAYBE_LOSSY = /\d{16}|\d[.eE]|"[\d\\][^"]*"\s*:/;

/**
 * Parses JSON to plain values, and remembers what they lose: `jsonEntries`, `jsonItems` and
 * `stringifyJson` return numbers and the order of keys as they are written. @throws SyntaxError for
 * text that is not JSON.
 */
export function parseLosslessJson(text: string): unknown {
  return runSteps(parseLosslessJsonSteps(text));
}

/** Does what `parseLosslessJson` does, in steps. */
export function* parseLosslessJsonSteps(text: string): Steps<unknown> {
  const value: unknown = JSON.parse(text);
  if (!MAYBE_LOSSY.test(text)) return value;
  yield;
  yield* recordForms(text, value);
  return value;
}

/**
 * Returns the entries of an object in the order of its text, with numbers that JavaScript changes
 * as `JsonNumber`.
 */
export function jsonEntries(object: object): [key: string, value: unknown][] {
  const form = writtenForms.get(object);
  if (form === undefined) return Object.entries(object);
  const keys = new Set([...form.keys.filter((key) => Object.hasOwn(object, key)), ...Object.keys(object)]);
  return Array.from(keys, (key) => [key, asWritten(form, key, (object as Record<string, unknown>)[key])]);
}

/** Returns the items of an array, with numbers that JavaScript changes as `JsonNumber`. */
export function jsonItems(array: readonly unknown[]): readonly unknown[] {
  const form = writtenForms.get(array);
  return form === undefined ? array : array.map((item, i) => asWritten(form, i, item));
}

/**
 * Gives a copy of a parsed object, whose entries may be others, what is remembered of the object.
 */
export function keepWrittenForm<Copy extends object>(copy: Copy, object: object): Copy {
  const form = writtenForms.get(object);
  if (form !== undefined) writtenForms.set(copy, form);
  return copy;
}

/**
 * Formats a value as JSON.stringify does, with numbers and keys as `parseLosslessJson` read them.
 */
export function stringifyJson(value: unknown, separators: readonly [item: string, key: string] = [",", ":"]): string {
  const [itemSeparator, keySeparator] = separators;
  if (value instanceof JsonNumber) return value.text;
  if (Array.isArray(value)) {
    let items = "";
    for (const item of jsonItems(value))
      items += (items === "" ? "" : itemSeparator) + stringifyJson(item ?? null, separators);
    return `[${items}]`;
  }
  if (!isJsonObject(value)) return JSON.stringify(value);
  const members = jsonEntries(value)
    .filter(([, member]) => member !== undefined)
    .map(([key, member]) => JSON.stringify(key) + keySeparator + stringifyJson(member, separators));
  return `{${members.join(itemSeparator)}}`;
}

/** A value may have been replaced since it was parsed. */
function asWritten({ numbers }: WrittenForm, key: string | number, value: unknown): unknown {
  const number = numbers.get(key);
  return number !== undefined && Object.is(Number(number.text), value) ? number : value;
}

/** An array or object whose text is being read. */
interface OpenContainer {
  readonly value: unknown;
  readonly isArray: boolean;
  readonly keys: Set<string>;
  readonly numbers: Map<string | number, JsonNumber>;
  /**
   * Key or index of the member that is being read; undefined before the key of an object's member.
   */
  key: string | number | undefined;
}

const NUMBER = /[-+.\deE]+/y;

/** Parts of a text that are read in one step. */
const PARTS_PER_STEP = 4096;

/** Reads valid JSON next to its value. Not recursive, for untrusted JSON. */
function* recordForms(text: string, root: unknown): Steps<void> {
  const open: OpenContainer[] = [];
  for (let i = 0, parts = 1; i < text.length; i++, parts++) {
    if (parts % PARTS_PER_STEP === 0) yield;
    const container = open.at(-1);
    const character = text[i];
    if (character === "{" || character === "[") {
      const value = container === undefined ? root : memberOf(container);
      const isArray = character === "[";
      open.push({ value, isArray, keys: new Set(), numbers: new Map(), key: isArray ? 0 : undefined });
    } else if (character === "}" || character === "]") {
      saveForm(open.pop()!);
    } else if (character === ",") {
      container!.key = container!.isArray ? (container!.key as number) + 1 : undefined;
    } else if (character === '"') {
      const end = findStringEnd(text, i);
      if (container !== undefined && container.key === undefined) {
        const key = JSON.parse(text.slice(i, end + 1)) as string;
        container.key = key;
        container.keys.add(key);
      }
      i = end;
    } else if (character === "-" || (character >= "0" && character <= "9")) {
      NUMBER.lastIndex = i;
      const [number] = NUMBER.exec(text)!;
      if (container !== undefined) recordNumber(container, number);
      i += number.length - 1;
    }
  }
}

/**
 * Returns the value of the member that is being read; undefined where a later member of the same
 * name replaced it.
 */
function memberOf({ value, key }: OpenContainer): unknown {
  return typeof value === "object" && value !== null ? (value as Record<string | number, unknown>)[key!] : undefined;
}

function recordNumber({ numbers, key }: OpenContainer, text: string): void {
  const value = Number(text);
  const number = new JsonNumber(text);
  // What JavaScript reads as an integer is one in Python unless it is written as a float.
  if (number.isFloat ? Number.isInteger(value) || !Number.isFinite(value) : !Number.isSafeInteger(value))
    numbers.set(key!, number);
  else numbers.delete(key!);
}

function saveForm({ value, isArray, keys: written, numbers }: OpenContainer): void {
  if (typeof value !== "object" || value === null || Array.isArray(value) !== isArray) return;
  const keys = isArray ? [] : [...written];
  const isOrdered = isArray || Object.keys(value).every((key, i) => key === keys[i]);
  if (numbers.size > 0 || !isOrdered) writtenForms.set(value, { keys: isOrdered ? [] : keys, numbers });
  else writtenForms.delete(value);
}
