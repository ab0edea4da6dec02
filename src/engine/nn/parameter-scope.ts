import type { Node } from "../graph/index.js";

/**
 * Where a network's layers get their parameters: by the names that the model's files have. The same network is written
 * once and given frozen, trained, adapted or quantised parameters by its scope.
 */
export interface ParameterScope {
  has(name: string): boolean;
  /** A parameter in float32, by its full name; throws WEIGHTS_MISMATCH when it is missing. */
  tensor(name: string): Node;
  /** x [rows, in] through the linear module of that name, with its bias and adapter where it has them: [rows, out]. */
  linear(module: string, x: Node): Node;
  /** What an adapter adds to the output [rows, vocabulary] of the output matrix for x [rows, width]; undefined without one. */
  applyHeadAdapter(x: Node): Node | undefined;
  /**
   * What an adapter adds to the embeddings [rows, width]; undefined without one. `gather` takes rows of a table with one for each
   * token of the vocabulary.
   */
  applyEmbeddingAdapter(gather: (table: Node) => Node): Node | undefined;
}
