import { sameDim } from "../dim.js";
import { dtypes, type DType } from "../../tensor/dtype.js";
import { INT8_PRODUCT, ZERO_CODE, type CodeType, type Emitter } from "../emitter.js";
import { apply, defineOperation, noGradient, shapeError, type Node } from "../node.js";
import { mul } from "./elementwise.js";
import { transpose } from "./layout.js";
import { matmul } from "./matmul.js";

/** Largest code. The range is symmetric, so that 0 is exact. */
const MAX_CODE = 127;

/** Steps of the second part of a 16-bit row in one step of the first. */
const PART_STEPS = 2 * MAX_CODE;

/** Avoids division by zero for all-zero rows and columns. */
const MIN_ABS_MAX = 1e-30;

/**
 * Bits to which rows are rounded. 16 bits are two parts of 8, each with a product, and nearly
 * exact.
 */
export type RowBits = 8 | 16;

const isCodeType = (dtype: DType): dtype is CodeType => dtype === "int8" || dtype === "uint8";

function emitAbsMax(emitter: Emitter, x: string, axis: number): string {
  const largest = emitter.emit("ReduceMax", [emitter.emit("Abs", [x]), emitter.ints([axis])], { keepdims: 1 });
  return emitter.emit("Max", [largest, emitter.float(MIN_ABS_MAX)]);
}

/** Codes [inner, columns] of a matrix, and their scales [columns]. */
interface EmittedCodes {
  readonly codes: string;
  readonly type: CodeType;
  readonly scales: string;
}

/** Emits unsigned codes where the processor needs them. */
function emitProductCodes(emitter: Emitter, { codes, type }: EmittedCodes): Pick<EmittedCodes, "codes" | "type"> {
  if (type === "uint8" || emitter.device !== "cpu-uint8") return { codes, type };
  // Constant codes are converted once, when a session is created.
  const unsigned = emitter.emitOnce(`unsigned ${codes}`, () => {
    const wide = emitter.emit("Cast", [codes], { to: dtypes.int32.onnx });
    const shifted = emitter.emit("Add", [wide, emitter.constant("int32", [], Int32Array.of(ZERO_CODE))]);
    return emitter.emit("Cast", [shifted], { to: dtypes.uint8.onnx });
  });
  return { codes: unsigned, type: "uint8" };
}

/** Emits x [rows, inner] times codes and their scales, with a scale for each row of x. */
function emitInt8Product(emitter: Emitter, x: string, matrix: EmittedCodes, bits: RowBits): string {
  const { codes, type } = emitProductCodes(emitter, matrix);
  // Products of the same input share its parts.
  const once = (name: string, emit: () => string) => emitter.emitOnce(`int8 ${name} of ${x}`, emit);
  const zero = emitter.constant("uint8", [], Uint8Array.of(ZERO_CODE));
  // Rows of x are unsigned codes: processors multiply unsigned by signed bytes.
  const zeros = type === "uint8" ? [zero, zero] : [zero];
  const multiply = (part: string, step: string) =>
    emitter.emit(INT8_PRODUCT, [part, codes, step, matrix.scales, ...zeros]);
  const rowScale = once("row scale", () => emitAbsMax(emitter, x, 1));
  const scaled = once("scaled rows", () => emitter.emit("Div", [x, rowScale]));
  const step = emitter.float(1 / MAX_CODE);
  const part = once("first part", () => emitter.emit("QuantizeLinear", [scaled, step, zero]));
  let product = multiply(part, step);
  if (bits === 16) {
    const smallStep = emitter.float(1 / (MAX_CODE * PART_STEPS));
    const secondPart = once("second part", () => {
      const rest = emitter.emit("Sub", [scaled, emitter.emit("DequantizeLinear", [part, step, zero])]);
      return emitter.emit("QuantizeLinear", [rest, smallStep, zero]);
    });
    product = emitter.emit("Add", [product, multiply(secondPart, smallStep)]);
  }
  return emitter.emit("Mul", [product, rowScale]);
}

/**
 * a [rows, inner] times b [inner, columns], both rounded to 8 bits: a with a scale per row, b with
 * a scale per column. b must be frozen: it is rounded once, at session creation. An approximation
 * for gradients.
 */
export const int8MatmulOperation = defineOperation<object>({
  name: "int8Matmul",
  infer: (inputs) => {
    const [a, b] = inputs;
    if (a.shape.length !== 2 || b.shape.length !== 2 || !sameDim(a.shape[1], b.shape[0]))
      throw shapeError("int8Matmul", inputs, "matrices with equal inner dimensions");
    return { dtype: a.dtype, shape: [a.shape[0], b.shape[1]] };
  },
  gradient: noGradient,
  onnx: ({ inputs: [a, b], emitter }) => {
    const columnScale = emitter.emit("Div", [emitAbsMax(emitter, b, 0), emitter.float(MAX_CODE)]);
    const codes = emitter.emit("Cast", [emitter.emit("Round", [emitter.emit("Div", [b, columnScale])])], {
      to: dtypes.int8.onnx,
    });
    const scales = emitter.emit("Squeeze", [columnScale, emitter.ints([0])]);
    return emitInt8Product(emitter, a, { codes, type: "int8", scales }, 8);
  },
});

/** A frozen matrix of 8-bit codes, with a scale per output (default 1). */
export interface Int8Weight {
  /** int8, or uint8 with 128 for 0. */
  readonly codes: Node;
  /** [out] */
  readonly scales?: Node;
}

export interface Int8GradientAttributes {
  /** Whether the weight is stored [out, in] rather than [in, out]. */
  readonly transposeB: boolean;
}

/**
 * Multiplies x [rows, in] by a frozen weight exactly; the gradient with respect to x is computed in
 * 8 bits.
 */
export const int8GradientMatmulOperation = defineOperation<Int8GradientAttributes>({
  name: "int8GradientMatmul",
  infer: ([x, weight], attributes) => matmul(x, weight, attributes),
  gradient: ({ inputs: [, weight], attributes: { transposeB }, upstream }) => [
    int8Matmul(upstream, transposeB ? weight : transpose(weight, [1, 0])),
    undefined,
  ],
  onnx: ({ inputs, attributes: { transposeB }, emitter }) =>
    emitter.emit("FusedMatMul", inputs, { transB: transposeB }),
});

export interface Int8WeightAttributes {
  /** Whether codes are stored [out, in] rather than [in, out]. */
  readonly transposeB: boolean;
  /** Bits to which the rows of x are rounded. */
  readonly bits: RowBits;
  /** Bits to which the rows of the upstream gradient are rounded. */
  readonly gradientBits: RowBits;
}

/**
 * Multiplies x [rows, in] by a frozen weight of 8-bit codes, with a scale [out] per output (default
 * 1). Whole numbers are multiplied, forward and backward; a row's result does not depend on the
 * other rows. For CPUs.
 */
export const int8WeightMatmulOperation = defineOperation<Int8WeightAttributes>({
  name: "int8WeightMatmul",
  infer: (inputs, { transposeB }) => {
    const [x, codes, scales] = inputs;
    const [inFeatures, outFeatures] = transposeB ? [...codes.shape].reverse() : codes.shape;
    const fits =
      x.shape.length === 2 &&
      codes.shape.length === 2 &&
      isCodeType(codes.dtype) &&
      sameDim(x.shape[1], inFeatures) &&
      (scales === undefined || (scales.shape.length === 1 && sameDim(scales.shape[0], outFeatures)));
    if (!fits)
      throw shapeError("int8WeightMatmul", inputs, "x [rows, in], 8-bit codes of a matrix, and a scale per output");
    return { dtype: x.dtype, shape: [x.shape[0], outFeatures] };
  },
  gradient: ({ inputs: [, codes, scales], attributes: { transposeB, gradientBits }, upstream }) => {
    const scaled = scales === undefined ? upstream : mul(upstream, scales);
    return [int8WeightMatmul(scaled, { codes }, { transposeB: !transposeB, bits: gradientBits, gradientBits })];
  },
  onnx: ({ node, inputs: [x, codes, scales = ""], attributes: { transposeB, bits }, emitter }) => {
    const matrix = transposeB ? emitter.emit("Transpose", [codes], { perm: [1, 0] }) : codes;
    const type = node.inputs[1].dtype as CodeType;
    return emitInt8Product(emitter, x, { codes: matrix, type, scales: scales || emitter.float(1) }, bits);
  },
});

/** Multiplies a [rows, inner] by a frozen b [inner, columns], both rounded to 8 bits. */
export function int8Matmul(a: Node, b: Node): Node {
  return apply(int8MatmulOperation, [a, b], {});
}

/** Multiplies x [rows, in] by a frozen weight, with a gradient rounded to 8 bits. */
export function int8GradientMatmul(x: Node, weight: Node, attributes: Int8GradientAttributes): Node {
  return apply(int8GradientMatmulOperation, [x, weight], attributes);
}

/** Multiplies x [rows, in] by a frozen weight of 8-bit codes to [rows, out]. */
export function int8WeightMatmul(x: Node, { codes, scales }: Int8Weight, attributes: Int8WeightAttributes): Node {
  return apply(int8WeightMatmulOperation, scales === undefined ? [x, codes] : [x, codes, scales], attributes);
}
