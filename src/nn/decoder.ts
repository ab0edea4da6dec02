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
import type { DecoderConfig, LayerConfig } from "./config.js";
import type { Scope } from "./scope.js";

/** Positions of the tokens: for the tables that turn queries and keys, and for learned positions. */
export interface Positions {
  /** cos and sin [tokens, rotaryDim / 2] for each rope of the model. */
  readonly ropes: readonly { readonly cos: Node; readonly sin: Node }[];
  /** [tokens] int32; needed by models with learned positions only. */
  readonly ids: Node | undefined;
}

/** Attention of one layer: q [tokens, heads * headDim], k and v [tokens, keyValueHeads * headDim] to [tokens, heads * headDim]. */
export type AttentionFunction = (query: Node, key: Node, value: Node, layer: LayerConfig, index: number) => Node;

/** The tokens whose final states are wanted, where they are not all. */
export interface ReadTokens {
  /** x [tokens, ...] of these tokens alone, [reads, ...]. */
  readonly pick: (x: Node) => Node;
  /** Their positions. */
  readonly positions: Positions;
}

const activations = { silu, gelu, geluTanh, relu: (x: Node) => maximum(x, 0) };

/**
 * The final hidden states [tokens, width] of a decoder over flat tokens [tokens], after the last norm. With `reads` those of some
 * tokens, [reads, width]: the last layer then computes keys and values of all tokens but the rest for these alone, and its
 * attention gets their queries [reads, ...].
 */
export function decoder(
  config: DecoderConfig,
  scope: Scope,
  tokens: Node,
  positions: Positions,
  attention: AttentionFunction,
  reads?: ReadTokens,
): Node {
  let hidden = embed(config, scope, tokens);
  if (config.embeddingScale !== 1) hidden = mul(hidden, config.embeddingScale);
  if (config.names.positions !== undefined)
    hidden = add(hidden, gatherRows(scope.tensor(config.names.positions), positions.ids!));
  config.layers.forEach((layer, index) => {
    const isLast = index === config.layers.length - 1;
    const attend = (q: Node, k: Node, v: Node) => attention(q, k, v, layer, index);
    hidden = block(config, scope, layer, hidden, positions, attend, isLast ? reads : undefined);
  });
  return normalise(config, scope, config.names.finalNorm, hidden);
}

function embed({ names, paddingToken }: DecoderConfig, scope: Scope, tokens: Node): Node {
  const gather = (table: Node) => {
    const rows = gatherRows(table, tokens);
    if (paddingToken === undefined) return rows;
    const isPadding = reshape(equal(tokens, intScalar(paddingToken)), [tokens.shape[0], 1]);
    return withGradientOf(stopGradient(rows), where(isPadding, 0, rows));
  };
  const [embedded, adapted] = [gather(scope.tensor(names.embedding)), scope.embeddingAdapter(gather)];
  return adapted === undefined ? embedded : add(embedded, adapted);
}

function block(
  config: DecoderConfig,
  scope: Scope,
  layer: LayerConfig,
  all: Node,
  positions: Positions,
  attention: (q: Node, k: Node, v: Node) => Node,
  reads: ReadTokens = { pick: (x) => x, positions },
): Node {
  const { names } = layer;
  const norm = (name: string | undefined, x: Node) => (name === undefined ? x : normalise(config, scope, name, x));

  const allNormed = norm(names.attentionNorm, all);
  const [query, key, value] = queryKeyValue(config, scope, layer, allNormed, positions, reads);
  const [hidden, normed] = [reads.pick(all), reads.pick(allNormed)];
  const attended = norm(names.postAttentionNorm, scope.linear(names.attentionOutput, attention(query, key, value)));
  if (config.parallelResidual) {
    const input = names.feedForwardNorm === undefined ? normed : norm(names.feedForwardNorm, hidden);
    return add(hidden, add(attended, feedForward(config, scope, layer, input)));
  }
  const middle = add(hidden, attended);
  return add(
    middle,
    norm(names.postFeedForwardNorm, feedForward(config, scope, layer, norm(names.feedForwardNorm, middle))),
  );
}

function queryKeyValue(
  config: DecoderConfig,
  scope: Scope,
  { names, rope }: LayerConfig,
  x: Node,
  positions: Positions,
  reads: ReadTokens,
): Node[] {
  const { heads, keyValueHeads, headDim } = config;
  const widths: Dim[] = [heads * headDim, keyValueHeads * headDim, keyValueHeads * headDim];
  let query: Node;
  let key: Node;
  let value: Node;
  if (names.queryKeyValue === undefined) {
    query = scope.linear(names.query!, reads.pick(x));
    [key, value] = [names.key!, names.value!].map((name) => scope.linear(name, x));
  } else {
    [query, key, value] = split(scope.linear(names.queryKeyValue, x), 1, widths);
    query = reads.pick(query);
  }
  if (names.queryNorm !== undefined) query = normaliseHeads(config, scope, names.queryNorm, query, heads);
  if (names.keyNorm !== undefined) key = normaliseHeads(config, scope, names.keyNorm, key, keyValueHeads);
  if (rope !== undefined) {
    const [ofReads, ofAll] = [reads.positions.ropes[rope], positions.ropes[rope]];
    query = rotary(query, ofReads.cos, ofReads.sin, heads);
    key = rotary(key, ofAll.cos, ofAll.sin, keyValueHeads);
  }
  return [query, key, value];
}

function feedForward({ activation }: DecoderConfig, scope: Scope, { names }: LayerConfig, x: Node): Node {
  const activate = activations[activation];
  if (names.gateUp !== undefined) {
    const both = scope.linear(names.gateUp, x);
    const half = (both.shape[1] as number) / 2;
    const [gate, up] = split(both, 1, [half, half]);
    return scope.linear(names.down, mul(activate(gate), up));
  }
  const up = scope.linear(names.up!, x);
  const inner = names.gate === undefined ? activate(up) : mul(activate(scope.linear(names.gate, x)), up);
  return scope.linear(names.down, inner);
}

function normalise({ norm }: DecoderConfig, scope: Scope, name: string, x: Node): Node {
  const stored = scope.tensor(`${name}.weight`);
  const weight = norm.offset === 0 ? stored : add(stored, norm.offset);
  return norm.kind === "rms"
    ? rmsNorm(x, weight, norm.epsilon)
    : layerNorm(x, weight, scope.tensor(`${name}.bias`), norm.epsilon);
}

/** The norm of each head's vector by itself. */
function normaliseHeads(config: DecoderConfig, scope: Scope, name: string, x: Node, heads: number): Node {
  const [tokens, width] = x.shape;
  const vectors = reshape(x, [mulDims(tokens, heads), (width as number) / heads]);
  return reshape(normalise(config, scope, name, vectors), [tokens, width]);
}
