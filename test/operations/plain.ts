import type { PlainArray } from "../../src/engine/check-operation.js";

/** Arrays in float64 and loops over their indices: what the operations are checked against. */
export type { PlainArray };

type Index = readonly number[];

function count(shape: readonly number[]): number {
  return shape.reduce((product, size) => product * size, 1);
}

/** An array made element by element. */
export function buildArray(shape: readonly number[], element: (index: Index) => number): PlainArray {
  const data = Array.from({ length: count(shape) }, (_, flat) => {
    const index: number[] = Array.from({ length: shape.length });
    let rest = flat;
    for (let axis = shape.length - 1; axis >= 0; axis--) {
      index[axis] = rest % shape[axis];
      rest = Math.floor(rest / shape[axis]);
    }
    return element(index);
  });
  return { shape, data };
}

/**
 * x[index], where x may have size-1 axes and fewer axes than the index, as in NumPy's broadcasting.
 */
export function elementAt(x: PlainArray, index: Index): number {
  const lead = index.length - x.shape.length;
  let flat = 0;
  x.shape.forEach((size, axis) => (flat = flat * size + (size === 1 ? 0 : index[lead + axis])));
  return x.data[flat];
}

export function broadcastShapes(...shapes: readonly (readonly number[])[]): number[] {
  const rank = Math.max(...shapes.map((shape) => shape.length));
  return Array.from({ length: rank }, (_, axis) => {
    const sizes = shapes.map((shape) => shape[axis - rank + shape.length] ?? 1);
    return sizes.find((size) => size !== 1) ?? 1;
  });
}

/** f over the elements of arrays that broadcast together. */
export function mapElements(f: (...values: number[]) => number, ...arrays: readonly PlainArray[]): PlainArray {
  return buildArray(broadcastShapes(...arrays.map(({ shape }) => shape)), (index) =>
    f(...arrays.map((x) => elementAt(x, index))),
  );
}

/**
 * f over the vectors of the last axis; it gives a vector, whose length becomes the last axis, or a
 * number.
 */
export function mapLastAxis(f: (vector: number[], position: number) => number[] | number, x: PlainArray): PlainArray {
  const width = x.shape[x.shape.length - 1];
  const lead = x.shape.slice(0, -1);
  const results = Array.from({ length: count(lead) }, (_, i) => f(x.data.slice(i * width, (i + 1) * width), i));
  const [first] = results;
  const tail = first === undefined ? [width] : Array.isArray(first) ? [first.length] : [];
  return { shape: [...lead, ...tail], data: results.flat() };
}

export function range(length: number): number[] {
  return Array.from({ length }, (_, i) => i);
}

export function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
