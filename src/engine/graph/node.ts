import { invalidArgument, LlamaGymError } from "../../core/errors.js";
import { describeValue } from "../../core/format.js";
import type { DType } from "../tensor/dtype.js";
import { formatShape, type Shape } from "./dim.js";
import type { Emitter } from "./emitter.js";

/** Element type and shape of a node. */
export interface TensorType {
  readonly dtype: DType;
  readonly shape: Shape;
}

/**
 * A value in a symbolic graph: an operation applied to other values. Immutable. Compilation merges
 * equal nodes, so building one twice is free.
 */
export interface Node<A = unknown> extends TensorType {
  readonly operation: Operation<A>;
  readonly inputs: readonly Node[];
  readonly attributes: A;
  /** Types of all outputs; `dtype` and `shape` describe the first. */
  readonly outputs: readonly TensorType[];
  /** Marks a copy that recomputes the value instead of keeping the original's in memory. */
  readonly isRecomputed?: boolean;
}

export interface GradientContext<A> {
  readonly node: Node<A>;
  readonly inputs: readonly Node[];
  readonly attributes: A;
  /** The operation's first output. */
  readonly output: Node;
  /** d loss / d (first) output. */
  readonly upstream: Node;
  /** d loss / d each output; undefined where the loss does not depend on it. */
  readonly upstreams: readonly (Node | undefined)[];
}

interface OnnxContext<A> {
  readonly node: Node<A>;
  /** Names of the inputs; for `output`, of all outputs of its operation. */
  readonly inputs: readonly string[];
  readonly attributes: A;
  readonly emitter: Emitter;
  /** Whether output `index` is read. An unread output may be left out under any name. */
  readonly isRead: (index: number) => boolean;
}

/** An operation of the graph: type inference, gradient and ONNX form. */
export interface Operation<A> {
  readonly name: string;
  /**
   * Number of leading inputs that determine the value (default all); the rest only serve the
   * gradient.
   */
  readonly valueInputCount?: number;
  /**
   * "cheap": gradients recompute the value instead of keeping it from the forward pass. "alias":
   * they do so where the input is recomputed (the value is the input's).
   */
  readonly recompute?: "cheap" | "alias";
  /** Infers the output types. @throws SHAPE_MISMATCH when the inputs do not fit. */
  infer(inputs: readonly Node[], attributes: A): TensorType | readonly TensorType[];
  /** Returns d loss / d each input, in the input's shape; undefined where no gradient flows. */
  gradient(context: GradientContext<A>): readonly (Node | undefined)[];
  /** Emits ONNX nodes and returns the names of the outputs. */
  onnx(context: OnnxContext<A>): string | readonly string[];
}

/** Defines an operation; `operations.ts` collects the exports named `<name>Operation`. */
export function defineOperation<A>(operation: Operation<A>): Operation<A> {
  return operation;
}

/**
 * Applies an operation. @throws SHAPE_MISMATCH when the inputs do not fit, INVALID_ARGUMENT for one
 * that is no node.
 */
export function apply<A>(operation: Operation<A>, inputs: readonly Node[], attributes: A): Node<A> {
  const other = inputs.findIndex((node: Partial<Node> | null | undefined) => node?.outputs === undefined);
  if (other >= 0)
    throw invalidArgument(
      `${operation.name} takes nodes of the graph, but its operand ${other + 1} is ${describeValue(inputs[other])}.`,
    );
  const result = operation.infer(inputs, attributes);
  const outputs = Array.isArray(result) ? (result as readonly TensorType[]) : [result as TensorType];
  return { operation, inputs, attributes, outputs, dtype: outputs[0].dtype, shape: outputs[0].shape };
}

/** Gradient of operations that block it. */
export const noGradient = (): readonly undefined[] => [];

export function shapeError(operation: string, inputs: readonly Node[], expected: string): LlamaGymError {
  const shapes = inputs.map((input) => `${input.dtype}${formatShape(input.shape)}`).join(", ");
  return new LlamaGymError("SHAPE_MISMATCH", `${operation} got ${shapes}; expected ${expected}.`);
}
