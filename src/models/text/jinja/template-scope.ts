import { bindArguments } from "./bind-arguments.js";
import { marked, unmarked } from "./content-marks.js";
import { PythonDict } from "./dict.js";
import { iterate } from "./iteration.js";
import { spendItems, spendSteps } from "./limits.js";
import { toNamed } from "./members.js";
import { asInt } from "./numbers.js";
import { toPythonString } from "./python-text.js";
import { strftime } from "./strftime.js";
import { toValue } from "./to-value.js";
import { type CallArguments, Namespace, PythonObject, PythonRange, Undefined, type Value } from "./values.js";

/** Thrown by raise_exception(message) in a template. */
export class TemplateError extends Error {}

/** Maximum length of range(), as in Jinja's sandbox. */
const MAX_RANGE_LENGTH = 100_000;

/** The variables of a block, with those of the enclosing blocks. */
export class Scope {
  private readonly variables = new Map<string, Value>();

  /** `hidden` names are undefined until they are set. */
  constructor(
    readonly parent?: Scope,
    hidden: ReadonlySet<string> = new Set(),
  ) {
    for (const name of hidden) this.set(name, new Undefined(`'${name}' is undefined`));
  }

  get(name: string): Value {
    let value = this.variables.get(name);
    for (let scope = this.parent; value === undefined && scope; scope = scope.parent) {
      spendSteps(1);
      value = scope.variables.get(name);
    }
    return value === undefined ? new Undefined(`'${name}' is undefined`) : value;
  }

  set(name: string, value: Value): void {
    this.variables.set(name, value);
  }
}

/** Creates the scope of functions and the given variables, which enclose a template's own. */
export function createGlobalScope(variables: Readonly<Record<string, unknown>>, now: () => Date): Scope {
  const scope = new Scope();
  const globals: Record<string, Value> = {
    raise_exception: (args) => {
      const [message = ""] = bindArguments(["message"], 1, args);
      throw new TemplateError(unmarked(toPythonString(message)));
    },
    strftime_now: (args) => {
      const [format = ""] = bindArguments(["format"], 1, args);
      const text = unmarked(toPythonString(format));
      spendSteps(text.length);
      return strftime(now(), text);
    },
    range: createRange,
    dict: createDict,
    namespace: (args) => new Namespace(toNamed(createDict(args))),
    cycler: ({ positional }) => new Cycler(positional),
    joiner: (args) => {
      const [separator = ", "] = bindArguments(["sep"], 0, args);
      return new Joiner(separator);
    },
  };
  for (const [name, value] of Object.entries(globals)) scope.set(name, value);
  for (const [name, content] of Object.entries(variables)) if (content !== undefined) scope.set(name, toValue(content));
  return scope;
}

function createRange({ positional, named }: CallArguments): Value {
  const numbers = positional.map(asInt);
  if (named.size > 0 || numbers.length === 0 || numbers.length > 3 || numbers.includes(undefined))
    throw new Error("range() takes 1 to 3 integers");
  const bounds = numbers.map(Number);
  const [start, stop, step = 1] = bounds.length === 1 ? [0, bounds[0]] : bounds;
  if (step === 0) throw new Error("range() arg 3 must not be zero");
  const range = new PythonRange(start, stop, step);
  if (range.length > MAX_RANGE_LENGTH)
    throw new Error(`Range too big. The sandbox blocks ranges larger than ${MAX_RANGE_LENGTH}.`);
  return range;
}

function createDict({ positional, named }: CallArguments): PythonDict {
  if (positional.length > 1) throw new Error(`dict expected at most 1 argument, got ${positional.length}`);
  const [source = []] = positional;
  const dict = new PythonDict();
  if (source instanceof Namespace) throw new Error("'Namespace' object is not iterable");
  for (const pair of source instanceof PythonDict ? source.entries() : iterate(source).map(iterate)) {
    if (pair.length !== 2)
      throw new Error(`dictionary update sequence element has length ${pair.length}; 2 is required`);
    spendItems(1);
    dict.set(pair[0], pair[1]);
  }
  named.forEach((value, name) => dict.set(marked(name), value));
  return dict;
}

/** `cycler(...)`: values in turn. */
class Cycler extends PythonObject {
  readonly type = "Cycler";
  private position = 0;

  constructor(private readonly items: readonly Value[]) {
    super();
    if (items.length === 0) throw new Error("at least one item has to be provided");
  }

  override getAttribute(name: string): Value | undefined {
    switch (name) {
      case "current":
        return this.items[this.position];
      case "pos":
        return this.position;
      case "items":
        return [...this.items];
      case "next":
        return () => {
          const current = this.items[this.position];
          this.position = (this.position + 1) % this.items.length;
          return current;
        };
      case "reset":
        return () => {
          this.position = 0;
          return null;
        };
      default:
        return undefined;
    }
  }
}

/** `joiner(sep)`: nothing at the first call, then the separator. */
class Joiner extends PythonObject {
  readonly type = "Joiner";
  private isUsed = false;

  constructor(private readonly separator: Value) {
    super();
  }

  override readonly call = (): Value => {
    const result = this.isUsed ? this.separator : "";
    this.isUsed = true;
    return result;
  };

  override getAttribute(name: string): Value | undefined {
    return name === "sep" ? this.separator : name === "used" ? this.isUsed : undefined;
  }
}
