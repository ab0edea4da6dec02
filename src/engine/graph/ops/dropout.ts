import { addDims, mulDims } from "../dim.js";
import { apply, shapeError, type Node, type Operation } from "../node.js";

export interface DropoutAttributes {
  /** Where in the noise this use begins, so that no two layers drop alike. */
  readonly offset: number;
}

/**
 * x times a pattern of kept (1 / (1 - p)) and dropped (0) values: the pattern [length] repeats over the elements of x, from
 * `offset` on. The gradient multiplies by the same pattern, which is laid out anew rather than kept.
 */
export const dropoutOperation: Operation<DropoutAttributes> = {
  name: "dropout",
  shape: (inputs, { offset }) => {
    const [x, mask] = inputs;
    const [length] = mask.shape;
    if (mask.shape.length !== 1 || typeof length !== "number" || offset < 0 || offset >= length) {
      throw shapeError("dropout", inputs, "values and a pattern of fixed length, longer than its offset");
    }
    return { dtype: x.dtype, shape: x.shape };
  },
  gradient: ({ inputs: [, mask], attributes: { offset }, upstream }) => [dropout(upstream, mask, offset), undefined],
  onnx: ({ node, inputs: [x, mask], attributes: { offset }, emitter }) => {
    const length = node.inputs[1].shape[0] as number;
    const count = mulDims(...node.shape);
    // Enough copies for the elements and the offset: (count + length) / length + 1 rows.
    const rows = emitter.emit("Div", [emitter.dim(addDims(count, 2 * length)), emitter.ints([length])]);
    const shape = emitter.emit("Concat", [rows, emitter.ints([length])], { attributes: { axis: 0 } });
    const repeated = emitter.emit("Reshape", [emitter.emit("Expand", [mask, shape]), emitter.ints([-1])]);
    return emitter.emit("Mul", [x, emitter.reshape(emitter.slice(repeated, 0, offset, count), node.shape)]);
  },
};

/** x times the pattern [length] of kept and dropped values, repeated over its elements from `offset` on. */
export function dropout(x: Node, mask: Node, offset: number): Node {
  return apply(dropoutOperation, [x, mask], { offset });
}
