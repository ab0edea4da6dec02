import {
  add,
  equal,
  gatherRows,
  gelu,
  geluTanh,
  intScalar,
  layerNorm,
  maximum,
  mul,
  reshape,
  rmsNorm,
  rotary,
  silu,
  split,
  stopGradient,
  where,
  withGradientOf,
  mulDims,
  type Dim,
  type Node,
} from "../graph/index.js";
import type { DecoderConfig, LayerConfig } from "./decoder-config.js";
import type { ParameterScope } from "./parameter-scope.js";

/** Position inputs for rotary and learned embeddings. */
export interface PositionInputs {
  /** cos and sin [tokens, rotaryDim / 2] of each of the model's ropes. */
  readonly ropes: readonly { readonly cos: Node; readonly sin: Node }[];
  /** [tokens] int32; only for models with learned positions. */
  readonly ids: Node | undefined;
}

/**
 * Computes a layer's attention from q [tokens, heads * headDim] and k, v [tokens, keyValueHeads *
 * headDim] to [tokens, heads * headDim].
 */
export type AttentionFunction = (query: Node, key: Node, value: Node, layer: LayerConfig, index: number) => Node;

/** A subset of the tokens whose final states are computed. */
export interface TokenSelection {
  /** Maps x [tokens, ...] to [selected, ...]. */
  readonly select: (x: Node) => Node;
  readonly positions: PositionInputs;
}

const activations = { silu, gelu, geluTanh, relu: (x: Node) => maximum(x, 0) };

/** What a decoder computes; default all of it. */
export interface DecoderOptions {
  /**
   * The last layer computes keys and values of all tokens but queries and everything after them for
   * these tokens only.
   */
  readonly selection?: TokenSelection;
  /**
   * First layer to compute; above 0, the input is the hidden states before it instead of tokens.
   */
  readonly first?: number;
  /** Layer before which to stop, without the final norm. */
  readonly end?: number;
  /** Receives the hidden states before each computed layer. */
  readonly onLayerInput?: (hidden: Node) => void;
}

/**
 * Builds a decoder over flat tokens [tokens] and returns the final hidden states [tokens, width]
 * after the last norm, or those of the selected tokens [selected, width].
 */
export function decoder(
  config: DecoderConfig,
  scope: ParameterScope,
  tokensOrStates: Node,
  positions: PositionInputs,
  attention: AttentionFunction,
  { selection, first = 0, end, onLayerInput }: DecoderOptions = {},
): Node {
  const { layers, names } = config;
  let hidden = first === 0 ? embedTokens(config, scope, tokensOrStates, positions) : tokensOrStates;
  layers.slice(first, end).forEach((layer, i) => {
    const index = first + i;
    onLayerInput?.(hidden);
    const attend = (q: Node, k: Node, v: Node) => attention(q, k, v, layer, index);
    const selected = index === layers.length - 1 ? selection : undefined;
    hidden = transformerBlock(config, scope, layer, hidden, positions, attend, selected);
  });
  if (end !== undefined) return hidden;
  if (first === layers.length && selection !== undefined) hidden = selection.select(hidden);
  return applyNorm(config, scope, names.finalNorm, hidden);
}

function embedTokens(config: DecoderConfig, scope: ParameterScope, tokens: Node, positions: PositionInputs): Node {
  let hidden = embed(config, scope, tokens);
  if (config.embeddingScale !== 1) hidden = mul(hidden, config.embeddingScale);
  if (config.names.positions !== undefined)
    hidden = add(hidden, gatherRows(scope.tensor(config.names.positions), positions.ids!));
  return hidden;
}

function embed({ names, paddingToken }: DecoderConfig, scope: ParameterScope, tokens: Node): Node {
  return scope.embed(names.embedding, tokens, (rows) => {
    if (paddingToken === undefined) return rows;
    const isPadding = reshape(equal(tokens, intScalar(paddingToken)), [tokens.shape[0], 1]);
    return withGradientOf(stopGradient(rows), where(isPadding, 0, rows));
  });
}

function transformerBlock(
  config: DecoderConfig,
  scope: ParameterScope,
  layer: LayerConfig,
  allHidden: Node,
  positions: PositionInputs,
  attention: (q: Node, k: Node, v: Node) => Node,
  selection: TokenSelection = { select: (x) => x, positions },
): Node {
  const { names } = layer;
  const addResidual = (x: Node, output: Node) =>
    add(x, config.residualScale === 1 ? output : mul(output, config.residualScale));
  const norm = (name: string | undefined, x: Node) => (name === undefined ? x : applyNorm(config, scope, name, x));

  const allNormed = norm(names.attentionNorm, allHidden);
  const [query, key, value] = projectQueryKeyValue(config, scope, layer, allNormed, positions, selection);
  const [hidden, normed] = [selection.select(allHidden), selection.select(allNormed)];
  const attentionOutput = norm(
    names.postAttentionNorm,
    scope.linear(names.attentionOutput, attention(query, key, value)),
  );
  if (config.parallelResidual) {
    const input = names.feedForwardNorm === undefined ? normed : norm(names.feedForwardNorm, hidden);
    return addResidual(hidden, add(attentionOutput, applyFeedForward(config, scope, layer, input)));
  }
  const afterAttention = addResidual(hidden, attentionOutput);
  return addResidual(
    afterAttention,
    norm(
      names.postFeedForwardNorm,
      applyFeedForward(config, scope, layer, norm(names.feedForwardNorm, afterAttention)),
    ),
  );
}

function projectQueryKeyValue(
  config: DecoderConfig,
  scope: ParameterScope,
  { names, rope }: LayerConfig,
  x: Node,
  positions: PositionInputs,
  selection: TokenSelection,
): Node[] {
  const { heads, keyValueHeads, headDim } = config;
  const widths: Dim[] = [heads * headDim, keyValueHeads * headDim, keyValueHeads * headDim];
  let query: Node;
  let key: Node;
  let value: Node;
  if (names.queryKeyValue === undefined) {
    const selected = selection.select(x);
    const keyAndValue = [names.key!, names.value!];
    [query, key, value] =
      selected === x
        ? scope.linears([names.query!, ...keyAndValue], x)
        : [scope.linear(names.query!, selected), ...scope.linears(keyAndValue, x)];
  } else {
    const joined = scope.linear(names.queryKeyValue, x);
    [query, key, value] =
      config.queryKeyValueOrder === "parts" ? split(joined, 1, widths) : splitHeads(joined, heads, headDim);
    query = selection.select(query);
  }
  if (names.queryNorm !== undefined) query = applyHeadNorm(config, scope, names.queryNorm, query, heads);
  if (names.keyNorm !== undefined) key = applyHeadNorm(config, scope, names.keyNorm, key, keyValueHeads);
  if (rope !== undefined) {
    const [queryRope, keyRope] = [selection.positions.ropes[rope], positions.ropes[rope]];
    query = rotary(query, queryRope.cos, queryRope.sin, heads);
    key = rotary(key, keyRope.cos, keyRope.sin, keyValueHeads);
  }
  return [query, key, value];
}

/** Splits [tokens, heads * 3 * headDim] into query, key and value [tokens, heads * headDim]. */
function splitHeads(joined: Node, heads: number, headDim: number): Node[] {
  const [tokens] = joined.shape;
  const byHead = reshape(joined, [mulDims(tokens, heads), 3 * headDim]);
  return split(byHead, 1, [headDim, headDim, headDim]).map((part) => reshape(part, [tokens, heads * headDim]));
}

function applyFeedForward({ activation }: DecoderConfig, scope: ParameterScope, { names }: LayerConfig, x: Node): Node {
  const activate = activations[activation];
  if (names.gateUp !== undefined) {
    const gateAndUp = scope.linear(names.gateUp, x);
    const half = (gateAndUp.shape[1] as number) / 2;
    const [gate, up] = split(gateAndUp, 1, [half, half]);
    return scope.linear(names.down, mul(activate(gate), up));
  }
  if (names.gate === undefined) return scope.linear(names.down, activate(scope.linear(names.up!, x)));
  const [up, gate] = scope.linears([names.up!, names.gate], x);
  return scope.linear(names.down, mul(activate(gate), up));
}

function applyNorm({ norm }: DecoderConfig, scope: ParameterScope, name: string, x: Node): Node {
  const stored = scope.tensor(`${name}.weight`);
  const weight = norm.offset === 0 ? stored : add(stored, norm.offset);
  return norm.kind === "rms"
    ? rmsNorm(x, weight, norm.epsilon)
    : layerNorm(x, weight, scope.tensor(`${name}.bias`), norm.epsilon);
}

/** Applies a norm to each head's vector, or to all of them as one. */
function applyHeadNorm(config: DecoderConfig, scope: ParameterScope, name: string, x: Node, heads: number): Node {
  if (config.queryKeyNorm === "all") return applyNorm(config, scope, name, x);
  const [tokens, width] = x.shape;
  const headVectors = reshape(x, [mulDims(tokens, heads), (width as number) / heads]);
  return reshape(applyNorm(config, scope, name, headVectors), [tokens, width]);
}
