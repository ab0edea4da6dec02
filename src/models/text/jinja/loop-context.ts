import { isEqual } from "./comparison.js";
import { findLength, getIterator, iterate } from "./iteration.js";
import { Lazy, PythonObject, type TemplateFunction, PythonTuple, Undefined, type Value } from "./values.js";

/** The variable `loop`, which reads the items one ahead at most, as jinja2's LoopContext. */
export class LoopContext extends PythonObject {
  readonly type = "LoopContext";
  private index0 = -1;
  private iterator: Iterator<Value>;
  /** The next item once it was read; null after the last one. */
  private ahead: { readonly item: Value } | null | undefined;
  private current: Value | undefined;
  private before: Value | undefined;
  private count: number | undefined;
  private lastChanged: PythonTuple | undefined;

  constructor(
    private readonly iterable: Value,
    private readonly depth0: number,
    recurse: ((iterable: Value, depth: number) => Value) | undefined,
  ) {
    super();
    this.iterator = getIterator(iterable);
    this.call = ({ positional: [inner = null] }) => {
      if (!recurse) throw new Error("The loop must have the 'recursive' marker to be called recursively.");
      return recurse(inner, this.depth0 + 1);
    };
  }

  override readonly call: TemplateFunction;

  /** Returns the next item, or undefined after the last one. */
  next(): Value | undefined {
    const next = this.peek();
    if (next === null) return undefined;
    this.ahead = undefined;
    this.index0++;
    this.before = this.current;
    this.current = next.item;
    return next.item;
  }

  private peek(): { readonly item: Value } | null {
    if (this.ahead === undefined) {
      const next = this.iterator.next();
      this.ahead = next.done === true ? null : { item: next.value };
    }
    return this.ahead;
  }

  private get length(): number {
    if (this.count !== undefined) return this.count;
    const size = this.iterable instanceof Lazy ? undefined : findLength(this.iterable);
    if (size === undefined) {
      const rest = iterate(new Lazy(this.iterator));
      this.iterator = rest[Symbol.iterator]();
      this.count = rest.length + this.index0 + 1 + (this.ahead ? 1 : 0);
    }
    return (this.count ??= size ?? 0);
  }

  override getAttribute(name: string): Value | undefined {
    switch (name) {
      case "index":
        return this.index0 + 1;
      case "index0":
        return this.index0;
      case "revindex":
        return this.length - this.index0;
      case "revindex0":
        return this.length - this.index0 - 1;
      case "first":
        return this.index0 === 0;
      case "last":
        return this.peek() === null;
      case "length":
        return this.length;
      case "depth":
        return this.depth0 + 1;
      case "depth0":
        return this.depth0;
      case "previtem":
        return this.index0 === 0 ? new Undefined("there is no previous item") : this.before;
      case "nextitem": {
        const next = this.peek();
        return next === null ? new Undefined("there is no next item") : next.item;
      }
      case "cycle":
        return ({ positional }) => {
          if (positional.length === 0) throw new Error("no items for cycling given");
          return positional[this.index0 % positional.length];
        };
      case "changed":
        return ({ positional }) => this.changed(new PythonTuple(positional));
      case "__repr__":
        return `<LoopContext ${this.index0 + 1}/${this.length}>`;
      default:
        return undefined;
    }
  }

  private changed(values: PythonTuple): boolean {
    if (this.lastChanged && isEqual(this.lastChanged, values)) return false;
    this.lastChanged = values;
    return true;
  }
}
