import { LlamaGymError } from "../../errors.js";
import { noGradient, apply, type Node, type Operation } from "../node.js";

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
  shape: ([codes, scales], { blockSize }) => {
    const columns = codes.shape[codes.shape.length - 1] as number;
    if (columns !== (scales.shape[scales.shape.length - 1] as number) * blockSize) {
      throw new LlamaGymError(
        "SHAPE_MISMATCH",
        `dequantize needs one scale for each ${blockSize} of ${columns} columns.`,
      );
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
