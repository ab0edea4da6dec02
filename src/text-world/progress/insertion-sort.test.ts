import { describe, expect, it } from "vitest";
import { insertionSort } from "./insertion-sort.js";

/** An order that goes round in circles: 0 before 1, 1 before 2, ... 4 before 0. */
const isLess = (a: number, b: number) => [1, 2].includes((((b - a) % 5) + 5) % 5);

describe("insertionSort", () => {
  it("sorts as Python 3.11's list.sort does where the order is not a real one", () => {
    const sorted: [number[], number[]][] = [
      [
        [2, 9],
        [2, 9],
      ],
      [
        [1, 4, 1],
        [4, 1, 1],
      ],
      [
        [7, 7, 7, 6, 3],
        [6, 7, 7, 7, 3],
      ],
      [
        [1, 7, 0, 6, 6, 9, 0, 7],
        [9, 0, 0, 1, 6, 6, 7, 7],
      ],
      [
        [4, 3, 9, 1, 5, 0, 0, 0, 8, 0, 6, 3, 6],
        [3, 8, 3, 4, 9, 5, 0, 0, 0, 0, 1, 6, 6],
      ],
      [
        [0, 8, 3, 7, 7, 8, 3, 5, 3, 3, 7, 4, 0, 6, 8, 1, 2, 4, 1, 5],
        [6, 1, 1, 7, 7, 7, 2, 8, 3, 8, 3, 3, 3, 8, 4, 4, 0, 5, 0, 5],
      ],
    ];
    for (const [items, expected] of sorted) expect(insertionSort(items, isLess)).toEqual(expected);
  });

  it("sorts a real order, and leaves its argument alone", () => {
    const items = [5, 3, 9, 3, 1];
    expect(insertionSort(items, (a, b) => a < b)).toEqual([1, 3, 3, 5, 9]);
    expect(items).toEqual([5, 3, 9, 3, 1]);
    expect(insertionSort([], isLess)).toEqual([]);
  });
});
