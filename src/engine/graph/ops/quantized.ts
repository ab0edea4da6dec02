import { sameShape } from "../dim.js";
import { apply, defineOperation, noGradient, shapeError, type Node } from "../node.js";
import { matmul } from "./matmul.js";

export interface BlockAttributes {
  /** Elements along the last axis per scale. */
  readonly blockSize: number;
}

/**
 * Dequantizes block-quantized weights: (code - zero point) * scale for codes [rows, columns] (int8,
 * uint8, int4 or uint4), scales and zero points [rows, columns / blockSize].
 */
export const dequantizeOperation = defineOperation<BlockAttributes>({
  name: "dequantize",
  infer: (inputs, { blockSize }) => {
    const [codes, scales, zeroPoints] = inputs;
    const [rows, columns] = codes.shape as readonly number[];
    const perBlock = [rows, columns / blockSize];
    const fits =
      codes.shape.length === 2 &&
      [scales, zeroPoints].every(({ shape }) => sameShape(shape, perBlock)) &&
      zeroPoints.dtype === codes.dtype;
    if (!fits) {
      const expected = `codes [rows, columns] with a scale and a zero point of the codes' type per ${blockSize} columns`;
      throw shapeError("dequantize", inputs, expected);
    }
    return { dtype: "float32", shape: codes.shape };
  },
  gradient: noGradient,
  onnx: ({ inputs, attributes: { blockSize }, emitter }) =>
    emitter.emit("DequantizeLinear", inputs, { axis: 1, block_size: blockSize }),
});

export interface QuantizedMatmulAttributes extends BlockAttributes {
  readonly bits: 4 | 8;
}

/**
 * Multiplies x [rows, in] by the transpose of block-quantized weights [out, in] without
 * dequantizing them as a whole. Inputs: x, the codes as bytes [out, in / blockSize, blockSize *
 * bits / 8], scales [out, in / blockSize], and for the gradient the same codes by element [out, in]
 * and their zero points (the middle code).
 */
export const quantizedMatmulOperation = defineOperation<QuantizedMatmulAttributes>({
  name: "quantizedMatmul",
  valueInputCount: 3,
  infer: (inputs, { bits, blockSize }) => {
    const [x, bytes, scales, codes] = inputs;
    const [rows, width] = x.shape;
    const [outFeatures, blocks, blockBytes] = bytes.shape;
    const fits =
      width === (blocks as number) * blockSize &&
      blockBytes === (blockSize * bits) / 8 &&
      scales.shape[1] === blocks &&
      codes.shape[1] === width;
    if (!fits) throw shapeError("quantizedMatmul", inputs, `x [rows, in] and weights in blocks of ${blockSize}`);
    return { dtype: x.dtype, shape: [rows, outFeatures] };
  },
  gradient: ({ inputs: [, , scales, codes, zeroPoints], attributes: { blockSize }, upstream }) => [
    matmul(upstream, dequantize(codes, scales, zeroPoints, blockSize)),
  ],
  onnx: ({ node, inputs: [x, bytes, scales], attributes: { bits, blockSize }, emitter }) =>
    emitter.emit("MatMulNBits", [x, bytes, scales], {
      K: node.inputs[0].shape[1] as number,
      N: node.shape[1] as number,
      bits,
      block_size: blockSize,
      // Multiply in float32: rounding activations would make the sampler's and the trainer's values
      // differ.
      accuracy_level: 1,
    }),
});

/** Returns (codes - zeroPoints) * scales, with one scale and zero point per block of columns. */
export function dequantize(codes: Node, scales: Node, zeroPoints: Node, blockSize: number): Node {
  return apply(dequantizeOperation, [codes, scales, zeroPoints], { blockSize });
}

/** Weight in blocks of 8 or 4 bits with their scales. */
export interface QuantizedWeight {
  readonly bytes: Node;
  readonly codes: Node;
  readonly scales: Node;
  readonly zeroPoints: Node;
}

/** Multiplies x [rows, in] by block-quantized weights to [rows, out]. */
export function quantizedMatmul(
  x: Node,
  { bytes, codes, scales, zeroPoints }: QuantizedWeight,
  attributes: QuantizedMatmulAttributes,
): Node {
  return apply(quantizedMatmulOperation, [x, bytes, scales, codes, zeroPoints], attributes);
}
