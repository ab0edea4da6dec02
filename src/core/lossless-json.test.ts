import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  JsonNumber,
  jsonEntries,
  jsonItems,
  keepWrittenForm,
  parseLosslessJson,
  parseLosslessJsonSteps,
  stringifyJson,
} from "./lossless-json.js";

/** An object whose keys keep their order, a number with its text, or any other JSON. */
type Written =
  | readonly (readonly [string, Written])[]
  | { readonly number: string }
  | { readonly list: Written[] }
  | string;

const written = fc.letrec<{ value: Written }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    fc.oneof(fc.string(), fc.constant('a "b": 1.0, [{}]\\')),
    fc
      .constantFrom("0", "7", "-3", "10.0", "1e22", "1E-3", "0.5", "-0.0", "9007199254740993", "12345678901234567890")
      .map((number) => ({ number })),
    fc.array(tie("value"), { maxLength: 3 }).map((list) => ({ list })),
    fc.uniqueArray(fc.tuple(fc.oneof(fc.string(), fc.constantFrom("10", "2", "0")), tie("value")), {
      selector: ([key]) => key,
      maxLength: 4,
    }),
  ),
})).value;

/** Writes a value with the separators. */
function write(value: Written, [item, colon]: readonly [string, string]): string {
  if (typeof value === "string") return JSON.stringify(value);
  if ("number" in value) return value.number;
  if ("list" in value) return `[${value.list.map((each) => write(each, [item, colon])).join(item)}]`;
  return `{${value.map(([key, each]) => JSON.stringify(key) + colon + write(each, [item, colon])).join(item)}}`;
}

/** Numbers that JavaScript prints in another way are no others for Python. */
const normalize = (text: string) => text.replaceAll("1E-3", "0.001");

describe("parseLosslessJson", () => {
  it("returns the values of JSON.parse, of which stringifyJson writes the text", () => {
    fc.assert(
      fc.property(written, (member) => {
        const value = { list: [member] };
        const text = write(value, [" ,\n", " : "]);
        const parsed = parseLosslessJson(text);
        expect(parsed).toEqual(JSON.parse(text));
        expect(normalize(stringifyJson(parsed))).toBe(normalize(write(value, [",", ":"])));
      }),
    );
  });

  it("keeps the first position and the last value of a name that is written twice", () => {
    expect(stringifyJson(parseLosslessJson('{"2": {"x": 1.0}, "1": 2.0, "2": {"x": 1}}'))).toBe(
      '{"2":{"x":1},"1":2.0}',
    );
    expect(stringifyJson(parseLosslessJson('{"a": [1.0], "a": {"0": 1}, "a": 3}'))).toBe('{"a":3}');
  });

  it("reads a text that is nested deeper than the call stack", () => {
    const depth = 100_000;
    let value = parseLosslessJson(`${"[".repeat(depth)}1.0${"]".repeat(depth)}`);
    let levels = 0;
    for (; Array.isArray(value); levels++) [value] = jsonItems(value as unknown[]);
    expect([levels, value]).toEqual([depth, new JsonNumber("1.0")]);
  });

  it("follows changes of a parsed value, and copies", () => {
    const parsed = parseLosslessJson('{"10": 1.0, "2": 3.0, "x": [1.0, 2.0]}') as Record<string, unknown>;
    parsed["2"] = 4;
    delete parsed.x;
    parsed["1"] = 5;
    expect(stringifyJson(parsed)).toBe('{"10":1.0,"2":4,"1":5}');
    expect(stringifyJson({ ...parsed })).toBe('{"1":5,"2":4,"10":1}');
    expect(stringifyJson(keepWrittenForm({ ...parsed, "10": 1 }, parsed))).toBe('{"10":1.0,"2":4,"1":5}');
  });

  it("marks what Python reads as a float", () => {
    const [entry] = jsonEntries(parseLosslessJson('{"a": 1.0}') as object);
    expect(entry).toEqual(["a", new JsonNumber("1.0")]);
    expect((entry[1] as JsonNumber).isFloat).toBe(true);
    const items = jsonItems(parseLosslessJson("[12345678901234567890, 1e22, 3]") as unknown[]);
    expect(items.map((item) => (item instanceof JsonNumber ? item.isFloat : item))).toEqual([false, true, 3]);
  });

  it("writes what JSON.stringify writes of other values", () => {
    const value = { a: undefined, b: [undefined, null, true, "é\u2028"], c: new Date(0).toJSON() };
    expect(stringifyJson(value)).toBe(JSON.stringify(value));
  });
});

it("pauses while it reads a long list of numbers", () => {
  const steps = parseLosslessJsonSteps(`[${Array.from({ length: 20_000 }, () => "1.0").join()}]`);
  let pauses = 0;
  while (steps.next().done !== true) pauses++;
  expect(pauses).toBeGreaterThan(8);
});
