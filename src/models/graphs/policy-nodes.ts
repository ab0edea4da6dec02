import {
  add,
  MASKED_LOGIT,
  exp,
  gatherRows,
  input,
  logSoftmax,
  mul,
  neg,
  pick,
  positiveDim,
  reduceMax,
  reduceSum,
  dim,
  stopGradient,
  tanh,
  tokenLogProbs,
  where,
  type Dim,
  type Node,
  type AllowedTokenSets,
} from "../../engine/graph/index.js";
import type { DecoderConfig, ParameterScope } from "../../engine/nn/index.js";

/** Inputs of a loss, with one entry per selected token of the batch. */
export interface PolicyNodes {
  /** Number of selected tokens; the first dimension of these nodes and of a loss's inputs. */
  readonly selected: Dim;
  /** Log-probability of each token given the tokens before it: [selected]. */
  readonly logProbs: Node;
  /** Largest log-probability in each token's distribution, without a gradient: [selected]. */
  readonly maxLogProbs: Node;
  /** Entropy in nats of each token's distribution: [selected]; undefined unless requested. */
  readonly entropy: Node | undefined;
  /** Final hidden state that predicts each token: [selected, width]. */
  readonly hidden: Node;
  /**
   * Value of the state before each token: [selected]; undefined for a model without a value head.
   */
  readonly values: Node | undefined;
}

/** Whether entropies are computed, and whether they carry a gradient. */
export type EntropyMode = "none" | "value" | "gradient";

export interface PolicyOptions {
  readonly entropy: EntropyMode;
  /**
   * Whether the output matrix or its adapter is trained; if so, all logits are kept for the
   * gradient.
   */
  readonly isHeadTrained: boolean;
  /**
   * Whether some tokens come with the set that they were chosen from, the inputs "token_sets" and
   * "set_indices"; default false.
   */
  readonly withAllowedTokens?: boolean;
  /**
   * Whether only the logits of the tokens in the input "head_tokens" are computed, of which
   * "targets" and "token_sets" are then indices. Log-probabilities are among these tokens; default
   * false.
   */
  readonly withHeadTokens?: boolean;
  /** The value head, where the model has one. */
  readonly valueHead?: (hidden: Node) => Node | undefined;
}

/**
 * Computes the logits [rows, vocabulary] of final hidden states [rows, width], or those of some
 * `tokens` [rows, tokens].
 */
export function vocabularyLogits(config: DecoderConfig, scope: ParameterScope, hidden: Node, tokens?: Node): Node {
  const { names, logitSoftcap } = config;
  const bias = names.headBias === undefined ? undefined : selectTokens(scope.tensor(names.headBias), tokens);
  const product = scope.multiplyHead(names.head, scaleHeadInput(config, hidden), tokens);
  const logits = bias === undefined ? product : add(product, bias);
  return logitSoftcap === undefined ? logits : mul(tanh(mul(logits, 1 / logitSoftcap)), logitSoftcap);
}

/** Scales what the output matrix reads, and thus the logits. */
function scaleHeadInput({ logitScale }: DecoderConfig, hidden: Node): Node {
  return logitScale === 1 ? hidden : mul(hidden, logitScale);
}

function selectTokens(table: Node, tokens: Node | undefined): Node {
  return tokens === undefined ? table : gatherRows(table, tokens);
}

/**
 * Returns the policy's nodes for the tokens of the inputs "select" (index of the predicting state)
 * and "targets", at "inverse_temperature". With a frozen output matrix, nothing of size [selected,
 * vocabulary] is kept.
 */
export function policyNodes(
  config: DecoderConfig,
  scope: ParameterScope,
  allHidden: Node,
  {
    entropy,
    isHeadTrained,
    withAllowedTokens = false,
    withHeadTokens = false,
    valueHead: computeValues = () => undefined,
  }: PolicyOptions,
): PolicyNodes {
  const selected = dim("selected");
  const hidden = gatherRows(allHidden, input("select", "int32", [selected]));
  const targets = input("targets", "int32", [selected]);
  const inverseTemperature = input("inverse_temperature", "float32", []);
  const values = computeValues(hidden);
  const headTokens = withHeadTokens ? input("head_tokens", "int32", [positiveDim("head_tokens")]) : undefined;
  const allowedTokens: AllowedTokenSets | undefined = withAllowedTokens
    ? {
        sets: input("token_sets", "bool", [dim("token_sets"), headTokens?.shape[0] ?? config.vocabSize]),
        setIndices: input("set_indices", "int32", [selected]),
      }
    : undefined;
  const { head, headBias } = config.names;
  if (!isHeadTrained) {
    const bias = headBias === undefined ? undefined : selectTokens(scope.tensor(headBias), headTokens);
    const result = tokenLogProbs({
      hidden: scaleHeadInput(config, hidden),
      ...scope.headWeight(head, headTokens),
      bias,
      targets,
      inverseTemperature,
      softcap: config.logitSoftcap,
      allowedTokens,
      entropy,
    });
    return { selected, hidden, values, ...result };
  }
  const logits = mul(vocabularyLogits(config, scope, hidden, headTokens), inverseTemperature);
  const allLogProbs = logSoftmax(
    allowedTokens === undefined
      ? logits
      : where(gatherRows(allowedTokens.sets, allowedTokens.setIndices), logits, MASKED_LOGIT),
  );
  return {
    selected,
    hidden,
    values,
    logProbs: pick(allLogProbs, targets),
    maxLogProbs: stopGradient(reduceMax(allLogProbs, [1])),
    entropy: entropy === "none" ? undefined : neg(reduceSum(mul(exp(allLogProbs), allLogProbs), [1])),
  };
}
