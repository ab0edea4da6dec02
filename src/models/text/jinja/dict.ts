import { unmarked } from "./content-marks.js";
import { spendItems } from "./limits.js";
import { Float, Markup, PythonObject, PythonTuple, Undefined, type Value, getPythonType, isList } from "./values.js";

/** A dictionary: keys are equal as in Python (1, 1.0 and True are one key) and keep their order. */
export class PythonDict extends PythonObject {
  readonly type = "dict";
  private readonly map = new Map<unknown, [key: Value, value: Value]>();

  constructor(entries: Iterable<readonly [key: Value, value: Value]> = []) {
    super();
    for (const [key, value] of entries) this.set(key, value);
  }

  override isTruthy(): boolean {
    return this.map.size > 0;
  }

  get size(): number {
    return this.map.size;
  }

  /** Returns an entry's value, or undefined. @throws for a key that cannot be hashed. */
  get(key: Value): Value | undefined {
    return this.map.get(toHashable(key))?.[1];
  }

  has(key: Value): boolean {
    return this.map.has(toHashable(key));
  }

  /** Sets an entry; a key that is there keeps its place and its first form. */
  set(key: Value, value: Value): this {
    const hash = toHashable(key);
    const entry = this.map.get(hash);
    if (entry) entry[1] = value;
    else this.map.set(hash, [key, value]);
    return this;
  }

  keys(): Value[] {
    return this.entries().map(([key]) => key);
  }

  values(): Value[] {
    return this.entries().map(([, value]) => value);
  }

  entries(): [key: Value, value: Value][] {
    spendItems(this.map.size);
    return Array.from(this.map.values());
  }
}

const viewTypes = { keys: "dict_keys", values: "dict_values", items: "dict_items" } as const;

/** What keys(), values() and items() return. */
export class DictView extends PythonObject {
  readonly type: string;

  constructor(
    readonly dict: PythonDict,
    readonly kind: keyof typeof viewTypes,
  ) {
    super();
    this.type = viewTypes[kind];
  }

  override isTruthy(): boolean {
    return this.dict.size > 0;
  }

  toArray(): Value[] {
    if (this.kind === "items") return this.dict.entries().map((entry) => new PythonTuple(entry));
    return this.kind === "keys" ? this.dict.keys() : this.dict.values();
  }
}

const undefinedKey = Symbol("Undefined");

/**
 * Returns a JavaScript value that is the same for values that are equal in Python. @throws for a
 * list or dictionary.
 */
export function toHashable(value: Value): unknown {
  if (typeof value === "string") return unmarked(value);
  if (typeof value === "boolean") return Number(value);
  if (value instanceof Float) return hashFloat(value.value);
  if (value instanceof Markup) return unmarked(value.text);
  if (value instanceof Undefined) return undefinedKey;
  if (value instanceof PythonTuple) return Symbol.for(value.items.map(describeHash).join(","));
  if (isList(value) || value instanceof PythonDict) throw new Error(`unhashable type: '${getPythonType(value)}'`);
  return value;
}

function hashFloat(number: number): unknown {
  return Number.isInteger(number) && !Number.isSafeInteger(number) ? BigInt(number) : number + 0;
}

/** Objects of a tuple that are equal only to themselves. */
const objectNumbers = new WeakMap<object, number>();
let objectCount = 0;

function describeHash(value: Value): string {
  const hash = toHashable(value);
  if (typeof hash === "string") return JSON.stringify(hash);
  if (typeof hash === "symbol") return `(${String(hash.description)})`;
  if ((typeof hash !== "object" && typeof hash !== "function") || hash === null) return String(hash);
  const number = objectNumbers.get(hash) ?? objectCount++;
  objectNumbers.set(hash, number);
  return `#${number}`;
}
