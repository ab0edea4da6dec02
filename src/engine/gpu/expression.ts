import { mulDims, sameDim, sameShape, type Dim, type Shape } from "../graph/dim.js";
import type { DType } from "../tensor/dtype.js";
import type { ElementFormat } from "./program.js";

/** Elements of a value of the program, by strides. */
export interface ValueView {
  /** Index of the value. */
  readonly value: number;
  readonly format: ElementFormat;
  /** Offset of the first element. */
  readonly offset: Dim;
  /** Elements between neighbors along each axis. */
  readonly strides: readonly Dim[];
}

interface Typed {
  readonly dtype: DType;
  readonly shape: Shape;
}

/** Evaluates expressions inside of a kernel. */
export interface ExpressionContext {
  /** Returns WGSL for the element of an expression at coordinates. */
  evaluate(expression: Expression, coordinates: readonly string[]): string;
  /** Returns WGSL for a dimension, as an unsigned integer. */
  dim(dim: Dim): string;
  /** Returns the name of a variable with a value. */
  assign(type: WgslType, code: string): string;
  /**
   * Returns the name of a variable that is assigned one of several values, by conditions in order.
   */
  select(type: WgslType, cases: readonly { readonly when: string; readonly value: () => string }[]): string;
}

export type WgslType = "f32" | "i32" | "bool" | "u32";

/**
 * A matrix product that no kernel computes yet; `others` are right factors of further products with
 * the same left one.
 */
export interface PendingProduct {
  readonly a: { readonly view: ValueView; readonly shape: Shape };
  readonly b: {
    readonly view: ValueView;
    readonly shape: Shape;
    readonly blocks?: BlockScales;
    readonly others?: readonly ValueView[];
  };
  readonly transposeA: boolean;
  readonly transposeB: boolean;
  readonly alpha: number;
  readonly inner: Dim;
}

/** Scales of weights in blocks of codes. */
export interface BlockScales {
  readonly scales: ValueView;
  readonly blockSize: number;
  /** The code of zero. */
  readonly middle: number;
}

/**
 * Writes an element at coordinates; `args` may be other forms of the arguments than those that were
 * given.
 */
type WriteIndexed = (args: readonly Expression[], coordinates: readonly string[], context: ExpressionContext) => string;

/** Computes the elements of a value; kernels evaluate it where its elements are needed. */
export type Expression = Typed &
  (
    | { readonly kind: "view"; readonly view: ValueView }
    | { readonly kind: "literal"; readonly value: number }
    | { readonly kind: "dim"; readonly dim: Dim }
    /** A function of elements at the same position; arguments broadcast. */
    | {
        readonly kind: "call";
        readonly args: readonly Expression[];
        readonly write: (args: readonly string[]) => string;
        /** Whether it is the sum of two arguments, which matrix products can add up themselves. */
        readonly isSum?: boolean;
      }
    /** A function of positions. */
    | {
        readonly kind: "indexed";
        readonly args: readonly Expression[];
        readonly write: WriteIndexed;
      }
    | { readonly kind: "reshape"; readonly of: Expression }
    | { readonly kind: "product"; readonly product: PendingProduct }
  );

/** Returns the row-major strides of a shape. */
export function contiguousStrides(shape: Shape): Dim[] {
  const strides: Dim[] = [];
  let stride: Dim = 1;
  for (let axis = shape.length - 1; axis >= 0; axis--) {
    strides[axis] = stride;
    stride = mulDims(stride, shape[axis]);
  }
  return strides;
}

export function isContiguous(shape: Shape, strides: readonly Dim[]): boolean {
  const expected = contiguousStrides(shape);
  return shape.every((dim, axis) => dim === 1 || sameDim(expected[axis], strides[axis]));
}

/** Returns strides along the axes of `shape`: 0 where an expression of shape `own` broadcasts. */
export function broadcastStrides(own: Shape, strides: readonly Dim[], shape: Shape): Dim[] {
  const lead = shape.length - own.length;
  return shape.map((dim, axis) => (axis < lead || (own[axis - lead] === 1 && dim !== 1) ? 0 : strides[axis - lead]));
}

/**
 * Returns the strides of a reshaped view; undefined where no strides address the elements in this
 * order.
 */
function reshapeStrides(shape: Shape, strides: readonly Dim[], next: Shape): Dim[] | undefined {
  if (isContiguous(shape, strides)) return contiguousStrides(next);
  const runs: { size: Dim; stride: Dim }[] = [];
  shape.forEach((size, axis) => {
    if (size === 1) return;
    const last = runs.at(-1);
    if (last !== undefined && sameDim(last.stride, mulDims(size, strides[axis])))
      runs[runs.length - 1] = { size: mulDims(last.size, size), stride: strides[axis] };
    else runs.push({ size, stride: strides[axis] });
  });
  const result: Dim[] = [];
  let axis = next.length - 1;
  for (const { size, stride } of runs.reverse()) {
    let covered: Dim = 1;
    while (axis >= 0 && !sameDim(covered, size)) {
      result[axis] = mulDims(covered, stride);
      covered = mulDims(covered, next[axis]);
      axis--;
    }
    if (!sameDim(covered, size)) return undefined;
  }
  for (; axis >= 0; axis--) {
    if (next[axis] !== 1) return undefined;
    result[axis] = 0;
  }
  return result;
}

/** Whether evaluating an expression anew costs no more than loading it. */
export function isFree({ kind }: Expression): boolean {
  return kind === "view" || kind === "literal" || kind === "dim";
}

/** Returns the expressions that an expression is computed from. */
export function listArguments(expression: Expression): readonly Expression[] {
  if (expression.kind === "call" || expression.kind === "indexed") return expression.args;
  return expression.kind === "reshape" ? [expression.of] : [];
}

/**
 * Whether a kernel over `shape` evaluates all parts of an expression at one position each, without
 * division.
 */
export function isElementwise(expression: Expression): boolean {
  if (isFree(expression)) return true;
  return expression.kind === "call" && expression.args.every(isElementwise);
}

/** Reshapes an expression, as a view where its strides allow it. */
export function reshapeExpression(x: Expression, shape: Shape): Expression {
  if (sameShape(x.shape, shape)) return x;
  const { dtype } = x;
  if (x.kind === "view") {
    const strides = reshapeStrides(x.shape, x.view.strides, shape);
    if (strides !== undefined) return { kind: "view", dtype, shape, view: { ...x.view, strides } };
  }
  if (x.kind === "literal" || x.kind === "dim") return { ...x, shape };
  if (x.kind === "reshape") return reshapeExpression(x.of, shape);
  return { kind: "reshape", dtype, shape, of: x };
}

/** WGSL type of a value. */
export function wgslType(dtype: DType): WgslType {
  if (dtype === "bool") return "bool";
  return dtype === "float32" || dtype === "float16" || dtype === "bfloat16" ? "f32" : "i32";
}

/** Creates a function of positions. */
export function indexed(
  { dtype, shape }: { readonly dtype: DType; readonly shape: Shape },
  args: readonly Expression[],
  write: WriteIndexed,
): Expression {
  return { kind: "indexed", dtype, shape, args, write };
}
