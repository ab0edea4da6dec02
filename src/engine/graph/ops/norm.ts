import { sameDim } from "../dim.js";
import type { Emitter } from "../emitter.js";
import { apply, defineOperation, shapeError, type Node } from "../node.js";
import { dimValue } from "./leaves.js";
import { output } from "./layout.js";
import { add, div, exp, mul, sub } from "./elementwise.js";
import { reduceMean, reduceSum, sumToShape } from "./reduce.js";
import { ifNonEmpty } from "./if-non-empty.js";

const lastAxis = [-1];

/** Along the last axis. */
export const softmaxOperation = defineOperation<object>({
  name: "softmax",
  infer: ([x]) => ({ dtype: x.dtype, shape: x.shape }),
  gradient: ({ output: p, upstream }) => {
    const weighted = mul(upstream, p);
    return [sub(weighted, mul(p, reduceSum(weighted, lastAxis, true)))];
  },
  onnx: ({ node, inputs, emitter }) =>
    ifNonEmpty(node.shape, node, emitter, (into) => into.emit("Softmax", inputs, { axis: -1 })),
});

/** Along the last axis. */
export const logSoftmaxOperation = defineOperation<object>({
  name: "logSoftmax",
  infer: ([x]) => ({ dtype: x.dtype, shape: x.shape }),
  gradient: ({ output, upstream }) => [sub(upstream, mul(exp(output), reduceSum(upstream, lastAxis, true)))],
  onnx: ({ node, inputs: [x], emitter }) =>
    ifNonEmpty(node.shape, node, emitter, (into) => emitLogSoftmax(x, node.shape.length, into)),
});

/** Emits log-softmax along the last axis of a value of the given rank. */
export function emitLogSoftmax(x: string, rank: number, emitter: Emitter): string {
  if (emitter.device !== "webgpu") return emitter.emit("LogSoftmax", [x], { axis: -1 });
  // WebGPU has no LogSoftmax; ONNX Runtime would fall back to the CPU.
  const reduce = (opType: string, value: string) =>
    emitter.emit(opType, [value, emitter.ints([rank - 1])], { keepdims: 1 });
  const shifted = emitter.emit("Sub", [x, reduce("ReduceMax", x)]);
  const total = reduce("ReduceSum", emitter.emit("Exp", [shifted]));
  return emitter.emit("Sub", [shifted, emitter.emit("Log", [total])]);
}

export interface NormAttributes {
  readonly epsilon: number;
}

function checkNormInputs(name: string, inputs: readonly Node[]): Node {
  const [x, ...parameters] = inputs;
  const width = x.shape[x.shape.length - 1];
  if (parameters.some((p) => p.shape.length !== 1 || !sameDim(p.shape[0], width)))
    throw shapeError(name, inputs, "values [..., width] and parameters [width]");
  return x;
}

/** x / rms(x) * weight over the last axis (Zhang and Sennrich 2019). */
export const rmsNormOperation = defineOperation<NormAttributes>({
  name: "rmsNorm",
  recompute: "cheap",
  infer: (inputs) => {
    const { dtype, shape } = checkNormInputs("rmsNorm", inputs);
    return [
      { dtype, shape },
      { dtype, shape: [...shape.slice(0, -1), 1] },
    ];
  },
  gradient: ({ node, inputs: [x, weight], upstream, upstreams: [, fromRms] }) => {
    const r = output(node, 1);
    const scaled = mul(upstream, weight);
    // d r / d x = -r^3 x / width.
    let direction = reduceMean(mul(scaled, x), lastAxis, true);
    if (fromRms !== undefined) direction = add(direction, div(fromRms, dimValue(x.shape[x.shape.length - 1])));
    const projection = mul(direction, mul(r, mul(r, r)));
    return [sub(mul(scaled, r), mul(x, projection)), sumToShape(mul(upstream, mul(x, r)), weight.shape)];
  },
  onnx: ({ node, inputs, attributes: { epsilon }, emitter, isRead }) => {
    const names = emitter.emitAll("SimplifiedLayerNormalization", inputs, 2, { axis: -1, epsilon: { float: epsilon } });
    // The WebGPU kernel does not write its second output.
    return emitter.device === "webgpu" && isRead(1)
      ? [names[0], emitInverseRms(node, inputs[0], epsilon, emitter)]
      : names;
  },
});

function emitInverseRms({ shape }: Node, x: string, epsilon: number, emitter: Emitter): string {
  const axis = shape.length - 1;
  const total = emitter.emit("ReduceSumSquare", [x, emitter.ints([axis])], { keepdims: 1 });
  const mean = emitter.emit("Div", [total, emitter.floatDim(shape[axis])]);
  return emitter.emit("Reciprocal", [emitter.emit("Sqrt", [emitter.emit("Add", [mean, emitter.float(epsilon)])])]);
}

/** (x - mean) / std * weight + bias over the last axis. */
export const layerNormOperation = defineOperation<NormAttributes>({
  name: "layerNorm",
  recompute: "cheap",
  infer: (inputs) => {
    const { dtype, shape } = checkNormInputs("layerNorm", inputs);
    const statistic = { dtype, shape: [...shape.slice(0, -1), 1] };
    return [{ dtype, shape }, statistic, statistic];
  },
  gradient: ({ node, inputs: [x, weight, bias], upstream, upstreams: [, fromMean, fromDeviation] }) => {
    const r = output(node, 2);
    const width = dimValue(x.shape[x.shape.length - 1]);
    const normalized = mul(sub(x, output(node, 1)), r);
    const scaled = mul(upstream, weight);
    const centered = sub(scaled, reduceMean(scaled, lastAxis, true));
    // d r / d x = -r^2 normal / width, and d mean / d x = 1 / width.
    let direction = reduceMean(mul(scaled, normalized), lastAxis, true);
    if (fromDeviation !== undefined) direction = add(direction, div(mul(fromDeviation, r), width));
    let dx = mul(sub(centered, mul(normalized, direction)), r);
    if (fromMean !== undefined) dx = add(dx, div(fromMean, width));
    return [dx, sumToShape(mul(upstream, normalized), weight.shape), sumToShape(upstream, bias.shape)];
  },
  onnx: ({ inputs, attributes: { epsilon }, emitter }) =>
    emitter.emitAll("LayerNormalization", inputs, 3, { axis: -1, epsilon: { float: epsilon } }),
});

/** exp(x) / sum(exp(x)) along the last axis. */
export function softmax(x: Node): Node {
  return apply(softmaxOperation, [x], {});
}

/** x - log(sum(exp(x))) along the last axis. */
export function logSoftmax(x: Node): Node {
  return apply(logSoftmaxOperation, [x], {});
}

/** x [..., width] / sqrt(mean(x^2) + epsilon) * weight [width]. */
export function rmsNorm(x: Node, weight: Node, epsilon: number): Node {
  return apply(rmsNormOperation, [x, weight], { epsilon });
}

/** (x - mean) / sqrt(variance + epsilon) * weight + bias, over the last axis of x [..., width]. */
export function layerNorm(x: Node, weight: Node, bias: Node, epsilon: number): Node {
  return apply(layerNormOperation, [x, weight, bias], { epsilon });
}
