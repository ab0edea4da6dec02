import { compile, gradient, type Node } from "../../graph/index.js";
import type { Objective } from "../../models/training-graph.js";
import type { Runtime } from "../../runtime/runtime.js";
import type { Feeds } from "../../runtime/session.js";

type Values = Readonly<Record<string, Float32Array>>;

export interface Evaluation {
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

/** A loss, its statistics and its gradients with respect to leaves (or any nodes that it is made of). */
export async function evaluateObjective(
  runtime: Runtime,
  { loss, statistics = {} }: Objective,
  leaves: Readonly<Record<string, Node>>,
  feeds: Feeds,
): Promise<Evaluation> {
  const names = Object.keys(leaves);
  const slopes = gradient(loss, Object.values(leaves));
  const outputs: Values & { readonly loss: Float32Array } = await evaluateNodes(
    runtime,
    {
      loss,
      ...prefixed("statistic ", statistics),
      ...Object.fromEntries(names.map((name, i) => [`gradient ${name}`, slopes[i]])),
    },
    feeds,
  );
  const pick = (prefix: string, of: readonly string[]) =>
    Object.fromEntries(of.map((name) => [name, outputs[prefix + name]]));
  return {
    loss: outputs.loss[0],
    statistics: pick("statistic ", Object.keys(statistics)),
    gradients: pick("gradient ", names),
  };
}

function prefixed(prefix: string, nodes: Readonly<Record<string, Node>>): Record<string, Node> {
  return Object.fromEntries(Object.entries(nodes).map(([name, node]) => [prefix + name, node]));
}
