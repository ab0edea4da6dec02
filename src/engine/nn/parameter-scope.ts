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
   * Multiplies x [rows, width] by the transposed output matrix [vocabulary, width] with its
   * adapter, if any: the logits [rows, vocabulary], or those of some `tokens`.
   */
  multiplyHead(name: string, x: Node, tokens?: Node): Node;
  /**
   * Returns the stored output matrix [vocabulary, width], or the rows of some `tokens`: values, or
   * int8 codes with a scale for each row.
   */
  headWeight(name: string, tokens?: Node): { readonly head: Node; readonly scales?: Node };
  /**
   * Returns the rows [tokens, width] of an embedding [vocabulary, width] with its adapter, if any.
   * Gradients with respect to tables pass through `ignorePadding`.
   */
  embed(name: string, tokens: Node, ignorePadding: (rows: Node) => Node): Node;
}
