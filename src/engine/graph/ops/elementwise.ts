import { dtypes, type DType } from "../../tensor/dtype.js";
import { broadcastShapes, sameShape } from "../dim.js";
import { apply, noGradient, shapeError, type GradientContext, type Node, type Operation } from "../node.js";
import { scalar } from "./leaves.js";
import { sumToShape } from "./reduce.js";

type Operand = Node | number;

const toNode = (value: Operand): Node => (typeof value === "number" ? scalar(value) : value);

/** A function of one operand, with its operation. */
export interface UnaryFunction {
  (x: Node): Node;
  readonly operation: Operation<object>;
}

/** A function of two operands that broadcast, with its operation. */
export interface BinaryFunction {
  (a: Operand, b: Operand): Node;
  readonly operation: Operation<object>;
}

const createUnary = (operation: Operation<object>): UnaryFunction =>
  Object.assign((x: Node) => apply(operation, [x], {}), { operation });

const createBinary = (operation: Operation<object>): BinaryFunction =>
  Object.assign((a: Operand, b: Operand) => apply(operation, [toNode(a), toNode(b)], {}), { operation });

interface BinaryRules {
  readonly recompute?: "cheap";
  readonly onnx: string;
  /** d loss / d left and d right, before the sum over broadcast dimensions. */
  readonly gradient: (context: GradientContext<object>) => readonly [Node, Node];
}

function defineBinary(name: string, { onnx, gradient, recompute }: BinaryRules): BinaryFunction {
  return createBinary({
    name,
    recompute,
    infer: (inputs) => {
      const [a, b] = inputs;
      if (a.dtype !== b.dtype) throw shapeError(name, inputs, "two values of the same element type");
      return { dtype: a.dtype, shape: broadcastShapes(a.shape, b.shape) };
    },
    gradient: (context) => {
      const [a, b] = context.inputs;
      const [left, right] = gradient(context);
      return [sumToShape(left, a.shape), sumToShape(right, b.shape)];
    },
    onnx: ({ inputs, emitter }) => emitter.emit(onnx, inputs),
  });
}

interface UnaryRules {
  readonly recompute?: "cheap";
  readonly onnx: string | Operation<object>["onnx"];
  readonly gradient: (context: GradientContext<object>) => Node;
}

function defineUnary(name: string, { onnx, gradient, recompute }: UnaryRules): UnaryFunction {
  return createUnary({
    name,
    recompute,
    infer: ([x]) => ({ dtype: x.dtype, shape: x.shape }),
    gradient: (context) => [gradient(context)],
    onnx: typeof onnx === "string" ? ({ inputs, emitter }) => emitter.emit(onnx, inputs) : onnx,
  });
}

/** Defines a comparison or, with `dtype` "bool", a logical connective. */
function definePredicate(name: string, onnx: string, dtype?: DType): BinaryFunction {
  return createBinary({
    name,
    infer: (inputs) => {
      const [a, b] = inputs;
      if (a.dtype !== b.dtype || (dtype ?? a.dtype) !== a.dtype)
        throw shapeError(name, inputs, `two values of ${dtype ?? "the same element type"}`);
      return { dtype: "bool", shape: broadcastShapes(a.shape, b.shape) };
    },
    gradient: noGradient,
    onnx: ({ inputs, emitter }) => emitter.emit(onnx, inputs),
  });
}

/** Elementwise `a + b` with broadcasting. */
export const add = defineBinary("add", { onnx: "Add", gradient: ({ upstream }) => [upstream, upstream] });

/** Elementwise `a - b` with broadcasting. */
export const sub = defineBinary("sub", { onnx: "Sub", gradient: ({ upstream }) => [upstream, neg(upstream)] });

/** Elementwise `a * b` with broadcasting. */
export const mul = defineBinary("mul", {
  recompute: "cheap",
  onnx: "Mul",
  gradient: ({ inputs: [a, b], upstream }) => [mul(upstream, b), mul(upstream, a)],
});

/** Elementwise `a / b` with broadcasting. */
export const div = defineBinary("div", {
  onnx: "Div",
  gradient: ({ inputs: [, b], output, upstream }) => [div(upstream, b), neg(div(mul(upstream, output), b))],
});

/** Elementwise minimum with broadcasting. Ties send the gradient to the first input. */
export const minimum = defineBinary("minimum", {
  onnx: "Min",
  gradient: ({ inputs: [a, b], upstream }) => [
    where(lessEqual(a, b), upstream, 0),
    where(lessEqual(a, b), 0, upstream),
  ],
});

/** Elementwise maximum with broadcasting. Ties send the gradient to the first input. */
export const maximum = defineBinary("maximum", {
  onnx: "Max",
  gradient: ({ inputs: [a, b], upstream }) => [
    where(lessEqual(b, a), upstream, 0),
    where(lessEqual(b, a), 0, upstream),
  ],
});

/** Elementwise `-x`. */
export const neg = defineUnary("neg", { onnx: "Neg", gradient: ({ upstream }) => neg(upstream) });

/** Elementwise exponential. */
export const exp = defineUnary("exp", {
  onnx: "Exp",
  gradient: ({ output, upstream }) => mul(upstream, output),
});

/** Elementwise natural logarithm. */
export const log = defineUnary("log", {
  onnx: "Log",
  gradient: ({ inputs: [x], upstream }) => div(upstream, x),
});

/** Elementwise square root. */
export const sqrt = defineUnary("sqrt", {
  onnx: "Sqrt",
  gradient: ({ output, upstream }) => div(mul(upstream, 0.5), output),
});

/** Elementwise absolute value. */
export const abs = defineUnary("abs", {
  onnx: "Abs",
  gradient: ({ inputs: [x], upstream }) => where(less(x, 0), neg(upstream), upstream),
});

/** Elementwise hyperbolic tangent. */
export const tanh = defineUnary("tanh", {
  onnx: "Tanh",
  gradient: ({ output: y, upstream }) => mul(upstream, sub(1, mul(y, y))),
});

/** Elementwise `1 / (1 + exp(-x))`. */
export const sigmoid = defineUnary("sigmoid", {
  onnx: "Sigmoid",
  gradient: ({ output: y, upstream }) => mul(upstream, mul(y, sub(1, y))),
});

/** Elementwise error function. */
export const erf = defineUnary("erf", {
  onnx: "Erf",
  gradient: ({ inputs: [x], upstream }) => mul(upstream, mul(exp(neg(mul(x, x))), 2 / Math.sqrt(Math.PI))),
});

/** Elementwise `x * sigmoid(x)`, in one kernel. */
export const silu = defineUnary("silu", {
  recompute: "cheap",
  onnx: ({ inputs, emitter }) => emitter.emit("QuickGelu", inputs, { alpha: { float: 1 } }),
  gradient: ({ inputs: [x], output: y, upstream }) => mul(upstream, mul(sigmoid(x), sub(add(x, 1), y))),
});

/** Elementwise Gaussian error linear unit, exact (erf). */
export const gelu = defineUnary("gelu", {
  recompute: "cheap",
  onnx: ({ inputs, emitter }) => emitter.emit("Gelu", inputs, { approximate: "none" }),
  gradient: ({ inputs: [x], upstream }) => {
    const cumulative = mul(add(erf(mul(x, Math.SQRT1_2)), 1), 0.5);
    const density = mul(exp(mul(mul(x, x), -0.5)), 1 / Math.sqrt(2 * Math.PI));
    return mul(upstream, add(cumulative, mul(x, density)));
  },
});

const TANH_SCALE = Math.sqrt(2 / Math.PI);
const TANH_CUBIC = 0.044715;

/** Elementwise GELU, tanh approximation ("gelu_new", "gelu_pytorch_tanh"). */
export const geluTanh = defineUnary("geluTanh", {
  recompute: "cheap",
  onnx: ({ inputs, emitter }) => emitter.emit("Gelu", inputs, { approximate: "tanh" }),
  gradient: ({ inputs: [x], upstream }) => {
    const squared = mul(x, x);
    const t = tanh(mul(x, add(mul(squared, TANH_SCALE * TANH_CUBIC), TANH_SCALE)));
    const slope = add(mul(squared, 3 * TANH_SCALE * TANH_CUBIC), TANH_SCALE);
    const derivative = mul(add(add(t, 1), mul(mul(x, sub(1, mul(t, t))), slope)), 0.5);
    return mul(upstream, derivative);
  },
});

/** Elementwise `a < b`. */
export const less = definePredicate("less", "Less");
/** Elementwise `a <= b`. */
export const lessEqual = definePredicate("lessEqual", "LessOrEqual");
/** Elementwise `a == b`. */
export const equal = definePredicate("equal", "Equal");
/** Elementwise logical and. */
export const and = definePredicate("and", "And", "bool");
/** Elementwise logical or. */
export const or = definePredicate("or", "Or", "bool");

/** Elementwise logical not. */
export const not = createUnary({
  name: "not",
  infer: (inputs) => {
    const [x] = inputs;
    if (x.dtype !== "bool") throw shapeError("not", inputs, "a bool value");
    return { dtype: "bool", shape: x.shape };
  },
  gradient: noGradient,
  onnx: ({ inputs, emitter }) => emitter.emit("Not", inputs),
});

const whereOperation: Operation<object> = {
  name: "where",
  infer: (inputs) => {
    const [condition, a, b] = inputs;
    if (condition.dtype !== "bool" || a.dtype !== b.dtype)
      throw shapeError("where", inputs, "a bool condition and two values of the same element type");
    return { dtype: a.dtype, shape: broadcastShapes(condition.shape, broadcastShapes(a.shape, b.shape)) };
  },
  gradient: ({ inputs: [condition, a, b], upstream }) => [
    undefined,
    sumToShape(where(condition, upstream, 0), a.shape),
    sumToShape(where(condition, 0, upstream), b.shape),
  ],
  onnx: ({ inputs, emitter }) => emitter.emit("Where", inputs),
};

/** Selects elementwise from `a` where the condition holds, else from `b`. */
export const where = Object.assign(
  (condition: Node, a: Operand, b: Operand): Node => apply(whereOperation, [condition, toNode(a), toNode(b)], {}),
  { operation: whereOperation },
);

const castOperation: Operation<{ readonly to: DType }> = {
  name: "cast",
  infer: ([x], { to }) => ({ dtype: to, shape: x.shape }),
  gradient: ({ inputs: [x], upstream }) => [isFloat(x.dtype) ? cast(upstream, x.dtype) : undefined],
  onnx: ({ inputs, attributes: { to }, emitter }) => emitter.emit("Cast", inputs, { to: dtypes[to].onnx }),
};

/** Converts to another element type. */
export const cast = Object.assign(
  (x: Node, to: DType): Node => (x.dtype === to ? x : apply(castOperation, [x], { to })),
  { operation: castOperation },
);

/** Identity whose gradient is zero (PyTorch's `detach`). */
export const stopGradient = createUnary({
  name: "stopGradient",
  recompute: "alias",
  infer: ([{ dtype, shape }]) => ({ dtype, shape }),
  gradient: noGradient,
  onnx: ({ inputs }) => inputs[0],
});

const withGradientOfOperation: Operation<object> = {
  name: "withGradientOf",
  valueInputCount: 1,
  infer: (inputs) => {
    const [x, differentiable] = inputs;
    if (x.dtype !== differentiable.dtype || !sameShape(x.shape, differentiable.shape))
      throw shapeError("withGradientOf", inputs, "two values of the same type and shape");
    return { dtype: x.dtype, shape: x.shape };
  },
  gradient: ({ upstream }) => [upstream, upstream],
  onnx: ({ inputs }) => inputs[0],
};

/**
 * Value of the first node, differentiated as if it were the sum of both. Lets a value computed
 * another way (a merged weight) be differentiated in parts.
 */
export const withGradientOf = Object.assign(
  (value: Node, differentiable: Node): Node => apply(withGradientOfOperation, [value, differentiable], {}),
  { operation: withGradientOfOperation },
);

function isFloat(dtype: DType): boolean {
  return dtype === "float32" || dtype === "float16" || dtype === "bfloat16";
}

/** Elementwise `x * x`. */
export const square = (x: Node) => mul(x, x);
/** Limits values to a range. */
export const clip = (x: Node, low: Operand, high: Operand) => minimum(maximum(x, low), high);
