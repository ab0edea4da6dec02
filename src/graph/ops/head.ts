import { sameShape, symbol } from "../dim.js";
import { Emitter, MICROSOFT, valueInfo } from "../emitter.js";
import { apply, shapeError, type Node, type Operation } from "../node.js";
import { add, mul } from "./elementwise.js";
import { emitLogSoftmax, output } from "./normalisation.js";
import { reshape } from "./layout.js";

export interface HeadAttributes {
  /** logits become cap * tanh(logits / cap) when given. */
  readonly softcap: number | undefined;
  readonly hasBias: boolean;
  /** Whether each row's distribution is over some tokens alone. */
  readonly hasSets: boolean;
  /** Whether the entropy is wanted, and whether gradients flow through it. */
  readonly entropy: "none" | "value" | "gradient";
}

/** Added to the logits of tokens that cannot be chosen: far below any real one, and finite, so that 0 * it is 0. */
export const BARRED = -1e9;

/** Rows whose logits exist at one time; the rest wait, so that [rows, vocabulary] is never held whole. */
const CHUNK_ROWS = 256;

/**
 * Log-probabilities of chosen tokens under softmax(inverseTemperature * head(hidden)), without ever holding all logits:
 * inputs hidden [rows, width], head [vocabulary, width] (frozen), targets [rows], inverseTemperature [], bias [vocabulary]?,
 * sets [sets, vocabulary]? (true for the tokens that are in a set) and setOf [rows]? (the set that the row is a softmax over).
 * Outputs: logProbs [rows], d logProb / d hidden [rows, width], and as asked entropy [rows] and d entropy / d hidden.
 * The forward pass computes the gradients' directions, so the backward pass only scales them by row.
 */
export const tokenLogProbsOperation: Operation<HeadAttributes> = {
  name: "tokenLogProbs",
  shape: (inputs, attributes) => {
    const { entropy } = attributes;
    const { hidden, head, targets, inverseTemperature, bias, sets, setOf } = byName(inputs, attributes);
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
    return [perRow, direction, ...extra];
  },
  gradient: ({ node, inputs: [hidden], attributes: { entropy }, upstreams }) => {
    const scaled = (index: number, direction: number) => {
      const upstream = upstreams[index];
      return upstream && mul(reshape(upstream, [hidden.shape[0], 1]), output(node, direction));
    };
    const fromLogProbs = scaled(0, 1);
    const fromEntropy = entropy === "gradient" ? scaled(2, 3) : undefined;
    return [fromLogProbs && fromEntropy ? add(fromLogProbs, fromEntropy) : (fromLogProbs ?? fromEntropy)];
  },
  onnx: ({ node, inputs, attributes, emitter, isRead }) => {
    const { hidden, head, targets, inverseTemperature, bias, sets, setOf } = byName(inputs, attributes);
    const [rows, width] = node.inputs[0].shape;
    const one = emitter.ints([1]);
    // Rows are spread evenly over ceil(rows / CHUNK_ROWS) chunks, and the last is filled up with copies of nothing.
    const count = emitter.dim(rows);
    const rounded = emitter.emit("Add", [count, emitter.ints([CHUNK_ROWS - 1])]);
    const chunks = emitter.emit("Max", [emitter.emit("Div", [rounded, emitter.ints([CHUNK_ROWS])]), one]);
    const share = emitter.emit("Div", [emitter.emit("Sub", [emitter.emit("Add", [count, chunks]), one]), chunks]);
    const size = emitter.emit("Max", [share, one]);
    const missing = emitter.emit("Sub", [emitter.emit("Mul", [chunks, size]), count]);
    const widthName = emitter.dim(width);
    const chunked = (value: string, zero: string, tail: readonly string[]) => {
      const filler = emitter.emit("Expand", [
        zero,
        emitter.emit("Concat", [missing, ...tail], { attributes: { axis: 0 } }),
      ]);
      const filled = emitter.emit("Concat", [value, filler], { attributes: { axis: 0 } });
      const shape = emitter.emit("Concat", [chunks, size, ...tail], { attributes: { axis: 0 } });
      return emitter.emit("Reshape", [filled, shape]);
    };
    const numbers = (value: string) =>
      chunked(
        emitter.emit("Cast", [value], { attributes: { to: 7 } }),
        emitter.constant("int64", [], BigInt64Array.of(0n)),
        [],
      );
    const scanInputs = [
      chunked(hidden, emitter.float(0), [widthName]),
      numbers(targets),
      ...(setOf === undefined ? [] : [numbers(setOf)]),
    ];
    // Without a gradient, the directions would cost as much again as the logits.
    const wanted = node.outputs.flatMap((_, index) => (isRead(index) ? [index] : []));
    const body = chunkBody(emitter, { head, bias, inverseTemperature, width, sets }, attributes, wanted);
    const stacked = emitter.emitAll("Scan", scanInputs, {
      attributes: { body, num_scan_inputs: scanInputs.length },
      outputs: wanted.length,
    });
    return node.outputs.map(({ shape }, index) => {
      if (!wanted.includes(index)) return "";
      const tail = shape.length === 2 ? [widthName] : [];
      const flat = emitter.emit("Reshape", [
        stacked[wanted.indexOf(index)],
        emitter.emit("Concat", [emitter.ints([-1]), ...tail], { attributes: { axis: 0 } }),
      ]);
      return emitter.slice(flat, 0, 0, rows);
    });
  },
};

interface BodyContext {
  readonly head: string;
  readonly bias: string | undefined;
  readonly inverseTemperature: string;
  readonly width: Node["shape"][number];
  readonly sets: string | undefined;
}

/** The scan's body: one chunk of hidden states [size, width], targets [size] and sets' numbers [size]?; gives the outputs of the numbers `wanted`. */
function chunkBody(
  parent: Emitter,
  { head, bias, inverseTemperature, width, sets }: BodyContext,
  { softcap }: HeadAttributes,
  wanted: readonly number[],
) {
  const e = new Emitter(parent);
  const hidden = e.fresh("hidden");
  const targets = e.fresh("targets");
  const setOf = e.fresh("set_of");
  const last = e.ints([-1]);
  // WebGPU has no FusedMatMul; it would run on the processor.
  const product = e.device === "webgpu" ? { opType: "Gemm", domain: "" } : { opType: "FusedMatMul", domain: MICROSOFT };
  let logits = e.emit(product.opType, [hidden, head], { domain: product.domain, attributes: { transB: 1 } });
  if (bias !== undefined) logits = e.emit("Add", [logits, bias]);
  let squashed: string | undefined;
  if (softcap !== undefined) {
    squashed = e.emit("Tanh", [e.emit("Div", [logits, e.float(softcap)])]);
    logits = e.emit("Mul", [squashed, e.float(softcap)]);
  }
  const tempered = e.emit("Mul", [logits, inverseTemperature]);
  const logProbs = emitLogSoftmax(sets === undefined ? tempered : within(tempered, { sets, setOf }, e), 2, e);
  // What only some of the outputs need is emitted when the first of them asks for it.
  const probs = () => e.once("probs", () => e.emit("Exp", [logProbs]));
  const index = () => e.once("index", () => e.emit("Unsqueeze", [targets, last]));
  const atTarget = (value: string) => e.emit("GatherElements", [value, index()], { attributes: { axis: -1 } });
  /** d capped logits / d logits. */
  const slope = (capped: string) => e.once("slope", () => e.emit("Sub", [e.float(1), e.emit("Mul", [capped, capped])]));
  /** (d value / d logits) through the cap and the head, to [size, width]. */
  const throughHead = (gradient: string) => {
    const uncapped = squashed === undefined ? gradient : e.emit("Mul", [gradient, slope(squashed)]);
    return e.emit("Mul", [e.emit("MatMul", [uncapped, head]), inverseTemperature]);
  };
  const chosen = () => e.emit("Squeeze", [atTarget(logProbs), last]);
  const chosenDirection = () => {
    const row = e.emit("Gather", [head, targets], { attributes: { axis: 0 } });
    const targetRow = squashed === undefined ? row : e.emit("Mul", [row, atTarget(slope(squashed))]);
    return e.emit("Sub", [e.emit("Mul", [targetRow, inverseTemperature]), throughHead(probs())]);
  };
  const weighted = () => e.once("weighted", () => e.emit("Mul", [probs(), logProbs]));
  /** Minus the entropy. */
  const negative = () =>
    e.once("negative", () => e.emit("ReduceSum", [weighted(), e.ints([1])], { attributes: { keepdims: 1 } }));
  const entropy = () => e.emit("Squeeze", [e.emit("Neg", [negative()]), last]);
  // d entropy / d logits = -p (log p + entropy).
  const entropyDirection = () => throughHead(e.emit("Sub", [e.emit("Mul", [probs(), negative()]), weighted()]));

  const size = symbol(e.fresh("size"));
  const outputs = [
    { value: chosen, shape: [size] },
    { value: chosenDirection, shape: [size, width] },
    { value: entropy, shape: [size] },
    { value: entropyDirection, shape: [size, width] },
  ];
  return e.graph(
    "chunk",
    [
      valueInfo(hidden, "float32", [size, width]),
      valueInfo(targets, "int64", [size]),
      ...(sets === undefined ? [] : [valueInfo(setOf, "int64", [size])]),
    ],
    wanted.map((number) => valueInfo(outputs[number].value(), "float32", outputs[number].shape)),
  );
}

/** Logits [size, vocabulary] of which those outside a row's set count for nothing. */
function within(
  logits: string,
  { sets, setOf }: { readonly sets: string; readonly setOf: string },
  e: Emitter,
): string {
  const inSet = e.emit("Gather", [sets, setOf], { attributes: { axis: 0 } });
  return e.emit("Where", [inSet, logits, e.float(BARRED)]);
}

/** The operation's inputs; those that it was not given are undefined. */
function byName<Value>(inputs: readonly Value[], { hasBias, hasSets }: HeadAttributes) {
  const [hidden, head, targets, inverseTemperature, ...others] = inputs;
  const bias = hasBias ? others[0] : undefined;
  const [sets, setOf] = hasSets ? others.slice(-2) : [undefined, undefined];
  return { hidden, head, targets, inverseTemperature, bias, sets, setOf };
}

/** Sets of tokens, and which of them each row is a softmax over. */
export interface TokenSets {
  /** [sets, vocabulary], bool. */
  readonly sets: Node;
  /** [rows] */
  readonly setOf: Node;
}

export interface HeadInputs {
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
  readonly among?: TokenSets;
  readonly entropy?: HeadAttributes["entropy"];
}

/** Log-probability of each row's target, and the entropy [rows] where asked for; nothing of size [rows, vocabulary] is kept. */
export function tokenLogProbs({
  hidden,
  head,
  bias,
  targets,
  inverseTemperature,
  softcap,
  among,
  entropy = "none",
}: HeadInputs): {
  logProbs: Node;
  entropy: Node | undefined;
} {
  const others = [...(bias === undefined ? [] : [bias]), ...(among === undefined ? [] : [among.sets, among.setOf])];
  const attributes = { softcap, hasBias: bias !== undefined, hasSets: among !== undefined, entropy };
  const node = apply(tokenLogProbsOperation, [hidden, head, targets, inverseTemperature, ...others], attributes);
  return { logProbs: node, entropy: entropy === "none" ? undefined : output(node, 2) };
}
