import { sameShape, dim } from "../dim.js";
import { Emitter, MS_DOMAIN, createValueInfo } from "../emitter.js";
import { apply, shapeError, type Node, type Operation } from "../node.js";
import { add, mul } from "./elementwise.js";
import { emitLogSoftmax, output } from "./norm.js";
import { reshape } from "./layout.js";

export interface LmHeadAttributes {
  /** logits become cap * tanh(logits / cap) when given. */
  readonly softcap: number | undefined;
  readonly hasBias: boolean;
  /** Whether each row's distribution is over some tokens alone. */
  readonly hasSets: boolean;
  /** Whether the entropy is wanted, and whether gradients flow through it. */
  readonly entropy: "none" | "value" | "gradient";
}

/** Added to the logits of tokens that cannot be chosen: far below any real one, and finite, so that 0 * it is 0. */
export const MASKED_LOGIT = -1e9;

/** Rows whose logits exist at one time; the rest wait, so that [rows, vocabulary] is never held whole. */
const CHUNK_ROWS = 256;

/**
 * Log-probabilities of chosen tokens under softmax(inverseTemperature * head(hidden)), without ever holding all logits:
 * inputs hidden [rows, width], head [vocabulary, width] (frozen), targets [rows], inverseTemperature [], bias [vocabulary]?,
 * sets [sets, vocabulary]? (true for the tokens that are in a set) and setOf [rows]? (the set that the row is a softmax over).
 * Outputs: logProbs [rows], d logProb / d hidden [rows, width], the largest log-probability of each row [rows], and as asked
 * entropy [rows] and d entropy / d hidden.
 * The forward pass computes the gradients' directions, so the backward pass only scales them by row.
 */
export const tokenLogProbsOperation: Operation<LmHeadAttributes> = {
  name: "tokenLogProbs",
  shape: (inputs, attributes) => {
    const { entropy } = attributes;
    const { hidden, head, targets, inverseTemperature, bias, sets, setOf } = nameInputs(inputs, attributes);
    const [rows, width] = hidden.shape;
    const [vocabulary] = head.shape;
    const fits =
      hidden.shape.length === 2 &&
      sameShape(head.shape, [vocabulary, width]) &&
      sameShape(targets.shape, [rows]) &&
      inverseTemperature.shape.length === 0 &&
      (bias === undefined || sameShape(bias.shape, [vocabulary])) &&
      (sets === undefined || (sets.dtype === "bool" && sameShape(sets.shape, [sets.shape[0], vocabulary]))) &&
      (setOf === undefined || sameShape(setOf.shape, [rows]));
    if (!fits) {
      const expected =
        "hidden [rows, width], head [vocabulary, width], targets [rows], a scalar, bias [vocabulary]?, sets [sets, vocabulary]?, setOf [rows]?";
      throw shapeError("tokenLogProbs", inputs, expected);
    }
    const perRow = { dtype: hidden.dtype, shape: [hidden.shape[0]] };
    const direction = { dtype: hidden.dtype, shape: hidden.shape };
    const extra = { none: [], value: [perRow], gradient: [perRow, direction] }[entropy];
    return [perRow, direction, perRow, ...extra];
  },
  gradient: ({ node, inputs: [hidden], attributes: { entropy }, upstreams }) => {
    const scaleByRow = (index: number, direction: number) => {
      const upstream = upstreams[index];
      return upstream && mul(reshape(upstream, [hidden.shape[0], 1]), output(node, direction));
    };
    const logProbsGradient = scaleByRow(0, 1);
    const entropyGradient = entropy === "gradient" ? scaleByRow(3, 4) : undefined;
    return [
      logProbsGradient && entropyGradient
        ? add(logProbsGradient, entropyGradient)
        : (logProbsGradient ?? entropyGradient),
    ];
  },
  onnx: ({ node, inputs, attributes, emitter, isRead }) => {
    const { hidden, head, targets, inverseTemperature, bias, sets, setOf } = nameInputs(inputs, attributes);
    const [rows, width] = node.inputs[0].shape;
    const one = emitter.ints([1]);
    // Rows are spread evenly over ceil(rows / CHUNK_ROWS) chunks, and the last is filled up with copies of nothing.
    const count = emitter.dim(rows);
    const rounded = emitter.emit("Add", [count, emitter.ints([CHUNK_ROWS - 1])]);
    const chunks = emitter.emit("Max", [emitter.emit("Div", [rounded, emitter.ints([CHUNK_ROWS])]), one]);
    const rowsPerChunk = emitter.emit("Div", [
      emitter.emit("Sub", [emitter.emit("Add", [count, chunks]), one]),
      chunks,
    ]);
    const size = emitter.emit("Max", [rowsPerChunk, one]);
    const paddingRows = emitter.emit("Sub", [emitter.emit("Mul", [chunks, size]), count]);
    const widthName = emitter.dim(width);
    const splitIntoChunks = (value: string, zero: string, tail: readonly string[]) => {
      const padding = emitter.emit("Expand", [
        zero,
        emitter.emit("Concat", [paddingRows, ...tail], { attributes: { axis: 0 } }),
      ]);
      const padded = emitter.emit("Concat", [value, padding], { attributes: { axis: 0 } });
      const shape = emitter.emit("Concat", [chunks, size, ...tail], { attributes: { axis: 0 } });
      return emitter.emit("Reshape", [padded, shape]);
    };
    const chunkIndices = (value: string) =>
      splitIntoChunks(
        emitter.emit("Cast", [value], { attributes: { to: 7 } }),
        emitter.constant("int64", [], BigInt64Array.of(0n)),
        [],
      );
    const scanInputs = [
      splitIntoChunks(hidden, emitter.float(0), [widthName]),
      chunkIndices(targets),
      ...(setOf === undefined ? [] : [chunkIndices(setOf)]),
    ];
    // Without a gradient, the directions would cost as much again as the logits.
    const requestedOutputs = node.outputs.flatMap((_, index) => (isRead(index) ? [index] : []));
    const body = buildChunkBody(emitter, { head, bias, inverseTemperature, width, sets }, attributes, requestedOutputs);
    const stacked = emitter.emitAll("Scan", scanInputs, {
      attributes: { body, num_scan_inputs: scanInputs.length },
      outputs: requestedOutputs.length,
    });
    return node.outputs.map(({ shape }, index) => {
      if (!requestedOutputs.includes(index)) return "";
      const tail = shape.length === 2 ? [widthName] : [];
      const flat = emitter.emit("Reshape", [
        stacked[requestedOutputs.indexOf(index)],
        emitter.emit("Concat", [emitter.ints([-1]), ...tail], { attributes: { axis: 0 } }),
      ]);
      return emitter.slice(flat, 0, 0, rows);
    });
  },
};

interface ChunkContext {
  readonly head: string;
  readonly bias: string | undefined;
  readonly inverseTemperature: string;
  readonly width: Node["shape"][number];
  readonly sets: string | undefined;
}

/** The scan's body: one chunk of hidden states [size, width], targets [size] and sets' numbers [size]?; gives the outputs of the numbers `wanted`. */
function buildChunkBody(
  parent: Emitter,
  { head, bias, inverseTemperature, width, sets }: ChunkContext,
  { softcap }: LmHeadAttributes,
  requestedOutputs: readonly number[],
) {
  const e = new Emitter(parent);
  const hidden = e.newName("hidden");
  const targets = e.newName("targets");
  const setOf = e.newName("set_of");
  const last = e.ints([-1]);
  // WebGPU has no FusedMatMul; it would run on the processor.
  const matmulOp =
    e.device === "webgpu" ? { opType: "Gemm", domain: "" } : { opType: "FusedMatMul", domain: MS_DOMAIN };
  let logits = e.emit(matmulOp.opType, [hidden, head], { domain: matmulOp.domain, attributes: { transB: 1 } });
  if (bias !== undefined) logits = e.emit("Add", [logits, bias]);
  let tanhLogits: string | undefined;
  if (softcap !== undefined) {
    tanhLogits = e.emit("Tanh", [e.emit("Div", [logits, e.float(softcap)])]);
    logits = e.emit("Mul", [tanhLogits, e.float(softcap)]);
  }
  const scaledLogits = e.emit("Mul", [logits, inverseTemperature]);
  const logProbs = emitLogSoftmax(
    sets === undefined ? scaledLogits : maskLogits(scaledLogits, { sets, setOf }, e),
    2,
    e,
  );
  // What only some of the outputs need is emitted when the first of them asks for it.
  const probs = () => e.emitOnce("probs", () => e.emit("Exp", [logProbs]));
  const index = () => e.emitOnce("index", () => e.emit("Unsqueeze", [targets, last]));
  const atTarget = (value: string) => e.emit("GatherElements", [value, index()], { attributes: { axis: -1 } });
  /** d capped logits / d logits. */
  const capDerivative = (capped: string) =>
    e.emitOnce("slope", () => e.emit("Sub", [e.float(1), e.emit("Mul", [capped, capped])]));
  /** (d value / d logits) through the cap and the head, to [size, width]. */
  const backpropThroughHead = (gradient: string) => {
    const uncapped = tanhLogits === undefined ? gradient : e.emit("Mul", [gradient, capDerivative(tanhLogits)]);
    return e.emit("Mul", [e.emit("MatMul", [uncapped, head]), inverseTemperature]);
  };
  const targetLogProbs = () => e.emit("Squeeze", [atTarget(logProbs), last]);
  const maxLogProbs = () => e.emit("ReduceMax", [logProbs, e.ints([1])], { attributes: { keepdims: 0 } });
  const logProbDirection = () => {
    const row = e.emit("Gather", [head, targets], { attributes: { axis: 0 } });
    const targetRow = tanhLogits === undefined ? row : e.emit("Mul", [row, atTarget(capDerivative(tanhLogits))]);
    return e.emit("Sub", [e.emit("Mul", [targetRow, inverseTemperature]), backpropThroughHead(probs())]);
  };
  const weighted = () => e.emitOnce("weighted", () => e.emit("Mul", [probs(), logProbs]));
  /** Minus the entropy. */
  const negativeEntropy = () =>
    e.emitOnce("negative", () => e.emit("ReduceSum", [weighted(), e.ints([1])], { attributes: { keepdims: 1 } }));
  const entropy = () => e.emit("Squeeze", [e.emit("Neg", [negativeEntropy()]), last]);
  // d entropy / d logits = -p (log p + entropy).
  const entropyDirection = () =>
    backpropThroughHead(e.emit("Sub", [e.emit("Mul", [probs(), negativeEntropy()]), weighted()]));

  const size = dim(e.newName("size"));
  const outputs = [
    { value: targetLogProbs, shape: [size] },
    { value: logProbDirection, shape: [size, width] },
    { value: maxLogProbs, shape: [size] },
    { value: entropy, shape: [size] },
    { value: entropyDirection, shape: [size, width] },
  ];
  return e.toGraph(
    "chunk",
    [
      createValueInfo(hidden, "float32", [size, width]),
      createValueInfo(targets, "int64", [size]),
      ...(sets === undefined ? [] : [createValueInfo(setOf, "int64", [size])]),
    ],
    requestedOutputs.map((index) => createValueInfo(outputs[index].value(), "float32", outputs[index].shape)),
  );
}

/** Logits [size, vocabulary] of which those outside a row's set count for nothing. */
function maskLogits(
  logits: string,
  { sets, setOf }: { readonly sets: string; readonly setOf: string },
  e: Emitter,
): string {
  const inSet = e.emit("Gather", [sets, setOf], { attributes: { axis: 0 } });
  return e.emit("Where", [inSet, logits, e.float(MASKED_LOGIT)]);
}

/** The operation's inputs; those that it was not given are undefined. */
function nameInputs<Value>(inputs: readonly Value[], { hasBias, hasSets }: LmHeadAttributes) {
  const [hidden, head, targets, inverseTemperature, ...others] = inputs;
  const bias = hasBias ? others[0] : undefined;
  const [sets, setOf] = hasSets ? others.slice(-2) : [undefined, undefined];
  return { hidden, head, targets, inverseTemperature, bias, sets, setOf };
}

/** Sets of tokens, and which of them each row is a softmax over. */
export interface AllowedTokenSets {
  /** [sets, vocabulary], bool. */
  readonly sets: Node;
  /** [rows] */
  readonly setOf: Node;
}

export interface LmHeadInputs {
  /** [rows, width] */
  readonly hidden: Node;
  /** [vocabulary, width], frozen. */
  readonly head: Node;
  /** [vocabulary], frozen. */
  readonly bias?: Node;
  /** Token ids [rows]. */
  readonly targets: Node;
  /** Scalar; 1 / temperature. */
  readonly inverseTemperature: Node;
  readonly softcap?: number;
  /** Without them, each row is a softmax over the whole vocabulary. A row's target must be in its set. */
  readonly allowedTokens?: AllowedTokenSets;
  readonly entropy?: LmHeadAttributes["entropy"];
}

/**
 * Log-probability of each row's target, the row's largest log-probability (without a gradient), and the entropy where asked for, each
 * [rows]; nothing of size [rows, vocabulary] is kept.
 */
export function tokenLogProbs({
  hidden,
  head,
  bias,
  targets,
  inverseTemperature,
  softcap,
  allowedTokens,
  entropy = "none",
}: LmHeadInputs): {
  logProbs: Node;
  maxLogProbs: Node;
  entropy: Node | undefined;
} {
  const others = [
    ...(bias === undefined ? [] : [bias]),
    ...(allowedTokens === undefined ? [] : [allowedTokens.sets, allowedTokens.setOf]),
  ];
  const attributes = { softcap, hasBias: bias !== undefined, hasSets: allowedTokens !== undefined, entropy };
  const node = apply(tokenLogProbsOperation, [hidden, head, targets, inverseTemperature, ...others], attributes);
  return {
    logProbs: node,
    maxLogProbs: output(node, 2),
    entropy: entropy === "none" ? undefined : output(node, 3),
  };
}
