import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  addDims,
  broadcastShapes,
  evaluateDim,
  mulDims,
  sameDim,
  formatShape,
  subDims,
  dim,
  type Dim,
  type Shape,
} from "./dim.js";

const NAMES = ["batch", "tokens", "prefix"];
const sizes = fc
  .tuple(fc.nat(9), fc.nat(9), fc.nat(9))
  .map((values) => new Map(NAMES.map((name, i) => [name, values[i]])));

/** A dimension together with the arithmetic that made it. */
interface Sample {
  readonly dim: Dim;
  readonly value: (sizes: ReadonlyMap<string, number>) => number;
}

const { sample } = fc.letrec<{ sample: Sample }>((tie) => ({
  sample: fc.oneof(
    { maxDepth: 4, depthSize: "small" },
    fc.integer({ min: -5, max: 5 }).map((value) => ({ dim: value, value: () => value })),
    fc.constantFrom(...NAMES).map((name): Sample => ({ dim: dim(name), value: (at) => at.get(name)! })),
    fc.tuple(tie("sample"), tie("sample"), fc.constantFrom("+", "-", "*")).map(([a, b, sign]): Sample => ({
      dim: { "+": addDims, "-": subDims, "*": mulDims }[sign](a.dim, b.dim),
      value: (at) => {
        const [left, right] = [a.value(at), b.value(at)];
        return sign === "+" ? left + right : sign === "-" ? left - right : left * right;
      },
    })),
  ),
}));
const dims = sample.map((made) => made.dim);

describe("dimensions", () => {
  it("evaluate to the arithmetic they were built by", () => {
    // + 0 makes -0 a 0.
    fc.assert(
      fc.property(sample, sizes, (made, at) => {
        expect(evaluateDim(made.dim, at) + 0).toBe(made.value(at) + 0);
      }),
    );
  });

  it("form a commutative ring", () => {
    fc.assert(
      fc.property(dims, dims, dims, (a, b, c) => {
        expect(sameDim(addDims(a, b), addDims(b, a))).toBe(true);
        expect(sameDim(mulDims(a, b), mulDims(b, a))).toBe(true);
        expect(sameDim(addDims(addDims(a, b), c), addDims(a, addDims(b, c)))).toBe(true);
        expect(sameDim(addDims(a, b, c), addDims(a, addDims(b, c)))).toBe(true);
        expect(sameDim(mulDims(mulDims(a, b), c), mulDims(a, mulDims(b, c)))).toBe(true);
        expect(sameDim(mulDims(a, addDims(b, c)), addDims(mulDims(a, b), mulDims(a, c)))).toBe(true);
        expect(addDims(a, 0)).toEqual(a);
        expect(mulDims(a, 1)).toEqual(a);
        expect(mulDims(a, 0)).toBe(0);
        expect(subDims(a, a)).toBe(0);
        expect(sameDim(subDims(addDims(a, b), b), a)).toBe(true);
      }),
    );
  });

  it("are equal exactly when they are the same polynomial", () => {
    // Degrees stay below 10 here, so that two polynomials which agree on these points agree
    // everywhere.
    const points = Array.from({ length: 8 }, (_, i) => new Map(NAMES.map((name, j) => [name, 11 + 97 ** j * (i + 1)])));
    const small = fc.array(fc.tuple(fc.integer({ min: -2, max: 2 }), fc.subarray(NAMES)), { maxLength: 3 });
    const polynomial = small.map((terms) =>
      addDims(...terms.map(([factor, names]) => mulDims(factor, ...names.map(dim)))),
    );
    fc.assert(
      fc.property(polynomial, polynomial, (a, b) => {
        const agree = points.every((at) => evaluateDim(a, at) === evaluateDim(b, at));
        expect(sameDim(a, b)).toBe(agree);
      }),
    );
  });

  it("simplify to numbers when no name is left", () => {
    const [batch, tokens] = [dim("batch"), dim("tokens")];
    expect(subDims(addDims(batch, 3), batch)).toBe(3);
    expect(mulDims()).toBe(1);
    expect(addDims()).toBe(0);
    expect(subDims(mulDims(batch, tokens), mulDims(tokens, batch))).toBe(0);
  });

  it("have one text form", () => {
    const [batch, tokens, prefix] = [dim("batch"), dim("tokens"), dim("prefix")];
    expect(String(addDims(mulDims(tokens, 2, batch), prefix))).toBe("2*batch*tokens+prefix");
    expect(formatShape([addDims(prefix, 1), 3, mulDims(prefix, prefix)])).toBe("[1+prefix, 3, prefix*prefix]");
  });

  it("require a size for every name", () => {
    expect(() => evaluateDim(addDims(dim("batch"), dim("tokens")), new Map([["batch", 2]]))).toThrow('"tokens"');
  });

  it("reject names with operators, which would be ambiguous", () => {
    for (const name of ["", "a*b", "a+b", "2", "3a"]) expect(() => dim(name)).toThrow(/name/);
  });
});

describe("broadcastShapes", () => {
  const shape = fc.array(fc.constantFrom<Dim>(1, 1, 3, 5, dim("batch")), { maxLength: 4 });

  const broadcastOutcome = (a: Shape, b: Shape) => {
    try {
      return formatShape(broadcastShapes(a, b));
    } catch {
      return "refused";
    }
  };

  it("stretches size 1 and missing axes only", () => {
    fc.assert(
      fc.property(shape, shape, (a, b) => {
        const rank = Math.max(a.length, b.length);
        const pad = (dims: readonly Dim[]) => [...Array.from({ length: rank - dims.length }, () => 1), ...dims];
        const [left, right] = [pad(a), pad(b)];
        const clash = left.some((size, i) => size !== 1 && right[i] !== 1 && !sameDim(size, right[i]));
        const expected = clash ? "refused" : formatShape(left.map((size, i) => (size === 1 ? right[i] : size)));
        expect(broadcastOutcome(a, b)).toBe(expected);
        expect(broadcastOutcome(b, a)).toBe(expected);
      }),
    );
  });

  it("keeps empty axes", () => {
    expect(broadcastShapes([0, 1], [1, 3])).toEqual([0, 3]);
    expect(broadcastShapes([1], [0])).toEqual([0]);
    expect(() => broadcastShapes([0], [3])).toThrow("do not broadcast");
  });
});
