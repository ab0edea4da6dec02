import { int32, tensor, type Tensor } from "../engine/tensor/index.js";
import type { TokenBatch } from "../models/graphs/index.js";

/** A batch with the inputs of its loss. */
export interface LossBatch {
  readonly batch: TokenBatch;
  readonly inputs: Readonly<Record<string, Tensor>>;
  /** For each selected token, the one of the batch that was given. */
  readonly origins: ArrayLike<number>;
}

/**
 * Returns a batch that selects a token for each decision, as losses of a service need it: turns in
 * the same state share theirs. Undefined if decisions are among alternatives.
 */
export function selectDecisions(batch: TokenBatch, inputs: Readonly<Record<string, Tensor>>): LossBatch | undefined {
  const { decision_free: isFree, decision_routes: routes } = inputs;
  if (isFree === undefined) return { batch, inputs, origins: batch.selected.map((_, i) => i) };
  const [count, ...others] = routes.shape;
  if (others.some((size) => size !== 1) || isFree.data.some((value) => value !== 1)) return undefined;
  const origins = routes.data as Int32Array;
  const own = Array.from({ length: count }, (_, i) => i);
  return {
    batch: { ...batch, selected: Array.from(origins, (origin) => batch.selected[origin]) },
    inputs: {
      ...inputs,
      decision_routes: tensor("int32", routes.shape, Int32Array.from(own)),
      decision_first: int32(own),
    },
    origins,
  };
}
