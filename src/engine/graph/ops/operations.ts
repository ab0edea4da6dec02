import type { Operation } from "../node.js";
import { constantOperation, dimValueOperation, inputOperation, weightOperation } from "./leaves.js";
import * as elementwise from "./elementwise.js";
import { int8GradientMatmulOperation, int8MatmulOperation } from "./int8.js";
import { dropoutOperation } from "./dropout.js";
import { tokenLogProbsOperation } from "./token-log-probs.js";
import {
  gatherRowsOperation,
  pickOperation,
  placeOperation,
  gatherRowsWithInverseOperation,
  scatterAddRowsOperation,
} from "./indexing.js";
import {
  concatOperation,
  expandOperation,
  padOperation,
  reshapeOperation,
  sliceOperation,
  splitOperation,
  transposeOperation,
} from "./layout.js";
import { addMatmulOperation, matmulOperation } from "./matmul.js";
import {
  layerNormOperation,
  logSoftmaxOperation,
  outputOperation,
  rmsNormOperation,
  softmaxOperation,
} from "./norm.js";
import { dequantizeOperation, quantizedMatmulOperation } from "./quantized.js";
import { argMaxOperation, reduceMaxOperation, reduceSumOperation } from "./reduce.js";
import { rotaryOperation } from "./rotary.js";

/**
 * Every operation of the graph. The operations' tests are a table over these names, so an operation without a test
 * does not compile, as one without a gradient or an ONNX form does not.
 */
export const operations = {
  constant: constantOperation,
  input: inputOperation,
  weight: weightOperation,
  dimValue: dimValueOperation,
  add: elementwise.addOperation,
  sub: elementwise.subOperation,
  mul: elementwise.mulOperation,
  div: elementwise.divOperation,
  minimum: elementwise.minimumOperation,
  maximum: elementwise.maximumOperation,
  neg: elementwise.negOperation,
  exp: elementwise.expOperation,
  log: elementwise.logOperation,
  sqrt: elementwise.sqrtOperation,
  abs: elementwise.absOperation,
  tanh: elementwise.tanhOperation,
  sigmoid: elementwise.sigmoidOperation,
  erf: elementwise.erfOperation,
  silu: elementwise.siluOperation,
  gelu: elementwise.geluOperation,
  geluTanh: elementwise.geluTanhOperation,
  less: elementwise.lessOperation,
  lessEqual: elementwise.lessEqualOperation,
  equal: elementwise.equalOperation,
  and: elementwise.andOperation,
  or: elementwise.orOperation,
  not: elementwise.notOperation,
  where: elementwise.whereOperation,
  cast: elementwise.castOperation,
  stopGradient: elementwise.stopGradientOperation,
  withGradientOf: elementwise.withGradientOfOperation,
  reduceSum: reduceSumOperation,
  reduceMax: reduceMaxOperation,
  argMax: argMaxOperation,
  reshape: reshapeOperation,
  transpose: transposeOperation,
  expand: expandOperation,
  concat: concatOperation,
  slice: sliceOperation,
  split: splitOperation,
  pad: padOperation,
  matmul: matmulOperation,
  addMatmul: addMatmulOperation,
  gatherRows: gatherRowsOperation,
  scatterAddRows: scatterAddRowsOperation,
  gatherRowsWithInverse: gatherRowsWithInverseOperation,
  pick: pickOperation,
  place: placeOperation,
  softmax: softmaxOperation,
  logSoftmax: logSoftmaxOperation,
  rmsNorm: rmsNormOperation,
  layerNorm: layerNormOperation,
  output: outputOperation,
  rotary: rotaryOperation,
  tokenLogProbs: tokenLogProbsOperation,
  dequantize: dequantizeOperation,
  quantizedMatmul: quantizedMatmulOperation,
  int8Matmul: int8MatmulOperation,
  int8GradientMatmul: int8GradientMatmulOperation,
  dropout: dropoutOperation,
} satisfies Record<string, Operation<never>>;

export type OperationName = keyof typeof operations;
