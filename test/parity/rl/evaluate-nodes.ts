import { compile, gradient, type Node } from "../../../src/engine/graph/index.js";
import type { LossResult } from "../../../src/models/graphs/training-graph.js";
import type { Runtime } from "../../../src/engine/runtime/runtime.js";
import type { Feeds } from "../../../src/engine/runtime/session.js";

type Values = Readonly<Record<string, Float32Array>>;

export interface LossEvaluation {
  readonly loss: number;
  readonly statistics: Values;
  /** d loss / d leaf, by the leaf's name. */
  readonly gradients: Values;
}

/** Values of nodes, by name. */
export async function evaluateNodes<Name extends string>(
  runtime: Runtime,
  nodes: Readonly<Record<Name, Node>>,
  feeds: Feeds,
): Promise<Readonly<Record<Name, Float32Array>>> {
  const session = await runtime.createSession(compile(nodes));
  const outputs = await session.run(feeds);
  await session.release();
  const values = Object.keys(nodes).map((name) => [name, outputs[name].data] as const);
  return Object.fromEntries(values) as Record<Name, Float32Array>;
}

/**
 * A loss, its statistics and its gradients with respect to leaves (or any nodes that it is made
 * of).
 */
export async function evaluateLoss(
  runtime: Runtime,
  { loss, statistics = {} }: LossResult,
  leaves: Readonly<Record<string, Node>>,
  feeds: Feeds,
): Promise<LossEvaluation> {
  const names = Object.keys(leaves);
  const gradientNodes = gradient(loss, Object.values(leaves));
  const outputs: Values & { readonly loss: Float32Array } = await evaluateNodes(
    runtime,
    {
      loss,
      ...addPrefix("statistic ", statistics),
      ...Object.fromEntries(names.map((name, i) => [`gradient ${name}`, gradientNodes[i]])),
    },
    feeds,
  );
  const select = (prefix: string, keys: readonly string[]) =>
    Object.fromEntries(keys.map((name) => [name, outputs[prefix + name]]));
  return {
    loss: outputs.loss[0],
    statistics: select("statistic ", Object.keys(statistics)),
    gradients: select("gradient ", names),
  };
}

function addPrefix(prefix: string, nodes: Readonly<Record<string, Node>>): Record<string, Node> {
  return Object.fromEntries(Object.entries(nodes).map(([name, node]) => [prefix + name, node]));
}
