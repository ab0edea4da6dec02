import { abs, add, exp, log, maximum, neg, type Node } from "../../../engine/graph/index.js";

/** Returns log(sigmoid(x)) without overflow; its gradient at 0 is 1/2. */
export function logSigmoid(x: Node): Node {
  const negated = neg(x);
  return neg(add(maximum(negated, 0), log(add(exp(neg(abs(negated))), 1))));
}
