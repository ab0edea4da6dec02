import { compile, type Node } from "../../engine/graph/index.js";
import { headIndices, padIndexFeeds, positionFeeds } from "../../models/graphs/attention-feeds.js";
import { PADDING_POSITION } from "../../models/graphs/sequence-batch.js";
import { decodeGraph } from "../../models/graphs/decode-graph.js";
import { FROZEN_STATES } from "../../models/graphs/sequence-graph.js";
import type { CausalLM } from "../../models/causal-lm.js";
import type { WorkerRequest } from "../../engine/runtime/worker-protocol.js";
import type { Session } from "../../engine/runtime/session.js";
import { subview, type IoBinding, type BufferView } from "../../engine/runtime/buffer-view.js";
import { int32, tensor, type Tensor } from "../../engine/tensor/tensor.js";
import { cacheShape, type NewKeyValues, type KvCache } from "./kv-cache.js";

/** New tokens of one row, after its cached ones. */
export interface RowInput {
  readonly tokens: readonly number[];
  /** Row of the cache with the tokens before; the index of the row if there is no cache. */
  readonly cacheRow: number;
  /** Number of valid tokens in that row. */
  readonly cachedLength: number;
  /** Number of known tokens of the whole sequence; some rotary embeddings depend on it. */
  readonly sequenceLength: number;
}

export interface DecodeInputs {
  readonly rows: readonly RowInput[];
  /** Tokens before all rows. */
  readonly prefixCache: KvCache | undefined;
  readonly prefixLength: number;
  readonly cache: KvCache | undefined;
  /** Flat indices (row after row) of the tokens whose logits are computed. */
  readonly selectedTokens: readonly number[];
  /** One per selected token. */
  readonly inverseTemperatures: readonly number[];
  readonly adapter: boolean;
}

/** The buffers that a step writes. */
export interface DecodeOutputs {
  readonly newKeyValues: NewKeyValues;
  /** [selected, vocabulary] */
  readonly logits: BufferView;
  readonly rawProbabilities: BufferView;
  readonly probabilities: BufferView;
  /** [selected]; undefined for a model without a value head. */
  readonly values: BufferView | undefined;
  /** States of the new tokens after the frozen layers [tokens, width]; undefined for a model without frozen layers. */
  readonly frozenStates: BufferView | undefined;
}

/** An inference session of a model's decode graph, for prompts and single tokens. */
export class DecodeSession {
  private readonly shape;
  private emptyCache: BufferView;
  /** By whether the adapter is used. */
  private readonly parameters = new Map<boolean, IoBinding>();
  private newKeyValues: { view: BufferView; tokens: number } | undefined;
  private scores: { view: BufferView; rows: number } | undefined;
  private inputs: { key: string; binding: IoBinding } | undefined;
  private outputs: { key: string; binding: IoBinding; result: DecodeOutputs } | undefined;

  private constructor(
    private readonly model: CausalLM,
    private readonly session: Session,
    private readonly hasFrozenStates: boolean,
  ) {
    this.shape = cacheShape(model.config);
    this.emptyCache = model.runtime.allocate("float32", [0]);
  }

  static async create(model: CausalLM): Promise<DecodeSession> {
    const scope = model.scope("unmerged");
    const frozenLayers = model.isTrainable ? model.frozenLayers : 0;
    const computeValues = (hidden: Node) => model.computeValues(scope, hidden);
    const graph = compile(decodeGraph(model.config, scope, { computeValues, frozenLayers }));
    return new DecodeSession(model, await model.createSession(graph), frozenLayers > 0);
  }

  /** Prepares the request of a step; send it before requests that use its outputs. */
  prepare(inputs: DecodeInputs): { request: WorkerRequest; outputs: DecodeOutputs } {
    const { config } = this.model;
    const rowCount = inputs.cache?.rows ?? inputs.rows.length;
    const feeds = rowFeeds(config, inputs, rowCount);
    const tokenCount = feeds.tokens.data.length;
    const inputBinding = this.bindInputs(inputs, rowCount);
    const { binding, result } = this.bindOutputs(tokenCount, inputs.selectedTokens.length);
    return {
      request: this.session.request(feeds, { bindings: [this.bindParameters(inputs.adapter), inputBinding, binding] }),
      outputs: result,
    };
  }

  async release(): Promise<void> {
    const { runtime } = this.model;
    for (const buffer of [this.emptyCache, this.newKeyValues?.view, this.scores?.view])
      if (buffer !== undefined) runtime.free(buffer);
    for (const binding of [...this.parameters.values(), this.inputs?.binding, this.outputs?.binding]) {
      if (binding !== undefined) runtime.unbind(binding);
    }
    await this.session.release();
  }

  private bindParameters(adapter: boolean): IoBinding {
    const { model, session, parameters } = this;
    const binding =
      parameters.get(adapter) ?? model.runtime.bind({ feeds: model.getParameterViews(session.graph, { adapter }) });
    parameters.set(adapter, binding);
    return binding;
  }

  /** Binds prefix and cache, which change only when a cache is replaced. */
  private bindInputs({ prefixCache, prefixLength, cache }: DecodeInputs, rowCount: number): IoBinding {
    const key = `${prefixCache?.buffer.buffer}:${prefixLength}:${cache?.buffer.buffer}:${rowCount}`;
    if (this.inputs?.key === key) return this.inputs.binding;
    if (this.inputs !== undefined) this.model.runtime.unbind(this.inputs.binding);
    const { layers, keyValueHeads, headDim } = this.shape;
    this.ensureEmptyCache(rowCount);
    const feeds: Record<string, BufferView> = {};
    for (let layer = 0; layer < layers; layer++) {
      for (const kind of ["key", "value"] as const) {
        const prefixView = prefixCache?.layerView(layer, kind) ?? this.emptyCache;
        feeds[`prefix_${kind}_${layer}`] = {
          ...prefixView,
          shape: [1, keyValueHeads, paddedPrefixLength(prefixLength), headDim],
        };
        const cacheView = cache?.layerView(layer, kind) ?? this.emptyCache;
        feeds[`cache_${kind}_${layer}`] = {
          ...cacheView,
          shape: [1, keyValueHeads, rowCount, cache?.capacity ?? 1, headDim],
        };
      }
    }
    this.inputs = { key, binding: this.model.runtime.bind({ feeds }) };
    return this.inputs.binding;
  }

  /** Allocates one masked token per row, which stands in for a missing cache. */
  private ensureEmptyCache(rowCount: number): void {
    const needed = this.shape.keyValueHeads * rowCount * this.shape.headDim;
    if (this.emptyCache.shape[0] >= needed) return;
    this.model.runtime.free(this.emptyCache);
    this.emptyCache = this.model.runtime.allocate("float32", [needed]);
  }

  private bindOutputs(tokenCount: number, selectedCount: number): { binding: IoBinding; result: DecodeOutputs } {
    const { runtime, config } = this.model;
    const { layers, keyValueHeads, headDim } = this.shape;
    const width = keyValueHeads * headDim;
    const stateWidth = this.hasFrozenStates ? config.hiddenSize : 0;
    if (this.newKeyValues === undefined || this.newKeyValues.tokens < tokenCount) {
      if (this.newKeyValues !== undefined) runtime.free(this.newKeyValues.view);
      const view = runtime.allocate("float32", [tokenCount * (layers * 2 * width + stateWidth)]);
      this.newKeyValues = { view, tokens: tokenCount };
      this.unbindOutputs();
    }
    if (this.scores === undefined || this.scores.rows < selectedCount) {
      if (this.scores !== undefined) runtime.free(this.scores.view);
      this.scores = {
        view: runtime.allocate("float32", [selectedCount * (3 * config.vocabSize + 1)]),
        rows: selectedCount,
      };
      this.unbindOutputs();
    }
    const key = `${tokenCount}:${selectedCount}`;
    if (this.outputs?.key === key) return this.outputs;
    this.unbindOutputs();
    const keyValueViews = Array.from({ length: layers * 2 }, (_, i) =>
      subview(this.newKeyValues!.view, i * this.newKeyValues!.tokens * width, [tokenCount, width]),
    );
    const [logits, rawProbabilities, probabilities] = [0, 1, 2].map((i) =>
      subview(this.scores!.view, i * this.scores!.rows * config.vocabSize, [selectedCount, config.vocabSize]),
    );
    const values =
      this.model.valueHead && subview(this.scores.view, 3 * this.scores.rows * config.vocabSize, [selectedCount]);
    const { view: newValues, tokens: capacity } = this.newKeyValues;
    const frozenStates = this.hasFrozenStates
      ? subview(newValues, layers * 2 * capacity * width, [tokenCount, stateWidth])
      : undefined;
    const fetches: Record<string, BufferView> = {
      logits,
      rawProbabilities,
      probabilities,
      ...(values && { values }),
      ...(frozenStates && { [FROZEN_STATES]: frozenStates }),
    };
    keyValueViews.forEach((view, i) => {
      fetches[`${i % 2 === 0 ? "key" : "value"}_${i >> 1}`] = view;
    });
    this.outputs = {
      key,
      binding: runtime.bind({ fetches }),
      result: {
        newKeyValues: { view: this.newKeyValues.view, stride: this.newKeyValues.tokens * width },
        logits,
        rawProbabilities,
        probabilities,
        values,
        frozenStates,
      },
    };
    return this.outputs;
  }

  private unbindOutputs(): void {
    if (this.outputs !== undefined) this.model.runtime.unbind(this.outputs.binding);
    this.outputs = undefined;
  }
}

/** Returns the inputs of the decode graph that change from step to step. */
function rowFeeds(
  config: CausalLM["config"],
  { rows, prefixLength, cache, selectedTokens, inverseTemperatures }: DecodeInputs,
  rowCount: number,
): Record<string, Tensor> {
  const tokens: number[] = [];
  const positions: number[] = [];
  const sequenceLengths: number[] = [];
  const starts = new Map<number, { first: number; row: RowInput }>();
  for (const row of rows) {
    starts.set(row.cacheRow, { first: tokens.length, row });
    row.tokens.forEach((token, i) => {
      tokens.push(token);
      positions.push(prefixLength + row.cachedLength + i);
      sequenceLengths.push(row.sequenceLength);
    });
  }
  const rowTokens = Math.max(1, ...rows.map((row) => row.tokens.length));
  const rowPositions = new Int32Array(rowCount * rowTokens).fill(PADDING_POSITION);
  const cacheLengths = new Int32Array(rowCount);
  const flatIndices = new Int32Array(rowCount * rowTokens).fill(-1);
  for (const [cacheRow, { first, row }] of starts) {
    cacheLengths[cacheRow] = row.cachedLength;
    row.tokens.forEach((_, i) => {
      rowPositions[cacheRow * rowTokens + i] = positions[first + i];
      flatIndices[cacheRow * rowTokens + i] = first + i;
    });
  }
  // A masked padding token fills the rows that are shorter or not active.
  if (flatIndices.includes(-1)) {
    flatIndices.forEach((value, i) => {
      if (value === -1) flatIndices[i] = tokens.length;
    });
    tokens.push(0);
    positions.push(0);
    sequenceLengths.push(1);
  }
  const headPadIndex = (name: string, heads: number) => {
    const paddedShape = { groups: 1, rows: rowCount, tokens: rowTokens };
    return padIndexFeeds(
      name,
      headIndices(config, heads, paddedShape, (_, row, i) => flatIndices[row * rowTokens + i]),
      tokens.length * heads,
    );
  };
  return {
    tokens: int32(tokens),
    ...positionFeeds(config, positions, sequenceLengths),
    row_positions: tensor("int32", [1, rowCount, rowTokens], rowPositions),
    prefix_positions: int32(
      Array.from({ length: paddedPrefixLength(prefixLength) }, (_, i) => (i < prefixLength ? i : PADDING_POSITION)),
      [1, 1, paddedPrefixLength(prefixLength)],
    ),
    cache_positions: cachePositions(cache, cacheLengths, prefixLength, rowCount),
    ...headPadIndex("query", config.heads),
    ...headPadIndex("key", config.keyValueHeads),
    select: int32(selectedTokens),
    inverse_temperature: tensor("float32", [selectedTokens.length, 1], Float32Array.from(inverseTemperatures)),
  };
}

function cachePositions(
  cache: KvCache | undefined,
  lengths: Int32Array,
  prefixLength: number,
  rowCount: number,
): Tensor {
  const capacity = cache?.capacity ?? 1;
  const positions = new Int32Array(rowCount * capacity).fill(PADDING_POSITION);
  lengths.forEach((length, cacheRow) => {
    for (let i = 0; i < length; i++) positions[cacheRow * capacity + i] = prefixLength + i;
  });
  return tensor("int32", [1, rowCount, capacity], positions);
}

/** The decode graph needs a prefix of at least one token; a missing one is a masked token. */
function paddedPrefixLength(prefixLength: number): number {
  return Math.max(1, prefixLength);
}
