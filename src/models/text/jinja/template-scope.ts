import { Environment, type Value } from "@huggingface/jinja";

import { toPythonString } from "./python-text.js";
import { strftime } from "./strftime.js";
import { getContent, dictEntries, dictValue, functionValue, iterate, listValue, asNumber, toValue } from "./values.js";

/** Thrown by raise_exception(message) in a template. */
export class TemplateError extends Error {}

/** Maximum length of range(), as in Jinja's sandbox. */
const MAX_RANGE_LENGTH = 100_000;

/** Creates the global scope of a template: constants, functions and the given variables. */
export function createTemplateScope(variables: Readonly<Record<string, unknown>>, now: () => Date): Environment {
  const scope = new Environment();
  const constants = { true: true, True: true, false: false, False: false, none: null, None: null };
  for (const [name, content] of Object.entries(constants)) scope.set(name, content);
  const functions: Record<string, (args: Value[]) => Value> = {
    raise_exception: (args) => {
      throw new TemplateError(args[0] ? toPythonString(args[0]) : "");
    },
    strftime_now: ([format]) => toValue(strftime(now(), format ? toPythonString(format) : "")),
    range: createRange,
    dict: createDict,
  };
  for (const [name, content] of Object.entries(functions)) scope.setVariable(name, functionValue(content));
  for (const [name, content] of Object.entries(variables)) scope.setVariable(name, toValue(content));
  return scope;
}

function createRange(args: Value[]): Value {
  const numbers = args.map((arg) => getContent(arg, "IntegerValue"));
  if (numbers.length === 0 || numbers.some((number) => number === undefined)) {
    throw new Error("range() takes integers");
  }
  const [start, stop] = numbers.length === 1 ? [0, asNumber(args[0]) ?? 0] : [numbers[0] ?? 0, numbers[1] ?? 0];
  const step = numbers[2] ?? 1;
  if (step === 0) throw new Error("range() step must not be zero");
  const count = Math.max(0, Math.ceil((stop - start) / step));
  if (count > MAX_RANGE_LENGTH)
    throw new Error(`Range too big. The sandbox blocks ranges larger than ${MAX_RANGE_LENGTH}.`);
  return listValue(Array.from({ length: count }, (_, i) => toValue(start + i * step)));
}

function createDict(args: Value[]): Value {
  const entries = new Map<string, Value>();
  for (const arg of args) {
    const own = dictEntries(arg);
    if (own) own.forEach((value, key) => entries.set(key, value));
    else for (const [key, value] of iterate(arg).map(iterate)) entries.set(toPythonString(key), value);
  }
  return dictValue(entries);
}
