import { describe, expect, it } from "vitest";
import { describeUnsavable, MAX_JSON_DEPTH } from "./describe-unsavable.js";

function nest(levels: number): unknown {
  let value: unknown = 1;
  for (let i = 0; i < levels; i++) value = [value];
  return value;
}

describe("describeUnsavable", () => {
  it.each([
    [{ a: [1, { b: Number.NaN }] }, "a[1].b is NaN, and JSON has only finite numbers"],
    [[0, -Infinity], "[1] is -Infinity, and JSON has only finite numbers"],
    [Infinity, "it is Infinity, and JSON has only finite numbers"],
    [new Float32Array([1, 2]), "it is a Float32Array, which JSON does not have"],
    [{ seen: new Map([["a", 1]]) }, "seen is a Map, which JSON does not have"],
    [{ rooms: [new Set()] }, "rooms[0] is a Set, which JSON does not have"],
    [{ next: () => 1 }, "next is a function, which JSON does not have"],
    [{ count: 1n }, "count is a bigint, which JSON does not have"],
    [[1, undefined], "[1] is undefined, which JSON writes as null"],
    [nest(MAX_JSON_DEPTH + 1), "is nested too deep"],
    [nest(100_000), "is nested too deep"],
  ])("names what JSON cannot hold: case %#", (value, message) => {
    expect(describeUnsavable(value)).toContain(message);
  });

  it.each([
    [null],
    [undefined],
    ["NaN"],
    [{ a: [null, true, 1e308], b: {}, c: undefined }],
    [nest(MAX_JSON_DEPTH)],
    [new Date(0)],
  ])("finds nothing in case %#", (value) => {
    expect(describeUnsavable(value)).toBeUndefined();
  });
});
