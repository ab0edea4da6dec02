import {
  add,
  BARRED,
  exp,
  gatherRows,
  input,
  logSoftmax,
  matmul,
  mul,
  neg,
  pick,
  reduceSum,
  symbol,
  tanh,
  tokenLogProbs,
  where,
  type Dim,
  type Node,
  type TokenSets,
} from "../graph/index.js";
import type { DecoderConfig } from "../nn/config.js";
import type { Scope } from "../nn/scope.js";

/** What a loss is written with: one entry for each chosen token of the batch, in the order in which they were chosen. */
export interface PolicyNodes {
  /** How many tokens were chosen; the first dimension of everything here and of a loss's own inputs. */
  readonly selected: Dim;
  /** Log-probability of each chosen token given the tokens before it: [selected]. */
  readonly logProbs: Node;
  /** Entropy in nats of the distribution that each chosen token came from: [selected]; undefined unless asked for. */
  readonly entropy: Node | undefined;
  /** Final hidden state that predicts each chosen token: [selected, width]. */
  readonly hidden: Node;
  /** Value of the state before each chosen token: [selected]; undefined for a model without a value head. */
  readonly values: Node | undefined;
}

export type EntropyUse = "none" | "value" | "gradient";

export interface PolicyOptions {
  readonly entropy: EntropyUse;
  /** Whether the output matrix or an adapter of it is trained; then all logits are kept for the gradient. */
  readonly trainedHead: boolean;
  /** Whether some tokens come with the set that they were chosen from, the inputs "token_sets" and "set_of"; default false. */
  readonly withSets?: boolean;
  /** The value head, where the model has one. */
  readonly values?: (hidden: Node) => Node | undefined;
}

/** Raw scores of the vocabulary [rows, vocabulary] from final hidden states [rows, width]. */
export function vocabularyLogits({ names, logitSoftcap }: DecoderConfig, scope: Scope, hidden: Node): Node {
  const adapted = scope.headAdapter(hidden);
  const bias = names.headBias === undefined ? undefined : scope.tensor(names.headBias);
  const product = matmul(hidden, scope.tensor(names.head), { transposeB: true });
  const logits = [adapted, bias].reduce<Node>((sum, term) => (term === undefined ? sum : add(sum, term)), product);
  return logitSoftcap === undefined ? logits : mul(tanh(mul(logits, 1 / logitSoftcap)), logitSoftcap);
}

/**
 * Log-probabilities of the tokens named by the inputs "select" (the number of the state that predicts each) and "targets", under the
 * policy at the input "inverse_temperature". With a frozen output matrix nothing of size [selected, vocabulary] is kept.
 */
export function policyNodes(
  config: DecoderConfig,
  scope: Scope,
  allHidden: Node,
  { entropy, trainedHead, withSets = false, values: valuesOf = () => undefined }: PolicyOptions,
): PolicyNodes {
  const selected = symbol("selected");
  const hidden = gatherRows(allHidden, input("select", "int32", [selected]));
  const targets = input("targets", "int32", [selected]);
  const inverseTemperature = input("inverse_temperature", "float32", []);
  const values = valuesOf(hidden);
  const among: TokenSets | undefined = withSets
    ? {
        sets: input("token_sets", "bool", [symbol("token_sets"), config.vocabSize]),
        setOf: input("set_of", "int32", [selected]),
      }
    : undefined;
  const { head, headBias } = config.names;
  if (!trainedHead) {
    const bias = headBias === undefined ? undefined : scope.tensor(headBias);
    const result = tokenLogProbs({
      hidden,
      head: scope.tensor(head),
      bias,
      targets,
      inverseTemperature,
      softcap: config.logitSoftcap,
      among,
      entropy,
    });
    return { selected, hidden, values, ...result };
  }
  const logits = mul(vocabularyLogits(config, scope, hidden), inverseTemperature);
  const all = logSoftmax(among === undefined ? logits : where(gatherRows(among.sets, among.setOf), logits, BARRED));
  return {
    selected,
    hidden,
    values,
    logProbs: pick(all, targets),
    entropy: entropy === "none" ? undefined : neg(reduceSum(mul(exp(all), all), [1])),
  };
}
