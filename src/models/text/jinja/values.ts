import { unmarked } from "./content-marks.js";
import { spendItems, spendText } from "./limits.js";

/**
 * A template value: None, booleans and strings are JavaScript's; integers are numbers, or bigints
 * beyond 2^53; lists are arrays; everything else is a PythonObject.
 */
export type Value = null | boolean | number | bigint | string | readonly Value[] | PythonObject | TemplateFunction;

/** Arguments of a call in a template. */
export interface CallArguments {
  readonly positional: readonly Value[];
  readonly named: ReadonlyMap<string, Value>;
}

export type TemplateFunction = (args: CallArguments) => Value;

/** A value with a Python type of its own. */
export abstract class PythonObject {
  /** Python's name of the type. */
  abstract readonly type: string;

  isTruthy(): boolean {
    return true;
  }

  /** Calls the object; undefined for an object that cannot be called. */
  readonly call?: TemplateFunction;

  /** Returns an attribute, or undefined. */
  getAttribute(_name: string): Value | undefined {
    return undefined;
  }
}

export class Float extends PythonObject {
  readonly type = "float";

  constructor(readonly value: number) {
    super();
  }

  override isTruthy(): boolean {
    return this.value !== 0;
  }
}

/** A tuple; `names` name the items of a named tuple. */
export class PythonTuple extends PythonObject {
  readonly type = "tuple";

  constructor(
    readonly items: readonly Value[],
    private readonly names: readonly string[] = [],
  ) {
    super();
  }

  override isTruthy(): boolean {
    return this.items.length > 0;
  }

  override getAttribute(name: string): Value | undefined {
    const index = this.names.indexOf(name);
    return index < 0 ? undefined : this.items[index];
  }
}

/** Escaped text, which escapes what is added to it: MarkupSafe's Markup. */
export class Markup extends PythonObject {
  readonly type = "Markup";

  constructor(readonly text: string) {
    super();
  }

  override isTruthy(): boolean {
    return this.text !== "";
  }
}

export class Bytes extends PythonObject {
  readonly type = "bytes";

  constructor(readonly bytes: Uint8Array) {
    super();
  }

  override isTruthy(): boolean {
    return this.bytes.length > 0;
  }
}

/** Mutable attributes: `namespace()`. */
export class Namespace extends PythonObject {
  readonly type = "Namespace";

  constructor(readonly entries: Map<string, Value>) {
    super();
  }

  override getAttribute(name: string): Value | undefined {
    return this.entries.get(name);
  }
}

/** The integers of `range()`. */
export class PythonRange extends PythonObject {
  readonly type = "range";
  readonly length: number;

  constructor(
    readonly start: number,
    readonly stop: number,
    readonly step: number,
  ) {
    super();
    this.length = Math.max(0, Math.ceil((stop - start) / step));
  }

  override isTruthy(): boolean {
    return this.length > 0;
  }

  override getAttribute(name: string): Value | undefined {
    return name === "start" || name === "stop" || name === "step" ? this[name] : undefined;
  }

  at(index: number): number {
    return this.start + index * this.step;
  }

  toArray(): number[] {
    spendItems(this.length);
    return Array.from({ length: this.length }, (_, i) => this.at(i));
  }
}

/** A generator or another iterator: items are computed as they are read, and once. */
export class Lazy extends PythonObject {
  constructor(
    readonly iterator: Iterator<Value>,
    readonly type: string = "generator",
  ) {
    super();
  }
}

/** An undefined name or member; using it raises the message. */
export class Undefined extends PythonObject {
  readonly type = "Undefined";

  constructor(readonly message = "a value is undefined") {
    super();
  }

  override isTruthy(): boolean {
    return false;
  }
}

/** Throws when a value is undefined. */
export function requireDefined(value: Value): void {
  if (value instanceof Undefined) throw new Error(value.message);
}

/** Returns the text of a string or Markup, or undefined. */
export function asString(value: Value | undefined): string | undefined {
  return typeof value === "string" ? value : value instanceof Markup ? value.text : undefined;
}

/** Returns the text of a string or Markup without content marks, or undefined. */
export function asPlainString(value: Value | undefined): string | undefined {
  const text = asString(value);
  return text === undefined ? undefined : unmarked(text);
}

/** Returns the items of a list or tuple, or undefined. */
export function listItems(value: Value | undefined): readonly Value[] | undefined {
  return value instanceof PythonTuple ? value.items : isList(value) ? value : undefined;
}

export function isList(value: Value | undefined): value is readonly Value[] {
  return Array.isArray(value);
}

export function isTruthy(value: Value): boolean {
  if (typeof value !== "object" || value === null) return Boolean(value);
  return isList(value) ? value.length > 0 : value.isTruthy();
}

/** Returns the first value that is there; unlike ??, None counts as there. */
export function firstFound(...candidates: readonly (() => Value | undefined)[]): Value | undefined {
  for (const find of candidates) {
    const value = find();
    if (value !== undefined) return value;
  }
  return undefined;
}

/** Returns a text as Markup where the value that it comes from is Markup. */
export function mapText(value: Value, text: string): Value {
  return value instanceof Markup ? new Markup(text) : text;
}

/** Returns what a call of a value runs. @throws for what cannot be called. */
export function requireCallable(value: Value): TemplateFunction {
  requireDefined(value);
  const callee = value instanceof PythonObject ? value.call : value;
  if (typeof callee !== "function") throw new Error(`'${getPythonType(value)}' object is not callable`);
  return callee;
}

/** Accounts for reading or creating a value. */
export function measure(value: Value): void {
  if (typeof value === "string") spendText(value.length);
  else if (isList(value)) spendItems(value.length);
  else if (value instanceof PythonTuple) spendItems(value.items.length);
  else if (value instanceof Markup) spendText(value.text.length);
}

/** Calls a function and accounts for its arguments and result. */
export function callMeasured(fn: TemplateFunction, args: CallArguments): Value {
  args.positional.forEach(measure);
  args.named.forEach(measure);
  const result = fn(args);
  measure(result);
  return result;
}

/** Returns Python's name of a value's type, for messages. */
export function getPythonType(value: Value): string {
  if (value === null) return "NoneType";
  if (isList(value)) return "list";
  if (value instanceof PythonObject) return value.type;
  return { string: "str", number: "int", bigint: "int", boolean: "bool" }[typeof value as string] ?? "function";
}
