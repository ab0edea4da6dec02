import { describe, expect, it } from "vitest";
import { LlamaGymError } from "../../core/errors.js";
import type { JsonValue } from "../../core/json.js";
import { formatArray, formatBounds } from "./array-text.js";
import { batchValues, batchSpace, cloneSpace, unbatch } from "./batch.js";
import { Box } from "./box.js";
import { Dict, Tuple } from "./composite.js";
import { Discrete } from "./discrete.js";
import { flattenSpace } from "./flatten-space.js";
import { Graph } from "./graph.js";
import { MultiBinary } from "./multi-binary.js";
import { MultiDiscrete } from "./multi-discrete.js";
import { OneOf } from "./one-of.js";
import { Sequence } from "./sequence.js";
import { spaceFromJson, spaceToJson } from "./space-json.js";
import type { Space } from "./space.js";
import { Text } from "./text.js";
import { createZeroValue } from "./zero-value.js";

const ALL_SPACES: readonly Space[] = [
  new Discrete(5, { start: -2 }),
  new Box(-1, 1, { shape: [2, 3] }),
  new Box([-Infinity, 0], [Infinity, Infinity], { dtype: "float64" }),
  new Box(-5, 5, { shape: [3], dtype: "int16" }),
  new MultiBinary([2, 2]),
  new MultiDiscrete(
    [
      [3, 2],
      [4, 5],
    ],
    {
      start: [
        [0, -1],
        [2, 0],
      ],
    },
  ),
  new Text(6, { minLength: 1, charset: "abc" }),
  new Tuple([new Discrete(3), new Box(0, 1, { shape: [2] })]),
  new Dict({ b: new Discrete(2), a: new MultiBinary(2) }),
  new OneOf([new Discrete(3), new Box(0, 1, { shape: [2] })] as Space[]),
  new Sequence(new Discrete(4)),
  new Graph(new Box(0, 1, { shape: [2] }), new Discrete(3)),
  new Graph(new Discrete(7)),
];

const named = ALL_SPACES.map((space) => [space.toString().replace(/\s+/g, " "), space] as const);

function getErrorMessage(call: () => unknown): string {
  try {
    call();
    return "no error";
  } catch (error) {
    return error instanceof LlamaGymError ? error.message : String(error);
  }
}

describe.each(named)("%s", (_, space) => {
  it("contains its samples, and draws the same for a seed", () => {
    space.seed(3);
    const first = Array.from({ length: 30 }, () => space.sample());
    space.seed(3);
    expect(Array.from({ length: 30 }, () => space.sample())).toEqual(first);
    expect(first.every((value) => space.contains(value))).toBe(true);
  });

  it("contains its zero value, and no foreign values", () => {
    expect(space.contains(createZeroValue(space))).toBe(true);
    for (const foreign of [undefined, null, NaN, "\u{1F600}", {}, [[["?"]]], [1e9], 1e9, Symbol("x")]) {
      expect(space.contains(foreign)).toBe(false);
    }
  });

  it("round-trips through JSON, as do its members", () => {
    space.seed(4);
    const value = space.sample();
    expect(space.decode(JSON.parse(JSON.stringify(space.encode(value))) as JsonValue)).toEqual(value);
    const copy = spaceFromJson(JSON.parse(JSON.stringify(spaceToJson(space))) as JsonValue);
    expect(copy.equals(space)).toBe(true);
    space.seed(9);
    copy.seed(9);
    expect(copy.sample()).toEqual(space.sample());
  });

  it("rejects JSON that is not an encoded member", () => {
    for (const json of [null, "\u{1F600}", 1e9, { x: 1 }])
      expect(getErrorMessage(() => space.decode(json))).toMatch(/is not in|not in/);
  });

  it("round-trips through its flat form, where it has a fixed size", () => {
    space.seed(5);
    const value = space.sample();
    const { flatSize } = space;
    const flat = flatSize === undefined ? undefined : space.flatten(value);
    expect(flat?.length).toBe(flatSize);
    expect(flat === undefined ? value : space.unflatten(flat)).toEqual(value);
    expect(flat === undefined || flattenSpace(space).contains(flat)).toBe(true);
  });

  it("is batched and unbatched", () => {
    space.seed(6);
    const values = Array.from({ length: 3 }, () => space.sample());
    expect(unbatch(space, batchValues(space, values), 3)).toEqual(values);
    const batched = batchSpace(space, 3);
    expect(unbatch(space, batched.sample(), 3).every((value) => space.contains(value))).toBe(true);
  });

  it("has clones that draw the same values", () => {
    space.seed(7);
    const clone = cloneSpace(space);
    expect(clone.sample()).toEqual(space.sample());
  });

  it("starts from entropy without a seed", () => {
    expect(JSON.stringify(space.seed())).not.toBe(JSON.stringify(space.seed()));
  });
});

describe("invalid arguments", () => {
  it.each<[string, () => unknown, RegExp]>([
    ["an empty Discrete", () => new Discrete(0), /^n \(counts\) have to be positive, actual value: 0$/],
    ["a fractional Discrete", () => new Discrete(1.5), /takes integers/],
    ["bounds in the wrong order", () => new Box([0, 2], [1, 1]), /low=\[0\. 2\.\], high=\[1\. 1\.\]$/],
    ["bounds of another shape", () => new Box([0, 0], 1, { shape: [3] }), /low\.shape=\(2,\), shape=\(3,\)/],
    ["a NaN bound", () => new Box(NaN, 1), /No low value can be NaN/],
    ["a bound out of range", () => new Box(0, 300, { dtype: "uint8" }), /high is out of bounds of uint8, high=300/],
    ["an infinite unsigned bound", () => new Box(0, Infinity, { dtype: "uint8" }), /cannot have an infinite bound/],
    [
      "an unknown type",
      () => new Box(0, 1, { dtype: "float16" as "float32" }),
      /"float16" is not supported. Supported: float32/,
    ],
    ["a row that is null", () => new MultiDiscrete([[1], null] as unknown as number[][]), /rectangular/],
    ["ragged bounds", () => new Box([[0, 1], [0]] as number[][], 1), /rectangular/],
    ["no bits", () => new MultiBinary(0), /have to be positive/],
    ["an empty class", () => new MultiDiscrete([3, 0]), /nvec \(counts\) have to be positive/],
    ["starts of another shape", () => new MultiDiscrete([3], { start: [1, 2] }), /same shape/],
    ["lengths in the wrong order", () => new Text(3, { minLength: 5 }), /min_length: 5, max_length: 3/],
    ["a charset of words", () => new Text(3, { charset: new Set(["ab"]) }), /one character, got \["ab"\]/],
    ["a part that is not a space", () => new Tuple([3 as unknown as Space]), /Element 0 of the Tuple is not a Space/],
    ["no choice", () => new OneOf([]), /Empty `OneOf`/],
    ["a negative seed", () => new Discrete(2).seed(-1), /greater or equal to zero, actual value: -1/],
    ["seeds for a simple space", () => new Discrete(2).seed([1, 2]), /takes one seed, got \[1,2\]/],
    [
      "too few seeds",
      () => new Tuple([new Discrete(2), new Discrete(2)]).seed([1]),
      /seeds of Tuple.* must have one entry per part: 0, 1/,
    ],
    [
      "seeds of other names",
      () => new Dict({ a: new Discrete(2) }).seed({ b: 1 }),
      /seeds of Dict.* must have one entry per part: a/,
    ],
    ["a mask of another length", () => new Discrete(3).sample({ mask: [1, 0] }), /mask must be 3 numbers, got \[1,0\]/],
    ["a mask of other values", () => new Discrete(2).sample({ mask: [1, 2] }), /must be 0 or 1, actual values: 1, 2/],
    ["probabilities beyond 1", () => new Discrete(2).sample({ probability: [0.5, 0.6] }), /add up to 1/],
    ["mask and probability", () => new Discrete(2).sample({ mask: [1, 1], probability: [1, 0] }), /Only one of/],
    ["a mask for a Box", () => new Box(0, 1).sample({ mask: [1] }), /supports neither a mask nor a probability/],
    ["no character", () => new Text(3, { charset: "ab" }).sample({ mask: [null, [0, 0]] }), /allows no character/],
    ["JSON that describes no space", () => spaceFromJson({ type: "Sphere" }), /describes no space.*Discrete, Box/],
  ])("%s", (_, call, message) => {
    expect(getErrorMessage(call)).toMatch(message);
  });
});

describe("masks", () => {
  it("restrict the samples of each part", () => {
    const space = new Dict({ a: new Discrete(4), b: new MultiDiscrete([3, 3]), c: new Text(5, { charset: "xyz" }) });
    space.seed(1);
    const mask = {
      a: [0, 0, 1, 0],
      b: [
        [0, 1, 0],
        [1, 0, 0],
      ],
      c: [4, [0, 1, 0]],
    };
    expect(space.sample({ mask })).toEqual({ a: 2, b: Int32Array.of(1, 0), c: "yyyy" });
  });

  it("yield the first value when they allow none", () => {
    expect(new Discrete(3, { start: 5 }).sample({ mask: [0, 0, 0] })).toBe(5);
  });

  it("fix the length of a sequence and the parts of a tuple", () => {
    expect(new Sequence(new Discrete(3)).sample({ mask: [2, [0, 0, 1]] })).toEqual([2, 2]);
    expect(
      new Tuple([new Discrete(3), new Discrete(2)]).sample({
        probability: [
          [0, 1, 0],
          [0, 1],
        ],
      }),
    ).toEqual([1, 1]);
  });
});

describe("arrays as NumPy prints them", () => {
  it.each([
    [[1, 2.5], [2], "[1.  2.5]"],
    [[1e-7, 1], [2], "[1.e-07 1.e+00]"],
    [[-Infinity, 0.1], [2], "[-inf  0.1]"],
    [[123456789, 0.5], [2], "[1.23456789e+08 5.00000000e-01]"],
    [[0, 0, 0, 1], [2, 2], "[[0. 0.]\n [0. 1.]]"],
  ])("%j of shape %j", (values, shape, text) => {
    expect(formatArray(values, shape, "float64")).toBe(text);
  });

  it("shows only the edges of more than 1000 elements", () => {
    const values = Array.from({ length: 2000 }, (_, i) => i);
    expect(formatArray(values, [2000], "integer")).toBe("[   0    1    2 ... 1997 1998 1999]");
    const rows = formatArray(values, [40, 50], "integer").split("\n");
    expect(rows).toHaveLength(7);
    expect(rows.slice(2, 5)).toEqual([
      " [ 100  101  102 ...  147  148  149]",
      " ...",
      " [1850 1851 1852 ... 1897 1898 1899]",
    ]);
    const high = values.map((value) => value + 1);
    expect(new Box(values, high).equals(new Box(values, high))).toBe(true);
    expect(new Box(values, high).equals(new Box(values, high.with(1000, 5000)))).toBe(false);
  });

  it("shortens equal elements to one", () => {
    expect(formatBounds([0.1, 0.1], [2], "float64")).toBe("0.1");
    expect(formatBounds([Math.fround(0.1)], [1], "float32")).toBe("0.1");
    expect(formatBounds([3, 3], [2], "integer")).toBe("3");
  });
});
