import {
  concat,
  gatherRows,
  input,
  mul,
  mulDims,
  reshape,
  positiveDim,
  softmax,
  dim,
  type Dim,
  type Node,
} from "../../engine/graph/index.js";
import {
  attend,
  attentionBias,
  getAttentionShape,
  padHeads,
  unpadHeads,
  type DecoderConfig,
  decoder,
  type AttentionFunction,
  type ParameterScope,
} from "../../engine/nn/index.js";
import { vocabularyLogits } from "./policy-nodes.js";
import { FROZEN_STATES, positionInputs } from "./sequence-graph.js";

/**
 * Builds the graph of a decoding step or a prefill: new tokens attend to a prefix shared by all
 * rows, to the row's cache, and to one another. Inputs other than the tokens: prefix_key_i and
 * prefix_value_i [1, heads, prefix, width], cache_key_i and cache_value_i [1, heads, rows,
 * capacity, width], the positions of each, and "select", the indices of the tokens to score;
 * "select_constrained" selects the tokens of which only the logits of "head_tokens" are needed.
 * Outputs: key_i and value_i [tokens, heads * width] of the new tokens; of the selected tokens
 * logits, raw probabilities and probabilities at a temperature [selected, vocabulary],
 * constrainedLogits [constrained, head_tokens], and values [selected + constrained] if
 * `computeValues` returns them.
 */
export function decodeGraph(
  config: DecoderConfig,
  scope: ParameterScope,
  {
    computeValues = () => undefined,
    frozenLayers = 0,
    fromFrozenStates = false,
  }: {
    readonly computeValues?: (hidden: Node) => Node | undefined;
    /**
     * Number of layers whose states are the output "frozen_states" [tokens, width]; 0 for no such
     * output.
     */
    readonly frozenLayers?: number;
    /**
     * Whether "frozen_states" is an input instead, and only the layers above are computed; default
     * false.
     */
    readonly fromFrozenStates?: boolean;
  } = {},
): Record<string, Node> {
  const tokens = positiveDim("tokens");
  const positions = positionInputs(config, tokens);
  const newKeyValues: Record<string, Node> = {};
  const attention = cachedAttention(config, tokens, newKeyValues);
  const beforeFrozen = fromFrozenStates
    ? input(FROZEN_STATES, "float32", [tokens, config.hiddenSize])
    : input("tokens", "int32", [tokens]);
  const frozenStates =
    frozenLayers === 0 || fromFrozenStates
      ? undefined
      : decoder(config, scope, beforeFrozen, positions, attention, { end: frozenLayers });
  const hidden = decoder(config, scope, frozenStates ?? beforeFrozen, positions, attention, { first: frozenLayers });

  const frozenOutput: Record<string, Node> = frozenStates === undefined ? {} : { [FROZEN_STATES]: frozenStates };
  return { ...newKeyValues, ...frozenOutput, ...scoreNodes(config, scope, hidden, computeValues) };
}

/**
 * Returns the attention of new tokens to the prefix, the cache and one another; adds their keys and
 * values to `newKeyValues`.
 */
function cachedAttention(config: DecoderConfig, tokens: Dim, newKeyValues: Record<string, Node>): AttentionFunction {
  const { heads, keyValueHeads, headDim } = config;
  const [rows, rowTokens, prefix, capacity] = ["rows", "row_tokens", "prefix", "capacity"].map(positiveDim);
  const padIndexInputs = (name: string, count: number) => ({
    indices: input(`${name}_slots`, "int32", [mulDims(count, rows, rowTokens)]),
    inverse: input(`${name}_inverse`, "int32", [mulDims(tokens, count)]),
  });
  const queryPadIndex = padIndexInputs("query", heads);
  const keyPadIndex = padIndexInputs("key", keyValueHeads);
  const rowPositions = input("row_positions", "int32", [1, rows, rowTokens]);
  const prefixPositions = input("prefix_positions", "int32", [1, 1, prefix]);
  const cachePositions = input("cache_positions", "int32", [1, rows, capacity]);
  return (q, k, v, layer, index) => {
    newKeyValues[`key_${index}`] = k;
    newKeyValues[`value_${index}`] = v;
    const padNewTokens = (x: Node) =>
      reshape(padHeads(x, keyValueHeads, headDim, keyPadIndex), [1, keyValueHeads, rows, rowTokens, headDim]);
    const shared = (kind: string) => input(`prefix_${kind}_${index}`, "float32", [1, keyValueHeads, prefix, headDim]);
    const cached = (kind: string) =>
      input(`cache_${kind}_${index}`, "float32", [1, keyValueHeads, rows, capacity, headDim]);
    const blocks = [
      { keys: shared("key"), values: shared("value"), isShared: true },
      { keys: cached("key"), values: cached("value"), isShared: false },
      { keys: padNewTokens(k), values: padNewTokens(v), isShared: false },
    ];
    const bias = concat(
      [prefixPositions, cachePositions, rowPositions].map((keys) => attentionBias(rowPositions, keys, layer.window)),
      -1,
    );
    const attended = attend(
      padHeads(q, heads, headDim, queryPadIndex),
      blocks,
      bias,
      { groups: 1, rows, tokens: rowTokens },
      getAttentionShape(config, layer),
    );
    return unpadHeads(attended, heads, headDim, tokens, queryPadIndex);
  };
}

/** Returns the outputs of the selected tokens. */
function scoreNodes(
  config: DecoderConfig,
  scope: ParameterScope,
  hidden: Node,
  computeValues: (hidden: Node) => Node | undefined,
): Record<string, Node> {
  const selected = dim("selected");
  const selectedHidden = gatherRows(hidden, input("select", "int32", [selected]));
  const constrainedHidden = gatherRows(hidden, input("select_constrained", "int32", [dim("constrained")]));
  const headTokens = input("head_tokens", "int32", [positiveDim("head_tokens")]);
  const logits = vocabularyLogits(config, scope, selectedHidden);
  const values = computeValues(concat([selectedHidden, constrainedHidden], 0));
  return {
    ...(values === undefined ? {} : { values }),
    constrainedLogits: vocabularyLogits(config, scope, constrainedHidden, headTokens),
    logits,
    rawProbabilities: softmax(logits),
    probabilities: softmax(mul(logits, input("inverse_temperature", "float32", [selected, 1]))),
  };
}
