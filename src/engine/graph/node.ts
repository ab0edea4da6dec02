import { LlamaGymError } from "../../core/errors.js";
import type { DType } from "../tensor/dtype.js";
import { formatShape, type Shape } from "./dim.js";
import type { Emitter } from "./emitter.js";

export interface TensorType {
  readonly dtype: DType;
  readonly shape: Shape;
}

/**
 * A value in a symbolic graph: an operation applied to other values. Immutable; equal nodes are merged when the graph
 * is written, so building one twice costs nothing.
 */
export interface Node<A = unknown> extends TensorType {
  readonly operation: Operation<A>;
  readonly inputs: readonly Node[];
  readonly attributes: A;
  /** The types of all outputs; `dtype` and `shape` are those of the first. */
  readonly outputs: readonly TensorType[];
  /** A second computation of an equal node, which is cheaper than keeping the first one's value until it is needed again. */
  readonly isRecomputed?: boolean;
}

export interface GradientContext<A> {
  readonly node: Node<A>;
  readonly inputs: readonly Node[];
  readonly attributes: A;
  /** The operation's own (first) output. */
  readonly output: Node;
  /** d loss / d output, of the output's shape; for an operation of several outputs, that of the first. */
  readonly upstream: Node;
  /** d loss / d each output; undefined where the loss does not depend on it. */
  readonly upstreams: readonly (Node | undefined)[];
}

interface OnnxContext<A> {
  readonly node: Node<A>;
  /** Names of the inputs; for `output`, of all outputs of the operation it belongs to. */
  readonly inputs: readonly string[];
  readonly attributes: A;
  readonly emitter: Emitter;
  /** Whether anything in the graph reads output number `index`; one that nothing reads may be left out, with any name. */
  readonly isRead: (index: number) => boolean;
}

/** An operation's rules, side by side: shape, gradient and ONNX form are all required. */
export interface Operation<A> {
  readonly name: string;
  /** How many of the inputs, the first ones, the value is computed from; all by default. The gradient may use the others. */
  readonly valueInputCount?: number;
  /**
   * Gradients compute this operation's value again instead of keeping it from the forward pass ("cheap"), or do so where its
   * input is computed again ("alias": the value is its input's).
   */
  readonly recompute?: "cheap" | "alias";
  /** Types of the outputs from those of the inputs; throws SHAPE_MISMATCH when they do not fit. */
  shape(inputs: readonly Node[], attributes: A): TensorType | readonly TensorType[];
  /** d loss / d input for each input, each of its input's shape; undefined where none flows. */
  gradient(context: GradientContext<A>): readonly (Node | undefined)[];
  /** Emits ONNX nodes; returns the names of the outputs. */
  onnx(context: OnnxContext<A>): string | readonly string[];
}

export function apply<A>(operation: Operation<A>, inputs: readonly Node[], attributes: A): Node<A> {
  const result = operation.shape(inputs, attributes);
  const outputs = Array.isArray(result) ? (result as readonly TensorType[]) : [result as TensorType];
  return { operation, inputs, attributes, outputs, dtype: outputs[0].dtype, shape: outputs[0].shape };
}

/** For operations through which no gradient flows. */
export const noGradient = (): readonly undefined[] => [];

export function shapeError(operation: string, inputs: readonly Node[], expected: string): LlamaGymError {
  const shapes = inputs.map((input) => `${input.dtype}${formatShape(input.shape)}`).join(", ");
  return new LlamaGymError("SHAPE_MISMATCH", `${operation} was given ${shapes}; expected ${expected}.`);
}
