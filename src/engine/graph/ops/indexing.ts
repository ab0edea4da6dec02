import { sameDim, sameShape, type Dim } from "../dim.js";
import { apply, defineOperation, shapeError, type Node } from "../node.js";

const isIndex = ({ dtype }: Node): boolean => dtype === "int32" || dtype === "int64";

/** Gathers rows by index: [rows, ...] and int [n] to [n, ...]. */
export const gatherRowsOperation = defineOperation<object>({
  name: "gatherRows",
  infer: (inputs) => {
    const [table, ids] = inputs;
    if (ids.shape.length !== 1 || !isIndex(ids) || table.shape.length === 0)
      throw shapeError("gatherRows", inputs, "a table and a vector of row indices");
    return { dtype: table.dtype, shape: [ids.shape[0], ...table.shape.slice(1)] };
  },
  gradient: ({ inputs: [table, ids], upstream }) => [scatterAddRows(upstream, ids, table.shape[0]), undefined],
  onnx: ({ inputs, emitter }) => emitter.emit("Gather", inputs, { axis: 0 }),
});

/** Adds each row of the values to zeros [rows, ...] at its index; repeated indices accumulate. */
export const scatterAddRowsOperation = defineOperation<{ readonly rows: Dim }>({
  name: "scatterAddRows",
  infer: (inputs, { rows }) => {
    const [values, ids] = inputs;
    if (ids.shape.length !== 1 || !isIndex(ids) || values.shape.length === 0 || !sameDim(ids.shape[0], values.shape[0]))
      throw shapeError("scatterAddRows", inputs, "values and a row index for each");
    return { dtype: values.dtype, shape: [rows, ...values.shape.slice(1)] };
  },
  gradient: ({ inputs: [, ids], upstream }) => [gatherRows(upstream, ids), undefined],
  onnx: ({ node, inputs: [values, ids], emitter }) => {
    const zero = emitter.zeros(node.dtype, node.shape);
    const wide = emitter.emit("Cast", [ids], { to: 7 });
    const index = emitter.emit("Unsqueeze", [wide, emitter.ints([-1])]);
    return emitter.emit("ScatterND", [zero, index, values], { reduction: "add" });
  },
});

/**
 * Gathers rows with a known inverse: inverse[row] is a slot that holds the row. Slots that repeat a
 * row as padding must receive no gradient; the gradient is then a gather instead of a scatter-add.
 */
export const gatherRowsWithInverseOperation = defineOperation<object>({
  name: "gatherRowsWithInverse",
  valueInputCount: 2,
  infer: (inputs) => {
    const [x, ids, inverse] = inputs;
    const fits = x.shape.length === 2 && [ids, inverse].every((list) => list.shape.length === 1 && isIndex(list));
    if (!fits || !sameDim(inverse.shape[0], x.shape[0]))
      throw shapeError(
        "gatherRowsWithInverse",
        inputs,
        "x [rows, width], a row index per slot and a slot index per row",
      );
    return { dtype: x.dtype, shape: [ids.shape[0], x.shape[1]] };
  },
  gradient: ({ inputs: [, ids, inverse], upstream }) => [
    gatherRowsWithInverse(upstream, inverse, ids),
    undefined,
    undefined,
  ],
  onnx: ({ inputs: [x, ids], emitter }) => emitter.emit("Gather", [x, ids], { axis: 0 }),
});

/** Picks one element per last-axis vector: [..., n] and int [...] to [...]. */
export const pickOperation = defineOperation<object>({
  name: "pick",
  infer: (inputs) => {
    const [x, ids] = inputs;
    if (x.shape.length === 0 || !isIndex(ids) || !sameShape(x.shape.slice(0, -1), ids.shape))
      throw shapeError("pick", inputs, "vectors and an index for each vector");
    return { dtype: x.dtype, shape: ids.shape };
  },
  gradient: ({ inputs: [x, ids], upstream }) => [place(upstream, ids, x.shape[x.shape.length - 1]), undefined],
  onnx: ({ inputs: [x, ids], emitter }) => {
    const index = emitter.emit("Unsqueeze", [ids, emitter.ints([-1])]);
    return emitter.emit("Squeeze", [emitter.emit("GatherElements", [x, index], { axis: -1 }), emitter.ints([-1])]);
  },
});

/** Places each value at its index in a zero vector: [...] and int [...] to [..., length]. */
export const placeOperation = defineOperation<{ readonly length: Dim }>({
  name: "place",
  infer: (inputs, { length }) => {
    const [values, ids] = inputs;
    if (!isIndex(ids) || !sameShape(values.shape, ids.shape))
      throw shapeError("place", inputs, "values and an index for each");
    return { dtype: values.dtype, shape: [...values.shape, length] };
  },
  gradient: ({ inputs: [, ids], upstream }) => [pick(upstream, ids), undefined],
  onnx: ({ node, inputs: [values, ids], emitter }) => {
    const zero = emitter.zeros(node.dtype, node.shape);
    const [value, index] = [values, ids].map((name) => emitter.emit("Unsqueeze", [name, emitter.ints([-1])]));
    return emitter.emit("ScatterElements", [zero, index, value], { axis: -1 });
  },
});

/** Returns rows of `table` at `ids` ([n], int32 or int64). */
export function gatherRows(table: Node, ids: Node): Node {
  return apply(gatherRowsOperation, [table, ids], {});
}

/** Adds rows at the given indices. */
export function scatterAddRows(values: Node, ids: Node, rows: Dim): Node {
  return apply(scatterAddRowsOperation, [values, ids], { rows });
}

/**
 * Gathers x [rows, width] into [slots, width]: slot i holds row ids[i]; inverse[row] is a slot that
 * holds the row.
 */
export function gatherRowsWithInverse(x: Node, ids: Node, inverse: Node): Node {
  return apply(gatherRowsWithInverseOperation, [x, ids, inverse], {});
}

/** Returns x[..., ids[...]]. */
export function pick(x: Node, ids: Node): Node {
  return apply(pickOperation, [x, ids], {});
}

/** Writes rows at the given indices of zeros. */
export function place(values: Node, ids: Node, length: Dim): Node {
  return apply(placeOperation, [values, ids], { length });
}
