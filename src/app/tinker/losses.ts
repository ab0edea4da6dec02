import {
  clip,
  exp,
  input,
  minimum,
  mul,
  neg,
  stopGradient,
  sub,
  type Dim,
  type Node,
} from "../../engine/graph/index.js";
import { sequenceNodes } from "../../rl/algorithms/index.js";

/** What a loss of the Tinker API is built from. */
interface LossNodes {
  /** Log-probability of each target under the trained values at temperature 1: [selected]. */
  readonly logProbs: Node;
  /** Declares an input with one value for each target, [selected]. */
  readonly perToken: (name: string) => Node;
  /** Sums values over the targets of each datum, repeated for its targets: [selected]. */
  readonly sumByDatum: (values: Node) => Node;
}

/** A loss of the Tinker API: the sum over all targets, without a mean of any kind. */
export interface TinkerLoss {
  /** Inputs that each datum must have, with one value for each target. */
  readonly required: readonly string[];
  /**
   * Inputs that a datum may have, with their value for each target where it has none and
   * `loss_fn_config` no number.
   */
  readonly optional: Readonly<Record<string, number>>;
  /**
   * Input whose values are divided by their sum in each datum, so that they are the weights of a
   * mean.
   */
  readonly normalized?: string;
  /** Whether it is linear in the log-probabilities: each position may then have several targets. */
  readonly isLinear: boolean;
  /**
   * Inputs that are all 0 for a target without a part in the loss, such as a prompt's; empty if
   * there are none.
   */
  readonly activity: readonly string[];
  /** Returns the loss of each target: [selected]. */
  readonly build: (nodes: LossNodes) => Node;
}

const CLIP_BOUNDS = { clip_low_threshold: 0.8, clip_high_threshold: 1.2 };
const SAMPLED = ["logprobs", "advantages"];

const ratio = ({ logProbs, perToken }: LossNodes) => exp(sub(logProbs, perToken("logprobs")));

const clipRatio = (value: Node, { perToken }: LossNodes) =>
  clip(value, perToken("clip_low_threshold"), perToken("clip_high_threshold"));

/** Builds -min(r A, clip(r) A). */
const surrogate = (value: Node, nodes: LossNodes) => {
  const advantages = nodes.perToken("advantages");
  return neg(minimum(mul(value, advantages), mul(clipRatio(value, nodes), advantages)));
};

/**
 * The published losses by their names in the Tinker API. Bounds of a ratio are bounds of the ratio
 * itself.
 */
export const TINKER_LOSSES: Readonly<Record<string, TinkerLoss>> = {
  cross_entropy: {
    required: [],
    optional: { weights: 1 },
    isLinear: true,
    activity: ["weights"],
    build: ({ logProbs, perToken }) => neg(mul(perToken("weights"), logProbs)),
  },
  importance_sampling: {
    required: SAMPLED,
    optional: {},
    isLinear: false,
    activity: ["advantages"],
    build: (nodes) => neg(mul(ratio(nodes), nodes.perToken("advantages"))),
  },
  ppo: {
    required: SAMPLED,
    optional: CLIP_BOUNDS,
    isLinear: false,
    activity: ["advantages"],
    build: (nodes) => surrogate(ratio(nodes), nodes),
  },
  cispo: {
    required: SAMPLED,
    optional: CLIP_BOUNDS,
    isLinear: false,
    activity: ["advantages"],
    build: (nodes) =>
      neg(mul(mul(stopGradient(clipRatio(ratio(nodes), nodes)), nodes.logProbs), nodes.perToken("advantages"))),
  },
  dro: {
    required: SAMPLED,
    optional: { beta: 0.05 },
    isLinear: false,
    activity: [],
    build: ({ logProbs, perToken }) => {
      const difference = sub(logProbs, perToken("logprobs"));
      const penalty = mul(mul(0.5, perToken("beta")), mul(difference, difference));
      return sub(penalty, mul(logProbs, perToken("advantages")));
    },
  },
  gspo: {
    required: [...SAMPLED, "sequence_ratio_mask"],
    optional: CLIP_BOUNDS,
    normalized: "sequence_ratio_mask",
    isLinear: false,
    activity: ["advantages", "sequence_ratio_mask"],
    build: (nodes) => {
      const { logProbs, perToken, sumByDatum } = nodes;
      const difference = sub(stopGradient(logProbs), perToken("logprobs"));
      const sequenceRatio = sumByDatum(mul(perToken("sequence_ratio_mask"), difference));
      // The value of the sequence's ratio with the gradient of the token (GSPO-token).
      return surrogate(exp(sub(logProbs, stopGradient(sub(logProbs, sequenceRatio)))), nodes);
    },
  },
};

/** Builds the loss of each target from the nodes of its log-probabilities. */
export function buildLoss(loss: TinkerLoss, { logProbs, selected }: { logProbs: Node; selected: Dim }): Node {
  const inputs = new Map<string, Node>();
  const perToken = (name: string) => {
    const node = inputs.get(name) ?? input(name, "float32", [selected]);
    inputs.set(name, node);
    return node;
  };
  return loss.build({ logProbs, perToken, sumByDatum: (values) => sequenceNodes(selected).sum(values) });
}
