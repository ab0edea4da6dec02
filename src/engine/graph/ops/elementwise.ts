import { dtypes, type DType } from "../../tensor/dtype.js";
import { broadcastShapes, sameShape } from "../dim.js";
import { MS_DOMAIN } from "../emitter.js";
import {
  apply,
  defineOperation,
  noGradient,
  shapeError,
  type GradientContext,
  type Node,
  type Operation,
} from "../node.js";
import { scalar } from "./leaves.js";
import { sumToShape } from "./reduce.js";

type Operand = Node | number;

const toNode = (value: Operand): Node => (typeof value === "number" ? scalar(value) : value);

interface BinaryRules {
  readonly recompute?: "cheap";
  readonly onnx: string;
  /** d loss / d left and d right, before the sum over broadcast dimensions. */
  readonly gradient: (context: GradientContext<object>) => readonly [Node, Node];
}

function defineBinary(name: string, { onnx, gradient, recompute }: BinaryRules): Operation<object> {
  return {
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
  };
}

interface UnaryRules {
  readonly recompute?: "cheap";
  readonly onnx: string | Operation<object>["onnx"];
  readonly gradient: (context: GradientContext<object>) => Node;
}

function defineUnary(name: string, { onnx, gradient, recompute }: UnaryRules): Operation<object> {
  return {
    name,
    recompute,
    infer: ([x]) => ({ dtype: x.dtype, shape: x.shape }),
    gradient: (context) => [gradient(context)],
    onnx: typeof onnx === "string" ? ({ inputs, emitter }) => emitter.emit(onnx, inputs) : onnx,
  };
}

/** Defines a comparison or, with `dtype` "bool", a logical connective. */
function definePredicate(name: string, onnx: string, dtype?: DType): Operation<object> {
  return {
    name,
    infer: (inputs) => {
      const [a, b] = inputs;
      if (a.dtype !== b.dtype || (dtype ?? a.dtype) !== a.dtype)
        throw shapeError(name, inputs, `two values of ${dtype ?? "the same element type"}`);
      return { dtype: "bool", shape: broadcastShapes(a.shape, b.shape) };
    },
    gradient: noGradient,
    onnx: ({ inputs, emitter }) => emitter.emit(onnx, inputs),
  };
}

export const addOperation = defineBinary("add", { onnx: "Add", gradient: ({ upstream }) => [upstream, upstream] });

export const subOperation = defineBinary("sub", { onnx: "Sub", gradient: ({ upstream }) => [upstream, neg(upstream)] });

export const mulOperation = defineBinary("mul", {
  recompute: "cheap",
  onnx: "Mul",
  gradient: ({ inputs: [a, b], upstream }) => [mul(upstream, b), mul(upstream, a)],
});

export const divOperation = defineBinary("div", {
  onnx: "Div",
  gradient: ({ inputs: [, b], output, upstream }) => [div(upstream, b), neg(div(mul(upstream, output), b))],
});

/** Ties send the gradient to the first input. */
export const minimumOperation = defineBinary("minimum", {
  onnx: "Min",
  gradient: ({ inputs: [a, b], upstream }) => [
    where(lessEqual(a, b), upstream, 0),
    where(lessEqual(a, b), 0, upstream),
  ],
});

/** Ties send the gradient to the first input. */
export const maximumOperation = defineBinary("maximum", {
  onnx: "Max",
  gradient: ({ inputs: [a, b], upstream }) => [
    where(lessEqual(b, a), upstream, 0),
    where(lessEqual(b, a), 0, upstream),
  ],
});

export const negOperation = defineUnary("neg", { onnx: "Neg", gradient: ({ upstream }) => neg(upstream) });

export const expOperation = defineUnary("exp", {
  onnx: "Exp",
  gradient: ({ output, upstream }) => mul(upstream, output),
});

export const logOperation = defineUnary("log", {
  onnx: "Log",
  gradient: ({ inputs: [x], upstream }) => div(upstream, x),
});

export const sqrtOperation = defineUnary("sqrt", {
  onnx: "Sqrt",
  gradient: ({ output, upstream }) => div(mul(upstream, 0.5), output),
});

export const absOperation = defineUnary("abs", {
  onnx: "Abs",
  gradient: ({ inputs: [x], upstream }) => where(less(x, 0), neg(upstream), upstream),
});

export const tanhOperation = defineUnary("tanh", {
  onnx: "Tanh",
  gradient: ({ output: y, upstream }) => mul(upstream, sub(1, mul(y, y))),
});

export const sigmoidOperation = defineUnary("sigmoid", {
  onnx: "Sigmoid",
  gradient: ({ output: y, upstream }) => mul(upstream, mul(y, sub(1, y))),
});

export const erfOperation = defineUnary("erf", {
  onnx: "Erf",
  gradient: ({ inputs: [x], upstream }) => mul(upstream, mul(exp(neg(mul(x, x))), 2 / Math.sqrt(Math.PI))),
});

/** x * sigmoid(x) in one kernel. */
export const siluOperation = defineUnary("silu", {
  recompute: "cheap",
  onnx: ({ inputs, emitter }) =>
    emitter.emit("QuickGelu", inputs, { domain: MS_DOMAIN, attributes: { alpha: { float: 1 } } }),
  gradient: ({ inputs: [x], output: y, upstream }) => mul(upstream, mul(sigmoid(x), sub(add(x, 1), y))),
});

/** The Gaussian error linear unit, exact (erf). */
export const geluOperation = defineUnary("gelu", {
  recompute: "cheap",
  onnx: ({ inputs, emitter }) => emitter.emit("Gelu", inputs, { attributes: { approximate: "none" } }),
  gradient: ({ inputs: [x], upstream }) => {
    const cumulative = mul(add(erf(mul(x, Math.SQRT1_2)), 1), 0.5);
    const density = mul(exp(mul(mul(x, x), -0.5)), 1 / Math.sqrt(2 * Math.PI));
    return mul(upstream, add(cumulative, mul(x, density)));
  },
});

const TANH_SCALE = Math.sqrt(2 / Math.PI);
const TANH_CUBIC = 0.044715;

/** GELU, tanh approximation ("gelu_new", "gelu_pytorch_tanh"). */
export const geluTanhOperation = defineUnary("geluTanh", {
  recompute: "cheap",
  onnx: ({ inputs, emitter }) => emitter.emit("Gelu", inputs, { attributes: { approximate: "tanh" } }),
  gradient: ({ inputs: [x], upstream }) => {
    const squared = mul(x, x);
    const t = tanh(mul(x, add(mul(squared, TANH_SCALE * TANH_CUBIC), TANH_SCALE)));
    const slope = add(mul(squared, 3 * TANH_SCALE * TANH_CUBIC), TANH_SCALE);
    const derivative = mul(add(add(t, 1), mul(mul(x, sub(1, mul(t, t))), slope)), 0.5);
    return mul(upstream, derivative);
  },
});

export const lessOperation = definePredicate("less", "Less");
export const lessEqualOperation = definePredicate("lessEqual", "LessOrEqual");
export const equalOperation = definePredicate("equal", "Equal");
export const andOperation = definePredicate("and", "And", "bool");
export const orOperation = definePredicate("or", "Or", "bool");

export const notOperation = defineOperation<object>({
  name: "not",
  infer: (inputs) => {
    const [x] = inputs;
    if (x.dtype !== "bool") throw shapeError("not", inputs, "a bool value");
    return { dtype: "bool", shape: x.shape };
  },
  gradient: noGradient,
  onnx: ({ inputs, emitter }) => emitter.emit("Not", inputs),
});

/** condition ? a : b, element by element. */
export const whereOperation = defineOperation<object>({
  name: "where",
  infer: (inputs) => {
    const [condition, a, b] = inputs;
    if (condition.dtype !== "bool" || a.dtype !== b.dtype) {
      throw shapeError("where", inputs, "a bool condition and two values of the same element type");
    }
    return { dtype: a.dtype, shape: broadcastShapes(condition.shape, broadcastShapes(a.shape, b.shape)) };
  },
  gradient: ({ inputs: [condition, a, b], upstream }) => [
    undefined,
    sumToShape(where(condition, upstream, 0), a.shape),
    sumToShape(where(condition, 0, upstream), b.shape),
  ],
  onnx: ({ inputs, emitter }) => emitter.emit("Where", inputs),
});

export const castOperation = defineOperation<{ readonly to: DType }>({
  name: "cast",
  infer: ([x], { to }) => ({ dtype: to, shape: x.shape }),
  gradient: ({ inputs: [x], upstream }) => [isFloat(x.dtype) ? cast(upstream, x.dtype) : undefined],
  onnx: ({ inputs, attributes: { to }, emitter }) =>
    emitter.emit("Cast", inputs, { attributes: { to: dtypes[to].onnx } }),
});

/** The input's value; blocks the gradient. */
export const stopGradientOperation = defineOperation<object>({
  name: "stopGradient",
  recompute: "alias",
  infer: ([{ dtype, shape }]) => ({ dtype, shape }),
  gradient: noGradient,
  onnx: ({ inputs }) => inputs[0],
});

/**
 * The first input's value, differentiated as if it were the sum of both inputs. Lets a value
 * computed another way (a merged weight) be differentiated in parts.
 */
export const withGradientOfOperation = defineOperation<object>({
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
});

function isFloat(dtype: DType): boolean {
  return dtype === "float32" || dtype === "float16" || dtype === "bfloat16";
}

const createBinaryFunction = (operation: Operation<object>) => (a: Operand, b: Operand) =>
  apply(operation, [toNode(a), toNode(b)], {});
const createUnaryFunction = (operation: Operation<object>) => (x: Node) => apply(operation, [x], {});

/** Elementwise `a + b` with broadcasting. */
export const add = createBinaryFunction(addOperation);
/** Elementwise `a - b` with broadcasting. */
export const sub = createBinaryFunction(subOperation);
/** Elementwise `a * b` with broadcasting. */
export const mul = createBinaryFunction(mulOperation);
/** Elementwise `a / b` with broadcasting. */
export const div = createBinaryFunction(divOperation);
/** Elementwise minimum with broadcasting. */
export const minimum = createBinaryFunction(minimumOperation);
/** Elementwise maximum with broadcasting. */
export const maximum = createBinaryFunction(maximumOperation);
/** Elementwise `a < b`. */
export const less = createBinaryFunction(lessOperation);
/** Elementwise `a <= b`. */
export const lessEqual = createBinaryFunction(lessEqualOperation);
/** Elementwise `a == b`. */
export const equal = createBinaryFunction(equalOperation);
/** Elementwise logical and. */
export const and = createBinaryFunction(andOperation);
/** Elementwise logical or. */
export const or = createBinaryFunction(orOperation);
/** Elementwise logical not. */
export const not = createUnaryFunction(notOperation);
/** Elementwise `-x`. */
export const neg = createUnaryFunction(negOperation);
/** Elementwise exponential. */
export const exp = createUnaryFunction(expOperation);
/** Elementwise natural logarithm. */
export const log = createUnaryFunction(logOperation);
/** Elementwise square root. */
export const sqrt = createUnaryFunction(sqrtOperation);
/** Elementwise absolute value. */
export const abs = createUnaryFunction(absOperation);
/** Elementwise hyperbolic tangent. */
export const tanh = createUnaryFunction(tanhOperation);
/** Elementwise `1 / (1 + exp(-x))`. */
export const sigmoid = createUnaryFunction(sigmoidOperation);
/** Elementwise error function. */
export const erf = createUnaryFunction(erfOperation);
/** Elementwise `x * sigmoid(x)`. */
export const silu = createUnaryFunction(siluOperation);
/** Elementwise exact GELU. */
export const gelu = createUnaryFunction(geluOperation);
/** Elementwise GELU with the tanh approximation. */
export const geluTanh = createUnaryFunction(geluTanhOperation);
/** Identity whose gradient is zero (PyTorch's `detach`). */
export const stopGradient = createUnaryFunction(stopGradientOperation);
/** Elementwise `x * x`. */
export const square = (x: Node) => mul(x, x);
/** Limits values to a range. */
export const clip = (x: Node, low: Operand, high: Operand) => minimum(maximum(x, low), high);
/** Selects elementwise from `a` where the condition holds, else from `b`. */
export const where = (condition: Node, a: Operand, b: Operand): Node =>
  apply(whereOperation, [condition, toNode(a), toNode(b)], {});
/** Converts to another element type. */
export const cast = (x: Node, to: DType): Node => (x.dtype === to ? x : apply(castOperation, [x], { to }));
/** Value of the first node with the gradient of the second. */
export const withGradientOf = (value: Node, differentiable: Node) =>
  apply(withGradientOfOperation, [value, differentiable], {});
