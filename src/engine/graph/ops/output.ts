import { apply, defineOperation, noGradient, type Node } from "../node.js";

/**
 * Output `index` of an operation with several; its gradient reaches that operation's rule as one of
 * `upstreams`.
 */
export const outputOperation = defineOperation<{ readonly index: number }>({
  name: "output",
  infer: ([x], { index }) => x.outputs[index],
  gradient: noGradient,
  onnx: ({ inputs, attributes: { index } }) => inputs[index],
});

/** Returns output `index` of an operation with several outputs. */
export function output(node: Node, index: number): Node {
  return apply(outputOperation, [node], { index });
}
