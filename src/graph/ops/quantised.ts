import { sameShape } from "../dim.js";
import { noGradient, apply, shapeError, type Node, type Operation } from "../node.js";

export interface BlockAttributes {
  /** Elements along the last axis that share a scale. */
  readonly blockSize: number;
}

/**
 * Block-quantised weights to float32: codes [rows, columns] (int8, uint8, int4 or uint4), scales [rows, columns / blockSize],
 * and zero points like the scales: (code - zero) * scale.
 */
export const dequantizeOperation: Operation<BlockAttributes> = {
  name: "dequantize",
  shape: (inputs, { blockSize }) => {
    const [codes, scales, zeroPoints] = inputs;
    const [rows, columns] = codes.shape as readonly number[];
    const perBlock = [rows, columns / blockSize];
    const fits =
      codes.shape.length === 2 &&
      [scales, zeroPoints].every(({ shape }) => sameShape(shape, perBlock)) &&
      zeroPoints.dtype === codes.dtype;
    if (!fits) {
      const expected = `codes [rows, columns], and a scale and a zero point of the codes' type for each ${blockSize} columns`;
      throw shapeError("dequantize", inputs, expected);
    }
    return { dtype: "float32", shape: codes.shape };
  },
  gradient: noGradient,
  onnx: ({ inputs, attributes: { blockSize }, emitter }) =>
    emitter.emit("DequantizeLinear", inputs, { attributes: { axis: 1, block_size: blockSize } }),
};

/** (codes - zeroPoints) * scales, one scale and zero point for each block of columns. */
export function dequantize(codes: Node, scales: Node, zeroPoints: Node, blockSize: number): Node {
  return apply(dequantizeOperation, [codes, scales, zeroPoints], { blockSize });
}
