export * from "./dim.js";
export { gradient, type GradientOptions } from "./gradient.js";
export { apply, defineOperation, type Node, type Operation, type TensorType } from "./node.js";
export { compile, type CompiledGraph, type NamedTensorType, type WeightLocation } from "./compile.js";
export { constant, dimValue, input, intScalar, scalar, weight } from "./ops/leaves.js";
export * from "./ops/elementwise.js";
export { dropout } from "./ops/dropout.js";
export { ZERO_CODE, type CodeType } from "./emitter.js";
export { int8GradientMatmul, int8WeightMatmul, type Int8Weight, type RowBits } from "./ops/int8.js";
export {
  countLogitRows,
  MASKED_LOGIT,
  tokenLogProbs,
  type LmHeadInputs,
  type AllowedTokenSets,
} from "./ops/token-log-probs.js";
export { gatherRows, pick, place, gatherRowsWithInverse, scatterAddRows } from "./ops/indexing.js";
export { computeAfter, concat, expand, output, pad, reshape, slice, split, transpose } from "./ops/layout.js";
export { addMatmul, matmul } from "./ops/matmul.js";
export { layerNorm, logSoftmax, rmsNorm, softmax } from "./ops/norm.js";
export { dequantize, quantizedMatmul, type QuantizedWeight } from "./ops/quantized.js";
export { argMax, reduceMax, reduceMean, reduceSum } from "./ops/reduce.js";
export { rotary } from "./ops/rotary.js";
