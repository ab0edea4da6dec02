import { bindArguments } from "./bind-arguments.js";
import { unmarked } from "./content-marks.js";
import { compare, contains, isEqual, isSame } from "./comparison.js";
import { findLength, isIterable } from "./iteration.js";
import { asInt } from "./numbers.js";
import { applyOperator } from "./operators.js";
import { toPythonString } from "./python-text.js";
import { characterTests } from "./string-tests.js";
import { templateFilters, unsupportedFilters } from "./template-filters.js";
import { PythonDict, DictView, toHashable } from "./dict.js";
import { type CallArguments, Float, Lazy, Markup, PythonObject, Undefined, type Value, asString } from "./values.js";

type Test = (value: Value, args: CallArguments) => boolean;

/** Creates a test without parameters. */
const plain = (test: (value: Value) => boolean): Test => {
  return (value, args) => {
    bindArguments([], 0, args);
    return test(value);
  };
};

/** Creates a test with one parameter. */
const withOther = (name: string, test: (value: Value, other: Value) => boolean): Test => {
  return (value, args) => {
    const [other = null] = bindArguments([name], 1, args);
    return test(value, other);
  };
};

const remainder = (value: Value, divisor: Value): Value => applyOperator("%", value, divisor);
const isCallable = (value: Value) =>
  typeof value === "function" ||
  value instanceof Undefined ||
  (value instanceof PythonObject && value.call !== undefined);

function isSequence(value: Value): boolean {
  return findLength(value) !== undefined && !(value instanceof DictView) && !(value instanceof Lazy);
}

/** Whether a value is a name of a table. @throws for a value that cannot be a key. */
function hasKey(value: Value, table: { has(name: string): boolean }): boolean {
  const key = toHashable(value);
  return typeof key === "string" && table.has(key);
}

const hasCase = (name: "isupper" | "islower") =>
  plain((value) => characterTests.get(name)?.(unmarked(toPythonString(value))) ?? false);
const alias = (names: readonly string[], test: Test) => names.map((name): [string, Test] => [name, test]);
const ordered = (operator: string, accept: (sign: number) => boolean) =>
  withOther("other", (value, other) => accept(compare(value, other, operator)));

/** Tests for `is` and `select` with Jinja's behavior. */
export const templateTests: ReadonlyMap<string, Test> = new Map<string, Test>([
  ["defined", plain((value) => !(value instanceof Undefined))],
  ["undefined", plain((value) => value instanceof Undefined)],
  ["none", plain((value) => value === null)],
  ["string", plain((value) => asString(value) !== undefined)],
  ["mapping", plain((value) => value instanceof PythonDict)],
  ["iterable", plain(isIterable)],
  ["sequence", plain(isSequence)],
  ["number", plain((value) => asInt(value) !== undefined || value instanceof Float)],
  ["integer", plain((value) => asInt(value) !== undefined && typeof value !== "boolean")],
  ["float", plain((value) => value instanceof Float)],
  ["boolean", plain((value) => typeof value === "boolean")],
  ["true", plain((value) => value === true)],
  ["false", plain((value) => value === false)],
  ["callable", plain(isCallable)],
  ["escaped", plain((value) => value instanceof Markup)],
  ["odd", plain((value) => isEqual(remainder(value, 2), 1))],
  ["even", plain((value) => isEqual(remainder(value, 2), 0))],
  ["divisibleby", withOther("num", (value, divisor) => isEqual(remainder(value, divisor), 0))],
  ["lower", hasCase("islower")],
  ["upper", hasCase("isupper")],
  ["filter", plain((value) => hasKey(value, templateFilters) || hasKey(value, unsupportedFilters))],
  ["test", plain((value) => hasKey(value, templateTests))],
  ["sameas", withOther("other", isSame)],
  ["in", withOther("seq", (value, container) => contains(container, value))],
  ...alias(["eq", "equalto", "=="], withOther("other", isEqual)),
  ...alias(
    ["ne", "!="],
    withOther("other", (value, other) => !isEqual(value, other)),
  ),
  ...alias(
    ["lt", "lessthan", "<"],
    ordered("<", (sign) => sign < 0),
  ),
  ...alias(
    ["le", "<="],
    ordered("<=", (sign) => sign <= 0),
  ),
  ...alias(
    ["gt", "greaterthan", ">"],
    ordered(">", (sign) => sign > 0),
  ),
  ...alias(
    ["ge", ">="],
    ordered(">=", (sign) => sign >= 0),
  ),
]);
