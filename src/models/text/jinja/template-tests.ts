import type { Value } from "@huggingface/jinja";

import { compare, contains } from "./operators.js";
import { getContent, dictEntries, isEqual, isUndefined, listItems, asNumber, asString } from "./values.js";

type Test = (value: Value, other: Value | undefined) => boolean;

const isSame: Test = (value, other) => other !== undefined && isEqual(value, other);
const compareWith = (accept: (sign: number) => boolean): Test => {
  return (value, other) => other !== undefined && accept(compare(value, other));
};
const isIterable: Test = (value) =>
  asString(value) !== undefined || listItems(value) !== undefined || value.type === "ObjectValue" || isUndefined(value);

/** Tests for `is` and `select` with Jinja's behavior. */
export const templateTests: ReadonlyMap<string, Test> = new Map<string, Test>([
  ["defined", (value) => !isUndefined(value)],
  ["undefined", isUndefined],
  ["none", (value) => value.type === "NullValue"],
  ["string", (value) => asString(value) !== undefined],
  ["mapping", (value) => value.type === "ObjectValue"],
  ["iterable", isIterable],
  ["sequence", isIterable],
  ["number", (value) => asNumber(value) !== undefined],
  ["integer", (value) => getContent(value, "IntegerValue") !== undefined],
  ["float", (value) => getContent(value, "FloatValue") !== undefined],
  ["boolean", (value) => value.type === "BooleanValue"],
  ["true", (value) => getContent(value, "BooleanValue") === true],
  ["false", (value) => getContent(value, "BooleanValue") === false],
  ["callable", (value) => value.type === "FunctionValue"],
  ["odd", (value) => Math.abs((asNumber(value) ?? 0) % 2) === 1],
  ["even", (value) => (asNumber(value) ?? 1) % 2 === 0],
  ["lower", (value) => isCased(value) && asString(value) === asString(value)?.toLowerCase()],
  ["upper", (value) => isCased(value) && asString(value) === asString(value)?.toUpperCase()],
  ["eq", isSame],
  ["equalto", isSame],
  ["==", isSame],
  ["sameas", isSame],
  ["ne", (value, other) => !isSame(value, other)],
  ["!=", (value, other) => !isSame(value, other)],
  ["in", (value, other) => other !== undefined && contains(other, value)],
  ["lt", compareWith((sign) => sign < 0)],
  ["lessthan", compareWith((sign) => sign < 0)],
  ["le", compareWith((sign) => sign <= 0)],
  ["gt", compareWith((sign) => sign > 0)],
  ["greaterthan", compareWith((sign) => sign > 0)],
  ["ge", compareWith((sign) => sign >= 0)],
  ["divisibleby", (value, other) => (asNumber(value) ?? 1) % (asNumber(other) ?? 0) === 0],
]);

function isCased(value: Value): boolean {
  const text = asString(value) ?? "";
  return text.toLowerCase() !== text.toUpperCase() && dictEntries(value) === undefined;
}
