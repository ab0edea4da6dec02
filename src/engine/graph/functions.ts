/** Graph functions for models and losses. */
export { constant, dimValue, input, intScalar, scalar, weight } from "./ops/leaves.js";
export {
  abs,
  add,
  and,
  cast,
  clip,
  div,
  equal,
  erf,
  exp,
  gelu,
  geluTanh,
  less,
  lessEqual,
  log,
  maximum,
  minimum,
  mul,
  neg,
  not,
  or,
  sigmoid,
  silu,
  sqrt,
  square,
  stopGradient,
  sub,
  tanh,
  where,
  withGradientOf,
} from "./ops/elementwise.js";
export { dropout } from "./ops/dropout.js";
export { int8GradientMatmul } from "./ops/int8.js";
export { MASKED_LOGIT, tokenLogProbs, type LmHeadInputs, type AllowedTokenSets } from "./ops/token-log-probs.js";
export { gatherRows, pick, place, gatherRowsWithInverse, scatterAddRows } from "./ops/indexing.js";
export { concat, expand, pad, reshape, slice, split, transpose } from "./ops/layout.js";
export { addMatmul, matmul } from "./ops/matmul.js";
export { layerNorm, logSoftmax, rmsNorm, softmax } from "./ops/norm.js";
export { dequantize, quantizedMatmul, type QuantizedWeight } from "./ops/quantized.js";
export { argMax, reduceMax, reduceMean, reduceSum } from "./ops/reduce.js";
export { rotary } from "./ops/rotary.js";
