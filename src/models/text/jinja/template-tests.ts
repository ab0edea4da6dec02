import { unmarked } from "./content-marks.js";
import { contains } from "./operators.js";
import { Float, Undefined, type Value, asNumber, asString, compare, isEqual, listItems } from "./values.js";

type Test = (value: Value, other: Value | undefined) => boolean;

const isDefined: Test = (value) => !(value instanceof Undefined);
const isSame: Test = (value, other) => other !== undefined && isEqual(value, other);
const compareWith = (accept: (sign: number) => boolean): Test => {
  return (value, other) => other !== undefined && accept(compare(value, other));
};
const isIterable: Test = (value) =>
  typeof value === "string" || listItems(value) !== undefined || value instanceof Map || value instanceof Undefined;
const isCasedAs = (convert: (text: string) => string): Test => {
  return (value) => {
    const text = unmarked(asString(value) ?? "");
    return text.toLowerCase() !== text.toUpperCase() && text === convert(text);
  };
};

/** Tests for `is` and `select` with Jinja's behavior. */
export const templateTests: ReadonlyMap<string, Test> = new Map<string, Test>([
  ["defined", isDefined],
  ["undefined", (value) => value instanceof Undefined],
  ["none", (value) => value === null],
  ["string", (value) => typeof value === "string"],
  ["mapping", (value) => value instanceof Map],
  ["iterable", isIterable],
  ["sequence", isIterable],
  ["number", (value) => asNumber(value) !== undefined],
  ["integer", (value) => typeof value === "number"],
  ["float", (value) => value instanceof Float],
  ["boolean", (value) => typeof value === "boolean"],
  ["true", (value) => value === true],
  ["false", (value) => value === false],
  ["callable", (value) => typeof value === "function"],
  ["odd", (value) => Math.abs((asNumber(value) ?? 0) % 2) === 1],
  ["even", (value) => (asNumber(value) ?? 1) % 2 === 0],
  ["lower", isCasedAs((text) => text.toLowerCase())],
  ["upper", isCasedAs((text) => text.toUpperCase())],
  ...["eq", "equalto", "==", "sameas"].map((name) => [name, isSame] as const),
  ...["ne", "!="].map((name) => [name, (value: Value, other?: Value) => !isSame(value, other)] as const),
  ["in", (value, other) => other !== undefined && contains(other, value)],
  ...["lt", "lessthan", "<"].map((name) => [name, compareWith((sign) => sign < 0)] as const),
  ...["le", "<="].map((name) => [name, compareWith((sign) => sign <= 0)] as const),
  ...["gt", "greaterthan", ">"].map((name) => [name, compareWith((sign) => sign > 0)] as const),
  ...["ge", ">="].map((name) => [name, compareWith((sign) => sign >= 0)] as const),
  ["divisibleby", (value, other) => (asNumber(value) ?? 1) % (asNumber(other) ?? 0) === 0],
]);
