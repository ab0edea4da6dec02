import { describe, expect, it } from "vitest";
import { checkJsonSize, parseBoundedJson } from "./json.js";

describe("parseBoundedJson", () => {
  it.each(['{"a":["b\\"[{",1,null],"\\\\":{}}', '"\\\\\\""', "[]", "1", '["a", "\\u0022", "]"]'])(
    "parses %s as JSON.parse does",
    (text) => {
      expect(parseBoundedJson(text, 10)).toEqual(JSON.parse(text));
    },
  );

  it("counts arrays, objects and strings, but not what strings contain", () => {
    expect(parseBoundedJson('["[[[[{{{{"]', 2)).toEqual(["[[[[{{{{"]);
    expect(() => parseBoundedJson('["[[[[{{{{"]', 1)).toThrow("it has more than 1 arrays, objects and strings");
    expect(() => parseBoundedJson("[[],[],[]]", 3)).toThrow(RangeError);
    expect(() => parseBoundedJson('{"a":"b"}', 2)).toThrow(RangeError);
  });

  it.each(["{", '"abc', '"abc\\"', "", '["\\'])("refuses %j as JSON.parse does", (text) => {
    expect(() => parseBoundedJson(text, 10)).toThrow(SyntaxError);
  });
});

it("checkJsonSize counts commas between values, but not those of strings", () => {
  const text = '{"a,b":[1,2,3],"c":",,"}';
  expect(checkJsonSize(text, { maxNodes: 5, maxCommas: 3 })).toBe(8);
  expect(() => checkJsonSize(text, { maxNodes: 5, maxCommas: 2 })).toThrow("more than 2 values after another");
});
