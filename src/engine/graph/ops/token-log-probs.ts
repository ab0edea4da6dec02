import { sameShape, dim, type Dim } from "../dim.js";
import { createCodedMatrix, createFloatMatrix, type OutputMatrix } from "./output-matrix.js";
import { Emitter, createValueInfo } from "../emitter.js";
import { apply, defineOperation, shapeError, type Node } from "../node.js";
import { add, mul } from "./elementwise.js";
import { emitLogSoftmax } from "./norm.js";
import { output, reshape } from "./layout.js";

export interface LmHeadAttributes {
  /** If set, logits become cap * tanh(logits / cap). */
  readonly softcap: number | undefined;
  readonly hasBias: boolean;
  /** Whether the output matrix is int8 codes with a scale per token. */
  readonly hasScales: boolean;
  /** Bytes of such a matrix's values in memory at once. */
  readonly tileBytes: number;
  /** Whether each row's softmax is restricted to a set of tokens. */
  readonly hasSets: boolean;
  /** Whether to compute the entropy, and whether gradients flow through it. */
  readonly entropy: "none" | "value" | "gradient";
}

/** Logit of disallowed tokens: far below any real logit, and finite, so that 0 * it is 0. */
export const MASKED_LOGIT = -1e9;

/** Most rows whose logits are in memory at once, and most logits: 128 MB fit into any buffer. */
const CHUNK_ROWS = 256;
const CHUNK_LOGITS = 2 ** 25;

/**
 * Returns how many rows have their logits in memory at once; [rows, vocabulary] never exists as a
 * whole. Half as many where the output matrix has codes, since joining the tiles' logits takes
 * another copy.
 */
export function countLogitRows(vocabulary: Dim, { hasScales = false } = {}): number {
  const rows =
    typeof vocabulary === "number" ? Math.min(CHUNK_ROWS, Math.floor(CHUNK_LOGITS / vocabulary)) : CHUNK_ROWS;
  return hasScales ? Math.ceil(rows / 2) : rows;
}

/** Bytes of an output matrix's values in memory at once where it is stored as codes. */
const TILE_BYTES = 2 ** 25;

/**
 * Log-probabilities of the targets under softmax(inverseTemperature * head(hidden)), computed in
 * chunks of rows. Inputs: hidden [rows, width], head [vocabulary, width] (frozen), targets [rows],
 * inverseTemperature [], scales [vocabulary]? (of a head of int8 codes), bias [vocabulary]?, sets
 * [sets, vocabulary]? (true for tokens in a set) and setIndices [rows]? (the set of each row).
 * Outputs: logProbs [rows], d logProb / d hidden [rows, width] and, as requested, entropy [rows]
 * and d entropy / d hidden [rows, width]. The forward pass computes the gradients' directions; the
 * backward pass only scales them by row.
 */
export const tokenLogProbsOperation = defineOperation<LmHeadAttributes>({
  name: "tokenLogProbs",
  infer: (inputs, attributes) => {
    const { entropy } = attributes;
    const named = nameInputs(inputs, attributes);
    const { hidden, head, targets, inverseTemperature, scales, bias, sets, setIndices } = named;
    const [rows, width] = hidden.shape;
    const [vocabulary] = head.shape;
    const fits =
      hidden.shape.length === 2 &&
      sameShape(head.shape, [vocabulary, width]) &&
      head.dtype === (scales === undefined ? hidden.dtype : "int8") &&
      (scales === undefined || sameShape(scales.shape, [vocabulary])) &&
      sameShape(targets.shape, [rows]) &&
      inverseTemperature.shape.length === 0 &&
      (bias === undefined || sameShape(bias.shape, [vocabulary])) &&
      (sets === undefined || (sets.dtype === "bool" && sameShape(sets.shape, [sets.shape[0], vocabulary]))) &&
      (setIndices === undefined || sameShape(setIndices.shape, [rows]));
    if (!fits) {
      const expected =
        "hidden [rows, width], head [vocabulary, width], targets [rows], a scalar, scales [vocabulary]?, bias [vocabulary]?, sets [sets, vocabulary]?, setIndices [rows]?";
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
    const named = nameInputs(inputs, attributes);
    const { hidden, head: weights, targets, inverseTemperature, scales, bias, sets, setIndices } = named;
    const [rows, width] = node.inputs[0].shape;
    const one = emitter.ints([1]);
    const maxRows = countLogitRows(node.inputs[1].shape[0], attributes);
    // Rows are spread evenly over ceil(rows / maxRows) chunks; the last is padded.
    const count = emitter.dim(rows);
    const rounded = emitter.emit("Add", [count, emitter.ints([maxRows - 1])]);
    const chunks = emitter.emit("Max", [emitter.emit("Div", [rounded, emitter.ints([maxRows])]), one]);
    const rowsPerChunk = emitter.emit("Div", [
      emitter.emit("Sub", [emitter.emit("Add", [count, chunks]), one]),
      chunks,
    ]);
    const size = emitter.emit("Max", [rowsPerChunk, one]);
    const paddingRows = emitter.emit("Sub", [emitter.emit("Mul", [chunks, size]), count]);
    const widthName = emitter.dim(width);
    const splitIntoChunks = (value: string, zero: string, tail: readonly string[]) => {
      const padding = emitter.emit("Expand", [zero, emitter.emit("Concat", [paddingRows, ...tail], { axis: 0 })]);
      const padded = emitter.emit("Concat", [value, padding], { axis: 0 });
      const shape = emitter.emit("Concat", [chunks, size, ...tail], { axis: 0 });
      return emitter.emit("Reshape", [padded, shape]);
    };
    const chunkIndices = (value: string) =>
      splitIntoChunks(
        emitter.emit("Cast", [value], { to: 7 }),
        emitter.constant("int64", [], BigInt64Array.of(0n)),
        [],
      );
    const scanInputs = [
      splitIntoChunks(hidden, emitter.float(0), [widthName]),
      chunkIndices(targets),
      ...(setIndices === undefined ? [] : [chunkIndices(setIndices)]),
    ];
    // Without a gradient, the directions would double the cost.
    const requestedOutputs = node.outputs.flatMap((_, index) => (isRead(index) ? [index] : []));
    const head =
      scales === undefined
        ? createFloatMatrix(weights)
        : createCodedMatrix({
            codes: weights,
            scales,
            shape: node.inputs[1].shape as readonly number[],
            tileBytes: attributes.tileBytes,
          });
    const body = buildChunkBody(emitter, { head, bias, inverseTemperature, width, sets }, attributes, requestedOutputs);
    const stacked = emitter.emitAll("Scan", scanInputs, requestedOutputs.length, {
      body,
      num_scan_inputs: scanInputs.length,
    });
    return node.outputs.map(({ shape }, index) => {
      if (!requestedOutputs.includes(index)) return "";
      const tail = shape.length === 2 ? [widthName] : [];
      const flat = emitter.emit("Reshape", [
        stacked[requestedOutputs.indexOf(index)],
        emitter.emit("Concat", [emitter.ints([-1]), ...tail], { axis: 0 }),
      ]);
      return emitter.slice(flat, 0, 0, rows);
    });
  },
});

interface ChunkContext {
  readonly head: OutputMatrix;
  readonly bias: string | undefined;
  readonly inverseTemperature: string;
  readonly width: Node["shape"][number];
  readonly sets: string | undefined;
}

/**
 * Builds the scan's body, which maps a chunk of hidden states [size, width], targets [size] and set
 * indices [size]? to the requested outputs.
 */
function buildChunkBody(
  parent: Emitter,
  { head, bias, inverseTemperature, width, sets }: ChunkContext,
  { softcap }: LmHeadAttributes,
  requestedOutputs: readonly number[],
) {
  const e = new Emitter(parent);
  const hidden = e.newName("hidden");
  const targets = e.newName("targets");
  const setIndices = e.newName("set_indices");
  const last = e.ints([-1]);
  let logits = head.multiply(hidden, e);
  if (bias !== undefined) logits = e.emit("Add", [logits, bias]);
  let tanhLogits: string | undefined;
  if (softcap !== undefined) {
    tanhLogits = e.emit("Tanh", [e.emit("Div", [logits, e.float(softcap)])]);
    logits = e.emit("Mul", [tanhLogits, e.float(softcap)]);
  }
  const scaledLogits = e.emit("Mul", [logits, inverseTemperature]);
  const logProbs = emitLogSoftmax(
    sets === undefined ? scaledLogits : maskLogits(scaledLogits, { sets, setIndices }, e),
    2,
    e,
  );
  // Values needed by some outputs only are emitted on first use.
  const probs = () => e.emitOnce("probs", () => e.emit("Exp", [logProbs]));
  const index = () => e.emitOnce("index", () => e.emit("Unsqueeze", [targets, last]));
  const atTarget = (value: string) => e.emit("GatherElements", [value, index()], { axis: -1 });
  /** d softcapped logits / d logits. */
  const capDerivative = (capped: string) =>
    e.emitOnce("slope", () => e.emit("Sub", [e.float(1), e.emit("Mul", [capped, capped])]));
  /** Backpropagates d value / d logits through the cap and the head to [size, width]. */
  const backpropThroughHead = (gradient: string) => {
    const uncapped = tanhLogits === undefined ? gradient : e.emit("Mul", [gradient, capDerivative(tanhLogits)]);
    return e.emit("Mul", [head.backpropagate(uncapped, e), inverseTemperature]);
  };
  const targetLogProbs = () => e.emit("Squeeze", [atTarget(logProbs), last]);
  const maxLogProbs = () => e.emit("ReduceMax", [logProbs, e.ints([1])], { keepdims: 0 });
  const logProbDirection = () => {
    const row = head.gather(targets, e);
    const targetRow = tanhLogits === undefined ? row : e.emit("Mul", [row, atTarget(capDerivative(tanhLogits))]);
    return e.emit("Sub", [e.emit("Mul", [targetRow, inverseTemperature]), backpropThroughHead(probs())]);
  };
  const weighted = () => e.emitOnce("weighted", () => e.emit("Mul", [probs(), logProbs]));
  /** Minus the entropy. */
  const negativeEntropy = () =>
    e.emitOnce("negative", () => e.emit("ReduceSum", [weighted(), e.ints([1])], { keepdims: 1 }));
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
      ...(sets === undefined ? [] : [createValueInfo(setIndices, "int64", [size])]),
    ],
    requestedOutputs.map((index) => createValueInfo(outputs[index].value(), "float32", outputs[index].shape)),
  );
}

/** Masks the logits [size, vocabulary] of tokens outside each row's set. */
function maskLogits(
  logits: string,
  { sets, setIndices }: { readonly sets: string; readonly setIndices: string },
  e: Emitter,
): string {
  const inSet = e.emit("Gather", [sets, setIndices], { axis: 0 });
  return e.emit("Where", [inSet, logits, e.float(MASKED_LOGIT)]);
}

/** Names the inputs; absent ones are undefined. */
function nameInputs<Value>(inputs: readonly Value[], { hasScales, hasBias, hasSets }: LmHeadAttributes) {
  const [hidden, head, targets, inverseTemperature, ...others] = inputs;
  const scales = hasScales ? others.shift() : undefined;
  const bias = hasBias ? others.shift() : undefined;
  const [sets, setIndices] = hasSets ? others : [undefined, undefined];
  return { hidden, head, targets, inverseTemperature, scales, bias, sets, setIndices };
}

/** Sets of allowed tokens, and the set of each row. */
export interface AllowedTokenSets {
  /** [sets, vocabulary], bool. */
  readonly sets: Node;
  /** [rows] */
  readonly setIndices: Node;
}

/** Inputs of the language-model head: hidden states, targets, output matrix and allowed tokens. */
export interface LmHeadInputs {
  /** [rows, width] */
  readonly hidden: Node;
  /** [vocabulary, width], frozen: float32 values, or int8 codes with `scales`. */
  readonly head: Node;
  /** [vocabulary], frozen. */
  readonly scales?: Node;
  /** Bytes of values to which codes are widened at a time. Default 32 MB. */
  readonly tileBytes?: number;
  /** [vocabulary], frozen. */
  readonly bias?: Node;
  /** Token ids [rows]. */
  readonly targets: Node;
  /** Scalar; 1 / temperature. */
  readonly inverseTemperature: Node;
  readonly softcap?: number;
  /**
   * Restricts each row's softmax to a set, which must contain its target; default the whole
   * vocabulary.
   */
  readonly allowedTokens?: AllowedTokenSets;
  readonly entropy?: LmHeadAttributes["entropy"];
}

/**
 * Returns the log-probability of each row's target and, if requested, the entropy, both [rows],
 * without keeping anything of size [rows, vocabulary].
 */
export function tokenLogProbs({
  hidden,
  head,
  scales,
  tileBytes = TILE_BYTES,
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
    ...(scales === undefined ? [] : [scales]),
    ...(bias === undefined ? [] : [bias]),
    ...(allowedTokens === undefined ? [] : [allowedTokens.sets, allowedTokens.setIndices]),
  ];
  const attributes = {
    softcap,
    hasBias: bias !== undefined,
    hasScales: scales !== undefined,
    tileBytes,
    hasSets: allowedTokens !== undefined,
    entropy,
  };
  const node = apply(tokenLogProbsOperation, [hidden, head, targets, inverseTemperature, ...others], attributes);
  return {
    logProbs: node,
    maxLogProbs: output(node, 2),
    entropy: entropy === "none" ? undefined : output(node, 3),
  };
}
