import { describe, expect, it } from "vitest";
import { findLastNamed, findLastNamedAction, parseLastNumber, formatSigned } from "./text-parsing.js";

describe("findLastNamedAction", () => {
  const names = ["stay", "hit"];

  it.each<[string, number | undefined]>([
    ["hit", 1],
    ["HIT!", 1],
    ["I could hit, but I stay.", 0],
    ["Not stay: hit", 1],
    ["action: 0", 0],
    ['{"action": 1}', 1],
    ["I have 16, so hit", 1],
    ["white", undefined],
    ["stayed", undefined],
    ["7", undefined],
    ["1.5", undefined],
    ["", undefined],
  ])("parses %j as %s", (completion, action) => {
    expect(findLastNamedAction(completion, names)).toBe(action);
  });

  it("prefers the longer of two names that end at the same position", () => {
    expect(findLastNamedAction("pick up", ["up", "pick up"])).toBe(1);
    expect(findLastNamedAction("go up", ["up", "pick up"])).toBe(0);
  });

  it("finds synonyms", () => {
    expect(findLastNamedAction("I stick", names, { stick: 0 })).toBe(0);
  });
});

describe("findLastNamed", () => {
  it("ignores numbers", () => {
    expect(findLastNamed("hit, 0", ["stay", "hit"])).toBe(1);
    expect(findLastNamed("action 1", ["stay", "hit"])).toBeUndefined();
    expect(findLastNamed("stick", ["stay", "hit"], { stick: 0 })).toBe(0);
  });
});

describe("parseLastNumber", () => {
  it.each<[string, number | undefined]>([
    ["force -0.5", -0.5],
    ["first 1 then +2.", 2],
    [".25", 0.25],
    ["1e-3", 0.001],
    ["none", undefined],
  ])("parses %j as %s", (text, number) => {
    expect(parseLastNumber(text)).toBe(number);
  });
});

describe("formatSigned", () => {
  it.each<[number, number, string]>([
    [0.0419, 3, "+0.042"],
    [-1.5, 3, "-1.500"],
    [0, 2, "+0.00"],
    [-0.001, 2, "+0.00"],
    [-0, 0, "+0"],
    [12.345, 1, "+12.3"],
  ])("formats %d with %d decimals as %s", (value, decimals, text) => {
    expect(formatSigned(value, decimals)).toBe(text);
  });
});
