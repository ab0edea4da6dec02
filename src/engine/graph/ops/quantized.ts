import { sameShape } from "../dim.js";
import { MS_DOMAIN } from "../emitter.js";
import { apply, noGradient, shapeError, type Node, type Operation } from "../node.js";
import { matmul } from "./matmul.js";

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

export interface QuantizedMatmulAttributes extends BlockAttributes {
  readonly bits: 4 | 8;
}

/**
 * x [rows, in] times the transpose of block-quantised weights [out, in], which are never widened whole: inputs x, the codes as
 * bytes [out, in / blockSize, blockSize * bits / 8], scales [out, in / blockSize], and for the gradient the same codes by
 * element [out, in] with their zero points (the middle code).
 */
export const quantizedMatmulOperation: Operation<QuantizedMatmulAttributes> = {
  name: "quantisedMatmul",
  valueInputCount: 3,
  shape: (inputs, { bits, blockSize }) => {
    const [x, bytes, scales, codes] = inputs;
    const [rows, width] = x.shape;
    const [outFeatures, blocks, blockBytes] = bytes.shape;
    const fits =
      width === (blocks as number) * blockSize &&
      blockBytes === (blockSize * bits) / 8 &&
      scales.shape[1] === blocks &&
      codes.shape[1] === width;
    if (!fits) throw shapeError("quantisedMatmul", inputs, `x [rows, in] and weights in blocks of ${blockSize}`);
    return { dtype: x.dtype, shape: [rows, outFeatures] };
  },
  gradient: ({ inputs: [, , scales, codes, zeroPoints], attributes: { blockSize }, upstream }) => [
    matmul(upstream, dequantize(codes, scales, zeroPoints, blockSize)),
  ],
  onnx: ({ node, inputs: [x, bytes, scales], attributes: { bits, blockSize }, emitter }) =>
    emitter.emit("MatMulNBits", [x, bytes, scales], {
      domain: MS_DOMAIN,
      attributes: {
        K: node.inputs[0].shape[1] as number,
        N: node.shape[1] as number,
        bits,
        block_size: blockSize,
        // Products in float32: rounding the activations too would part the sampler from the trainer.
        accuracy_level: 1,
      },
    }),
};

/** (codes - zeroPoints) * scales, one scale and zero point for each block of columns. */
export function dequantize(codes: Node, scales: Node, zeroPoints: Node, blockSize: number): Node {
  return apply(dequantizeOperation, [codes, scales, zeroPoints], { blockSize });
}

export interface QuantizedWeight {
  readonly bytes: Node;
  readonly codes: Node;
  readonly scales: Node;
  readonly zeroPoints: Node;
}

/** x [rows, in] to [rows, out] through block-quantised weights. */
export function quantizedMatmul(
  x: Node,
  { bytes, codes, scales, zeroPoints }: QuantizedWeight,
  attributes: QuantizedMatmulAttributes,
): Node {
  return apply(quantizedMatmulOperation, [x, bytes, scales, codes, zeroPoints], attributes);
}
