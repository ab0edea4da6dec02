import type { Value } from "@huggingface/jinja";

import { compare, contains } from "./operators.js";
import { contentOf, dictEntries, equal, isUndefined, listItems, numberOf, stringOf } from "./values.js";

type Test = (value: Value, other: Value | undefined) => boolean;

const same: Test = (value, other) => other !== undefined && equal(value, other);
const order = (accept: (sign: number) => boolean): Test => {
  return (value, other) => other !== undefined && accept(compare(value, other));
};
const iterable: Test = (value) =>
  stringOf(value) !== undefined || listItems(value) !== undefined || value.type === "ObjectValue" || isUndefined(value);

/** The tests that may follow `is` in a template, or name a test in `select`, with Jinja's behaviour. */
export const templateTests: ReadonlyMap<string, Test> = new Map<string, Test>([
  ["defined", (value) => !isUndefined(value)],
  ["undefined", isUndefined],
  ["none", (value) => value.type === "NullValue"],
  ["string", (value) => stringOf(value) !== undefined],
  ["mapping", (value) => value.type === "ObjectValue"],
  ["iterable", iterable],
  ["sequence", iterable],
  ["number", (value) => numberOf(value) !== undefined],
  ["integer", (value) => contentOf(value, "IntegerValue") !== undefined],
  ["float", (value) => contentOf(value, "FloatValue") !== undefined],
  ["boolean", (value) => value.type === "BooleanValue"],
  ["true", (value) => contentOf(value, "BooleanValue") === true],
  ["false", (value) => contentOf(value, "BooleanValue") === false],
  ["callable", (value) => value.type === "FunctionValue"],
  ["odd", (value) => Math.abs((numberOf(value) ?? 0) % 2) === 1],
  ["even", (value) => (numberOf(value) ?? 1) % 2 === 0],
  ["lower", (value) => isCased(value) && stringOf(value) === stringOf(value)?.toLowerCase()],
  ["upper", (value) => isCased(value) && stringOf(value) === stringOf(value)?.toUpperCase()],
  ["eq", same],
  ["equalto", same],
  ["==", same],
  ["sameas", same],
  ["ne", (value, other) => !same(value, other)],
  ["!=", (value, other) => !same(value, other)],
  ["in", (value, other) => other !== undefined && contains(other, value)],
  ["lt", order((sign) => sign < 0)],
  ["lessthan", order((sign) => sign < 0)],
  ["le", order((sign) => sign <= 0)],
  ["gt", order((sign) => sign > 0)],
  ["greaterthan", order((sign) => sign > 0)],
  ["ge", order((sign) => sign >= 0)],
  ["divisibleby", (value, other) => (numberOf(value) ?? 1) % (numberOf(other) ?? 0) === 0],
]);

function isCased(value: Value): boolean {
  const text = stringOf(value) ?? "";
  return text.toLowerCase() !== text.toUpperCase() && dictEntries(value) === undefined;
}
