import { invalidArgument } from "../../core/errors.js";
import { formatShape } from "./dim.js";
import type { Node } from "./node.js";
import { inputOperation, scalar, weightOperation } from "./ops/leaves.js";
import { add } from "./ops/elementwise.js";
import { expand } from "./ops/layout.js";
import { outputOperation } from "./ops/output.js";

/** Returns the roots and all nodes they depend on through `getInputs`, inputs first. */
export function topologicalSort(
  roots: readonly Node[],
  getInputs: (node: Node) => readonly Node[] = ({ inputs }) => inputs,
): Node[] {
  const order: Node[] = [];
  const visited = new Set<Node>();
  const stack: { node: Node; next: number }[] = [];
  for (const root of roots) {
    if (visited.has(root)) continue;
    visited.add(root);
    stack.push({ node: root, next: 0 });
    while (stack.length > 0) {
      const top = stack[stack.length - 1];
      const inputs = getInputs(top.node);
      if (top.next === inputs.length) {
        order.push(top.node);
        stack.pop();
        continue;
      }
      const input = inputs[top.next++];
      if (visited.has(input)) continue;
      visited.add(input);
      stack.push({ node: input, next: 0 });
    }
  }
  return order;
}

/**
 * Returns d loss / d parameter for each parameter by reverse-mode differentiation.
 * @throws INVALID_ARGUMENT when the loss is not a scalar or does not depend on a parameter.
 */
export function gradient(loss: Node, parameters: readonly Node[]): Node[] {
  if (loss.shape.length !== 0)
    throw invalidArgument(`The loss must be a scalar, got shape ${formatShape(loss.shape)}.`);
  const order = topologicalSort([loss]);
  const canonicalize = createCanonicalizer();
  const relevant = new Set<Node>(parameters.map(canonicalize));
  for (const node of order)
    if (node.inputs.some((input) => relevant.has(canonicalize(input)))) relevant.add(canonicalize(node));

  const recompute = createRecomputer();
  const upstreams = new Map<Node, (Node | undefined)[]>();
  const accumulate = (node: Node, index: number, value: Node) => {
    const list = upstreams.get(node) ?? [];
    list[index] = list[index] === undefined ? value : add(list[index], value);
    upstreams.set(node, list);
  };
  accumulate(canonicalize(loss), 0, scalar(1));
  for (const node of order.reverse()) {
    const nodeUpstreams = upstreams.get(node);
    if (nodeUpstreams === undefined || !relevant.has(node)) continue;
    if (node.operation === outputOperation) {
      const { index } = node.attributes as { index: number };
      accumulate(node.inputs[0], index, nodeUpstreams[0]!);
      continue;
    }
    const gradients = node.operation.gradient({
      node,
      inputs: node.inputs.map(recompute),
      attributes: node.attributes,
      output: recompute(node),
      upstream: nodeUpstreams[0] ?? expand(scalar(0), node.shape),
      upstreams: nodeUpstreams,
    });
    node.inputs.forEach((input, i) => {
      const value = gradients[i];
      if (value !== undefined && relevant.has(canonicalize(input))) accumulate(canonicalize(input), 0, value);
    });
  }
  return parameters.map((parameter, i) => {
    const value = upstreams.get(canonicalize(parameter))?.[0];
    if (value === undefined)
      throw invalidArgument(`The loss does not depend on parameter ${i} (${describeNode(parameter)}).`);
    return value;
  });
}

/**
 * Replaces cheap forward values read by gradients with recomputed ones, so that they need not stay
 * in memory until the backward pass.
 */
function createRecomputer(): (node: Node) => Node {
  const copies = new Map<Node, Node>();
  const recomputeNode = (node: Node): Node => {
    const known = copies.get(node);
    if (known !== undefined) return known;
    const { recompute } = node.operation;
    const inputs = recompute === undefined ? node.inputs : node.inputs.map(recomputeNode);
    const changed = inputs.some((input, i) => input !== node.inputs[i]);
    const copy =
      recompute === "cheap" || (recompute === "alias" && changed) ? { ...node, inputs, isRecomputed: true } : node;
    copies.set(node, copy);
    return copy;
  };
  return recomputeNode;
}

/** Maps inputs and weights of the same name, which are the same value, to the first such node. */
function createCanonicalizer(): (node: Node) => Node {
  const firstNodes = new Map<string, Node>();
  return (node) => {
    if (node.operation !== inputOperation && node.operation !== weightOperation) return node;
    const key = `${node.operation.name} ${(node.attributes as { name: string }).name}`;
    const first = firstNodes.get(key) ?? node;
    firstNodes.set(key, first);
    return first;
  };
}

function describeNode(node: Node): string {
  const { name } = node.attributes as { name?: string };
  return name ?? `${node.operation.name} ${formatShape(node.shape)}`;
}
