import { invalidArgument } from "../../core/errors.js";
import { formatShape } from "./dim.js";
import type { Node } from "./node.js";
import { inputOperation, scalar, weightOperation } from "./ops/leaves.js";
import { add } from "./ops/elementwise.js";
import { computeAfter, expand, outputOperation } from "./ops/layout.js";

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

/** Options of `gradient`. */
export interface GradientOptions {
  /**
   * Values in the order in which the loss is computed from them, such as the inputs of a network's
   * layers. Values between two of them are not kept for the gradient, but computed again from the
   * first one (gradient checkpointing). Default none.
   */
  readonly checkpoints?: readonly Node[];
}

/**
 * Returns d loss / d parameter for each parameter by reverse-mode differentiation.
 * @throws INVALID_ARGUMENT when the loss is not a scalar or does not depend on a parameter.
 */
export function gradient(loss: Node, parameters: readonly Node[], { checkpoints = [] }: GradientOptions = {}): Node[] {
  if (loss.shape.length !== 0)
    throw invalidArgument(`The loss must be a scalar, got shape ${formatShape(loss.shape)}.`);
  const order = topologicalSort([loss]);
  const canonicalize = createCanonicalizer();
  const relevant = new Set<Node>(parameters.map(canonicalize));
  for (const node of order)
    if (node.inputs.some((input) => relevant.has(canonicalize(input)))) relevant.add(canonicalize(node));

  const upstreams = new Map<Node, (Node | undefined)[]>();
  const getUpstream = (node: Node) => upstreams.get(canonicalize(node))?.[0];
  const recompute = createRecomputer(createSegments(order, checkpoints, getUpstream));
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
    const value = getUpstream(parameter);
    if (value === undefined)
      throw invalidArgument(`The loss does not depend on parameter ${i} (${describeNode(parameter)}).`);
    return value;
  });
}

/** The parts of a graph between checkpoints. */
interface Segments {
  /** Whether a value lies between two checkpoints, so that it is computed again. */
  isInside(node: Node): boolean;
  /**
   * Returns the value from which a checkpoint's segment is computed again: the checkpoint, after
   * the gradient has reached the next one. Otherwise, all segments could be computed at once.
   * Undefined for other values.
   */
  restart(node: Node): Node | undefined;
}

function createSegments(
  order: readonly Node[],
  checkpoints: readonly Node[],
  getUpstream: (node: Node) => Node | undefined,
): Segments {
  const indices = new Map(checkpoints.map((node, i) => [node, i]));
  /** Index of the last checkpoint that a value depends on; -1 if it depends on none. */
  const segments = new Map<Node, number>();
  for (const node of order)
    segments.set(node, indices.get(node) ?? Math.max(-1, ...node.inputs.map((input) => segments.get(input)!)));
  // Nothing lies between the last checkpoint and the loss that is not read right away.
  const getNext = (node: Node): Node | undefined => checkpoints[(segments.get(node) ?? -1) + 1];
  return {
    isInside: (node) => (segments.get(node) ?? -1) >= 0 && getNext(node) !== undefined && !indices.has(node),
    restart: (node) => {
      const next = indices.has(node) ? getNext(node) : undefined;
      const upstream = next && getUpstream(next);
      return upstream && computeAfter(node, upstream);
    },
  };
}

/**
 * Replaces forward values read by gradients with recomputed ones, so that they need not stay in
 * memory until the backward pass: cheap ones, and all between two checkpoints.
 */
function createRecomputer(segments: Segments): (node: Node) => Node {
  const copies = new Map<Node, Node>();
  const recomputeNode = (node: Node): Node => {
    const known = copies.get(node);
    if (known !== undefined) return known;
    const copy = segments.restart(node) ?? copyNode(node);
    copies.set(node, copy);
    return copy;
  };
  const copyNode = (node: Node): Node => {
    const { recompute } = node.operation;
    const isInside = segments.isInside(node);
    const inputs = recompute === undefined && !isInside ? node.inputs : node.inputs.map(recomputeNode);
    const changed = inputs.some((input, i) => input !== node.inputs[i]);
    const isRecomputed = recompute === "cheap" || (changed && (recompute === "alias" || isInside));
    return isRecomputed ? { ...node, inputs, isRecomputed: true } : node;
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
