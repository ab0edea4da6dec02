import { addDims, mulDims } from "../dim.js";
import { apply, defineOperation, shapeError, type Node } from "../node.js";

export interface DropoutAttributes {
  /** Start in the noise; each layer has another. */
  readonly offset: number;
}

/**
 * Multiplies x by a mask [length] of kept (1 / (1 - p)) and dropped (0) values, repeated over the
 * elements of x from `offset` on. The gradient rebuilds the mask instead of keeping it.
 */
export const dropoutOperation = defineOperation<DropoutAttributes>({
  name: "dropout",
  infer: (inputs, { offset }) => {
    const [x, mask] = inputs;
    const [length] = mask.shape;
    if (mask.shape.length !== 1 || typeof length !== "number" || offset < 0 || offset >= length)
      throw shapeError("dropout", inputs, "values and a mask [length] of static length above the offset");
    return { dtype: x.dtype, shape: x.shape };
  },
  gradient: ({ inputs: [, mask], attributes: { offset }, upstream }) => [dropout(upstream, mask, offset), undefined],
  onnx: ({ node, inputs: [x, mask], attributes: { offset }, emitter }) => {
    const length = node.inputs[1].shape[0] as number;
    const count = mulDims(...node.shape);
    // (count + length) / length + 1 rows cover the elements and the offset.
    const rows = emitter.emit("Div", [emitter.dim(addDims(count, 2 * length)), emitter.ints([length])]);
    const shape = emitter.emit("Concat", [rows, emitter.ints([length])], { axis: 0 });
    const repeated = emitter.emit("Reshape", [emitter.emit("Expand", [mask, shape]), emitter.ints([-1])]);
    return emitter.emit("Mul", [x, emitter.reshape(emitter.slice(repeated, 0, offset, count), node.shape)]);
  },
});

/** Multiplies x by the mask [length], repeated over its elements from `offset` on. */
export function dropout(x: Node, mask: Node, offset: number): Node {
  return apply(dropoutOperation, [x, mask], { offset });
}
