import { unmarked } from "./content-marks.js";
import { spendItems, spendSteps } from "./limits.js";
import { toPythonString } from "./python-text.js";
import { strftime } from "./strftime.js";
import {
  type CallArguments,
  Namespace,
  Undefined,
  type Value,
  asNumber,
  dictEntries,
  iterate,
  toValue,
} from "./values.js";

/** Thrown by raise_exception(message) in a template. */
export class TemplateError extends Error {}

/** Maximum length of range(), as in Jinja's sandbox. */
const MAX_RANGE_LENGTH = 100_000;

/** The variables of a block, with those of the enclosing blocks. */
export class Scope {
  private readonly variables = new Map<string, Value>();

  constructor(private readonly parent?: Scope) {}

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

/** Creates the global scope of a template: constants, functions and the given variables. */
export function createGlobalScope(variables: Readonly<Record<string, unknown>>, now: () => Date): Scope {
  const scope = new Scope();
  const globals: Record<string, Value> = {
    true: true,
    True: true,
    false: false,
    False: false,
    none: null,
    None: null,
    raise_exception: ({ positional: [message] }) => {
      throw new TemplateError(message === undefined ? "" : unmarked(toPythonString(message)));
    },
    strftime_now: ({ positional: [format = ""] }) => {
      const text = unmarked(toPythonString(format));
      spendSteps(text.length);
      return strftime(now(), text);
    },
    range: createRange,
    dict: createDict,
    namespace: (args) => new Namespace(createDict(args)),
  };
  for (const [name, value] of Object.entries(globals)) scope.set(name, value);
  for (const [name, content] of Object.entries(variables)) scope.set(name, toValue(content));
  return scope;
}

function createRange({ positional }: CallArguments): Value {
  const numbers = positional.map(asNumber);
  if (numbers.length === 0 || !numbers.every(Number.isSafeInteger)) throw new Error("range() takes integers");
  const [start = 0, stop = 0, step = 1] = numbers.length === 1 ? [0, numbers[0]] : numbers;
  if (step === 0) throw new Error("range() step must not be zero");
  const count = Math.max(0, Math.ceil((stop - start) / step));
  if (count > MAX_RANGE_LENGTH)
    throw new Error(`Range too big. The sandbox blocks ranges larger than ${MAX_RANGE_LENGTH}.`);
  spendItems(count);
  return Array.from({ length: count }, (_, i) => start + i * step);
}

function createDict({ positional, named }: CallArguments): Map<string, Value> {
  const entries = new Map<string, Value>();
  for (const arg of positional) {
    const pairs = dictEntries(arg) ?? iterate(arg).map(iterate);
    for (const [key, value] of pairs) {
      spendItems(1);
      entries.set(toPythonString(key), value);
    }
  }
  named.forEach((value, name) => entries.set(name, value));
  return entries;
}

/** Creates the variable `loop` of an iteration. */
export function createLoopVariables(items: readonly Value[], index: number): Value {
  const count = items.length;
  return new Map<string, Value>([
    ["index", index + 1],
    ["index0", index],
    ["revindex", count - index],
    ["revindex0", count - index - 1],
    ["first", index === 0],
    ["last", index === count - 1],
    ["length", count],
    ["previtem", items[index - 1] ?? new Undefined("there is no previous item")],
    ["nextitem", items[index + 1] ?? new Undefined("there is no next item")],
    ["cycle", ({ positional }) => positional[index % positional.length] ?? new Undefined("no items for cycling given")],
  ]);
}
