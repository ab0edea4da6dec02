import { expect, it } from "vitest";
import { whiten } from "./statistics.js";
import { whitenBySeat } from "./whiten-by-seat.js";

it("normalizes the rows of each seat on their own", () => {
  const rows = [[1, 2], [10], [3], [30, 20]];
  const [a, b, c, d] = whitenBySeat(rows, [0, 1, 0, 1]);
  expect([...a, ...c]).toEqual([...whiten([1, 2, 3])]);
  expect([...b, ...d]).toEqual([...whiten([10, 30, 20])]);
});

it("normalizes rows without seats together", () => {
  const [a, b] = whitenBySeat([[1, 2], [10]], [undefined, undefined]);
  expect([...a, ...b]).toEqual([...whiten([1, 2, 10])]);
});
