import { sameDim, sameShape, type Dim } from "../dim.js";
import { apply, shapeError, type Node, type Operation } from "../node.js";

const isIndex = ({ dtype }: Node): boolean => dtype === "int32" || dtype === "int64";

/** Rows of a table by their numbers: [rows, ...] and int [n] give [n, ...]. */
export const gatherRowsOperation: Operation<object> = {
  name: "gatherRows",
  shape: (inputs) => {
    const [table, ids] = inputs;
    if (ids.shape.length !== 1 || !isIndex(ids) || table.shape.length === 0)
      throw shapeError("gatherRows", inputs, "a table and a vector of row numbers");
    return { dtype: table.dtype, shape: [ids.shape[0], ...table.shape.slice(1)] };
  },
  gradient: ({ inputs: [table, ids], upstream }) => [scatterAddRows(upstream, ids, table.shape[0]), undefined],
  onnx: ({ inputs, emitter }) => emitter.emit("Gather", inputs, { attributes: { axis: 0 } }),
};

/** Zeros [rows, ...] to which each row of the values is added at its number; repeated numbers add up. */
export const scatterAddRowsOperation: Operation<{ readonly rows: Dim }> = {
  name: "scatterAddRows",
  shape: (inputs, { rows }) => {
    const [values, ids] = inputs;
    if (ids.shape.length !== 1 || !isIndex(ids) || values.shape.length === 0 || !sameDim(ids.shape[0], values.shape[0]))
      throw shapeError("scatterAddRows", inputs, "values and a row number for each");
    return { dtype: values.dtype, shape: [rows, ...values.shape.slice(1)] };
  },
  gradient: ({ inputs: [, ids], upstream }) => [gatherRows(upstream, ids), undefined],
  onnx: ({ node, inputs: [values, ids], emitter }) => {
    const zero = emitter.zeros(node.dtype, node.shape);
    const wide = emitter.emit("Cast", [ids], { attributes: { to: 7 } });
    const index = emitter.emit("Unsqueeze", [wide, emitter.ints([-1])]);
    return emitter.emit("ScatterND", [zero, index, values], { attributes: { reduction: "add" } });
  },
};

/**
 * Rows moved to slots by number, as gatherRows, where the way back is known: inverse[row] is the slot of that row.
 * Slots beyond (a row given twice, as filler) must receive no gradient; then the gradient is a gather too, not a sum.
 */
export const gatherRowsWithInverseOperation: Operation<object> = {
  name: "routeRows",
  valueInputCount: 2,
  shape: (inputs) => {
    const [x, ids, inverse] = inputs;
    const fits = x.shape.length === 2 && [ids, inverse].every((list) => list.shape.length === 1 && isIndex(list));
    if (!fits || !sameDim(inverse.shape[0], x.shape[0])) {
      throw shapeError(
        "routeRows",
        inputs,
        "rows [rows, width], a row number for each slot and a slot number for each row",
      );
    }
    return { dtype: x.dtype, shape: [ids.shape[0], x.shape[1]] };
  },
  gradient: ({ inputs: [, ids, inverse], upstream }) => [
    gatherRowsWithInverse(upstream, inverse, ids),
    undefined,
    undefined,
  ],
  onnx: ({ inputs: [x, ids], emitter }) => emitter.emit("Gather", [x, ids], { attributes: { axis: 0 } }),
};

/** One element of each last-axis vector: [..., n] and int [...] give [...]. */
export const pickOperation: Operation<object> = {
  name: "pick",
  shape: (inputs) => {
    const [x, ids] = inputs;
    if (x.shape.length === 0 || !isIndex(ids) || !sameShape(x.shape.slice(0, -1), ids.shape))
      throw shapeError("pick", inputs, "vectors and an index for each");
    return { dtype: x.dtype, shape: ids.shape };
  },
  gradient: ({ inputs: [x, ids], upstream }) => [place(upstream, ids, x.shape[x.shape.length - 1]), undefined],
  onnx: ({ inputs: [x, ids], emitter }) => {
    const index = emitter.emit("Unsqueeze", [ids, emitter.ints([-1])]);
    return emitter.emit("Squeeze", [
      emitter.emit("GatherElements", [x, index], { attributes: { axis: -1 } }),
      emitter.ints([-1]),
    ]);
  },
};

/** Zero vectors of a length, each with one value at its index: [...] and int [...] give [..., length]. */
export const placeOperation: Operation<{ readonly length: Dim }> = {
  name: "place",
  shape: (inputs, { length }) => {
    const [values, ids] = inputs;
    if (!isIndex(ids) || !sameShape(values.shape, ids.shape))
      throw shapeError("place", inputs, "values and an index for each");
    return { dtype: values.dtype, shape: [...values.shape, length] };
  },
  gradient: ({ inputs: [, ids], upstream }) => [pick(upstream, ids), undefined],
  onnx: ({ node, inputs: [values, ids], emitter }) => {
    const zero = emitter.zeros(node.dtype, node.shape);
    const [value, index] = [values, ids].map((name) => emitter.emit("Unsqueeze", [name, emitter.ints([-1])]));
    return emitter.emit("ScatterElements", [zero, index, value], { attributes: { axis: -1 } });
  },
};

/** Rows of `table` at the numbers `ids` ([n], int32 or int64). */
export function gatherRows(table: Node, ids: Node): Node {
  return apply(gatherRowsOperation, [table, ids], {});
}

export function scatterAddRows(values: Node, ids: Node, rows: Dim): Node {
  return apply(scatterAddRowsOperation, [values, ids], { rows });
}

/** x [rows, width] to [slots, width]: slot i holds row ids[i]; inverse[row] is a slot that holds it. */
export function gatherRowsWithInverse(x: Node, ids: Node, inverse: Node): Node {
  return apply(gatherRowsWithInverseOperation, [x, ids, inverse], {});
}

/** x[..., ids[...]]. */
export function pick(x: Node, ids: Node): Node {
  return apply(pickOperation, [x, ids], {});
}

export function place(values: Node, ids: Node, length: Dim): Node {
  return apply(placeOperation, [values, ids], { length });
}
