import { describe, expect, it } from "vitest";
import { mulDims, dim, type Shape } from "../dim.js";
import type { Node } from "../node.js";
import * as ops from "../index.js";
import { output } from "./layout.js";

const rows = dim("rows");
let counter = 0;
const float = (...shape: Shape): Node => ops.input(`x${counter++}`, "float32", shape);
const ints = (...shape: Shape): Node => ops.input(`x${counter++}`, "int32", shape);
const bools = (...shape: Shape): Node => ops.input(`x${counter++}`, "bool", shape);
const codes = (...shape: Shape): Node => ops.input(`x${counter++}`, "int8", shape);

/** Invalid inputs, and what the message must name in addition to the operation. */
const mismatches: Readonly<Record<string, readonly (readonly [build: () => unknown, names: RegExp])[]>> = {
  add: [
    [() => ops.add(float(3), ints(3)), /float32\[3\], int32\[3\]/],
    [() => ops.add(float(3), float(5)), /\[3\] and \[5\]/],
    [() => ops.add(float(rows), float(5)), /\[rows\] and \[5\]/],
    [() => ops.add(ints(3), 1), /same element type/],
  ],
  less: [[() => ops.less(float(3), ints(3)), /same element type/]],
  equal: [[() => ops.equal(ints(3), 0), /same element type/]],
  and: [[() => ops.and(float(3), bools(3)), /bool/]],
  or: [[() => ops.or(ints(3), ints(3)), /bool/]],
  not: [[() => ops.not(float(3)), /bool/]],
  where: [
    [() => ops.where(float(3), float(3), float(3)), /bool condition/],
    [() => ops.where(bools(3), float(3), ints(3)), /same element type/],
    [() => ops.where(bools(4), float(3), 0), /\[4\]|\[3\]/],
  ],
  withGradientOf: [[() => ops.withGradientOf(float(3, 5), float(5, 3)), /float32\[3, 5\], float32\[5, 3\]/]],
  reduceSum: [
    [() => ops.reduceSum(float(3, 5), [2]), /axes 2/],
    [() => ops.reduceSum(float(3, 5), [-3]), /axes -1/],
    [() => ops.reduceSum(float(3, 5), [1, -1]), /distinct axes/],
  ],
  reduceMax: [[() => ops.reduceMax(float(3), [1]), /axes 1/]],
  reshape: [
    [() => ops.reshape(float(3, 5), [3, 4]), /\[3, 5\] to \[3, 4\]/],
    [() => ops.reshape(float(rows, 6), [rows, 5]), /number of elements/],
  ],
  computeAfter: [[() => ops.computeAfter(float(3, 5), float(5, 3)), /float32\[3, 5\], float32\[5, 3\]/]],
  transpose: [
    [() => ops.transpose(float(3, 5), [0, 0]), /\[0, 0\]/],
    [() => ops.transpose(float(3, 5), [1, 0, 2]), /\[1, 0, 2\]/],
  ],
  expand: [
    [() => ops.expand(float(3), [5]), /\[3\] and \[5\]/],
    [() => ops.expand(float(3, 5), [5]), /broadcasts to \[5\]/],
    [() => ops.expand(float(rows), [1]), /broadcasts to \[1\]/],
  ],
  concat: [
    [() => ops.concat([float(3, 5), float(3, 4)], 0), /along axis 0/],
    [() => ops.concat([float(3), ints(3)], 0), /along axis 0/],
    [() => ops.concat([float(3), float(3)], 1), /along axis 1/],
  ],
  slice: [
    [() => ops.slice(float(5), 0, 3, 3), /3 \+ 3 along axis 0/],
    [() => ops.slice(float(5), 1, 0, 1), /axis 1/],
    [() => ops.slice(float(5), 0, -1, 2), /axis 0/],
  ],
  split: [
    [() => ops.split(float(5), 0, [2, 2]), /add up along axis 0/],
    [() => ops.split(float(rows), 0, [rows, 1]), /add up/],
  ],
  pad: [[() => ops.pad(float(5), 1, 1, 0), /axis 1/]],
  matmul: [
    [() => ops.matmul(float(3, 5), float(3, 5)), /inner dimensions/],
    [() => ops.matmul(float(3, 5), float(5)), /rank >= 2/],
    [() => ops.matmul(float(3, 5), ints(5, 3)), /same element type/],
    [() => ops.matmul(float(2, 3, 5), float(3, 5, 3)), /\[2\] and \[3\]/],
  ],
  addMatmul: [
    [() => ops.addMatmul(float(3), float(3, 5), float(5, 3)), /a matrix and two factors/],
    [() => ops.addMatmul(float(3, 3), float(3, 5), float(5, 4)), /a matrix and two factors/],
  ],
  gatherRows: [
    [() => ops.gatherRows(float(3, 5), float(2)), /row indices/],
    [() => ops.gatherRows(float(3, 5), ints(2, 1)), /row indices/],
  ],
  scatterAddRows: [[() => ops.scatterAddRows(float(3, 5), ints(2), 7), /row index for each/]],
  gatherRowsWithInverse: [
    [() => ops.gatherRowsWithInverse(float(3, 5), ints(7), ints(2)), /slot index per row/],
    [() => ops.gatherRowsWithInverse(float(3), ints(7), ints(3)), /slot index per row/],
  ],
  pick: [
    [() => ops.pick(float(3, 5), ints(5)), /index for each/],
    [() => ops.pick(float(3, 5), float(3)), /index for each/],
  ],
  place: [[() => ops.place(float(3), ints(2), 5), /index for each/]],
  rmsNorm: [[() => ops.rmsNorm(float(3, 5), float(3), 1e-6), /width/]],
  layerNorm: [[() => ops.layerNorm(float(3, 5), float(5), float(1, 5), 1e-6), /width/]],
  rotary: [
    [() => ops.rotary(float(3, 8), float(3, 2), float(2, 2), 2), /rotaryDim/],
    [() => ops.rotary(float(3, 8), float(3, 3), float(3, 3), 2), /rotaryDim <= headDim/],
    [() => ops.rotary(float(3, 9), float(3, 2), float(3, 2), 2), /heads|headDim/],
  ],
  dequantize: [
    [() => ops.dequantize(codes(3, 32), float(3, 1), codes(3, 1), 16), /per 16 columns/],
    [() => ops.dequantize(codes(3, 32), float(3, 2), ints(3, 2), 16), /codes' type/],
  ],
};

describe("inputs that do not fit", () => {
  it.each(
    Object.entries(mismatches).flatMap(([name, list]) =>
      list.map(([build, names], i) => [name, i, build, names] as const),
    ),
  )("%s, %i", (name, _, build, names) => {
    expect(build).toThrow(expect.objectContaining({ code: "SHAPE_MISMATCH" }));
    expect(build).toThrow(names);
    expect(build).toThrow(/^Shapes|expected|changes the number/);
    expect(name in ops).toBe(true);
  });

  it("tokenLogProbs", () => {
    const fitting = {
      hidden: float(rows, 5),
      head: float(7, 5),
      targets: ints(rows),
      inverseTemperature: ops.scalar(1),
      bias: float(7),
      allowedTokens: { sets: bools(2, 7), setIndices: ints(rows) },
    };
    expect(ops.tokenLogProbs(fitting).logProbs.shape).toEqual([rows]);
    const wrong = {
      hidden: float(5),
      head: float(7, 4),
      targets: ints(3),
      inverseTemperature: float(1),
      bias: float(5),
      allowedTokens: { sets: bools(2, 6), setIndices: ints(rows) },
    };
    for (const [name, value] of Object.entries(wrong)) {
      expect(() => ops.tokenLogProbs({ ...fitting, [name]: value })).toThrow(/tokenLogProbs got .* expected hidden/);
    }
  });
});

describe("shape inference", () => {
  it("keeps named dimensions through operations", () => {
    const own = dim("own");
    const joined = ops.concat([float(rows, 3), float(own, 3), float(2, 3)], 0);
    expect(joined.shape.map(String)).toEqual(["2+own+rows", "3"]);
    expect(ops.reshape(joined, [mulDims(joined.shape[0], 3)]).shape.map(String)).toEqual(["6+3*own+3*rows"]);
    expect(ops.slice(joined, 0, rows, own).shape.map(String)).toEqual(["own", "3"]);
    expect(ops.matmul(float(rows, 5), float(own, 5), { transposeB: true }).shape.map(String)).toEqual(["rows", "own"]);
    expect(output(ops.layerNorm(float(own, 5), float(5), float(5), 1e-5), 1).shape.map(String)).toEqual(["own", "1"]);
  });

  it("returns the input where an operation changes nothing", () => {
    const x = float(rows, 5);
    for (const same of [
      ops.reshape(x, [rows, 5]),
      ops.transpose(x, [0, 1]),
      ops.expand(x, [rows, 5]),
      ops.concat([x], 0),
      ops.slice(x, 0, 0, rows),
      ops.pad(x, 1, 0, 0),
      ops.cast(x, "float32"),
      ops.reduceSum(x, []),
      ops.split(x, 0, [rows])[0],
    ]) {
      expect(same).toBe(x);
    }
  });
});
