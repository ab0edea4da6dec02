import type { Node } from "../graph/index.js";

/**
 * Provides a network's parameters by their names in the checkpoint. A network is written once; its
 * scope decides whether parameters are frozen, trained, adapted or quantized.
 */
export interface ParameterScope {
  has(name: string): boolean;
  /** Returns a float32 parameter by its full name. @throws WEIGHTS_MISMATCH when it is missing. */
  tensor(name: string): Node;
  /** Applies a linear module with its bias and adapter, if any: [rows, in] to [rows, out]. */
  linear(module: string, x: Node): Node;
  /** Applies several linear modules to the same input. */
  linears(modules: readonly string[], x: Node): Node[];
  /**
   * Multiplies x [rows, width] by the transposed output matrix [vocabulary, width], without its
   * adapter.
   */
  multiplyHead(name: string, x: Node): Node;
  /**
   * Returns the adapter's contribution to the logits [rows, vocabulary] for x [rows, width], or to
   * those of some `tokens`; undefined without one.
   */
  applyHeadAdapter(x: Node, tokens?: Node): Node | undefined;
  /**
   * Returns the adapter's contribution to the embeddings [rows, width]; undefined without one.
   * `gather` takes rows of a table with one row per token of the vocabulary.
   */
  applyEmbeddingAdapter(gather: (table: Node) => Node): Node | undefined;
}
