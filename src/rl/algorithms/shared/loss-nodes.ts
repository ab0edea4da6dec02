import { input, type Node } from "../../../engine/graph/index.js";
import { tensor, type FloatTensor } from "../../../engine/tensor/index.js";
import type { PolicyNodes } from "../../../models/graphs/index.js";
import { concatenate } from "./arrays.js";
import { floatVector } from "./sequence-nodes.js";
import type { NumberArray } from "./statistics.js";

/** Per-token inputs that the learner supplies to every loss. */
export const TOKEN_INPUTS = ["oldLogProbs", "oldValues", "refLogProbs", "advantages", "returns", "policyMask"] as const;
/** Per-token input of a loss. */
export type TokenInput = (typeof TOKEN_INPUTS)[number] | "weights";

type PolicyOutputs = Pick<PolicyNodes, "selected" | "logProbs" | "entropy"> & Partial<Pick<PolicyNodes, "values">>;

/** Arguments of a loss: the policy's nodes and the inputs supplied with each micro-batch. */
export interface LossNodes extends PolicyOutputs {
  /**
   * Declares a per-token input, [selected]; names other than `TokenInput` come from the
   * definition's `inputs`.
   */
  readonly perToken: (name: TokenInput | (string & {})) => Node;
  /**
   * 1 / (tokens of the optimizer step), so that weighted sums over micro-batches add up to the
   * mean.
   */
  readonly weights: Node;
  /** Scheduled factor of the entropy bonus; scalar. */
  readonly entropyFactor: Node;
}

/** Adds the learner's inputs to the nodes of a policy. */
export function lossNodes(policy: PolicyOutputs): LossNodes {
  const inputs = new Map<string, Node>();
  const perToken = (name: string) => {
    const node = inputs.get(name) ?? input(name, "float32", [policy.selected]);
    inputs.set(name, node);
    return node;
  };
  return { ...policy, perToken, weights: perToken("weights"), entropyFactor: input("entropyFactor", "float32", []) };
}

type TokenColumns = Readonly<Partial<Record<(typeof TOKEN_INPUTS)[number], NumberArray | undefined>>>;

/**
 * Returns the inputs of `lossNodes` for a micro-batch of turns; `tokens` counts the whole optimizer
 * step.
 */
export function tokenInputs(
  turns: readonly TokenColumns[],
  { tokens, entropyFactor = 1 }: { readonly tokens: number; readonly entropyFactor?: number },
): Record<string, FloatTensor> {
  const columns = TOKEN_INPUTS.flatMap((name) => {
    const parts = turns.map((turn) => turn[name]).filter((part) => part !== undefined);
    if (parts.length < turns.length) return [];
    return [[name, floatVector(concatenate(parts))] as const];
  });
  const inputs: Record<string, FloatTensor> = Object.fromEntries(columns);
  const [length] = Object.values(inputs)[0].shape;
  return {
    ...inputs,
    weights: floatVector(new Float32Array(length).fill(1 / tokens)),
    entropyFactor: tensor("float32", [], Float32Array.of(entropyFactor)),
  };
}
