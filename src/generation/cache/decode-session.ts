import { LazyPromise } from "../../core/promise-cache.js";
import { compile, type Node } from "../../engine/graph/index.js";
import { decodeGraph } from "../../models/graphs/decode-graph.js";
import { FrozenStates } from "../../models/graphs/frozen-states.js";
import { FROZEN_STATES } from "../../models/graphs/sequence-graph.js";
import type { CausalLM } from "../../models/causal-lm.js";
import type { WorkerRequest } from "../../engine/runtime/worker-protocol.js";
import type { Session } from "../../engine/runtime/session.js";
import { subview, type IoBinding, type BufferView } from "../../engine/runtime/buffer-view.js";
import { paddedPrefixLength, rowFeeds, type DecodeInputs } from "./decode-feeds.js";
import { cacheShape, type NewKeyValues } from "./kv-cache.js";

/** The buffers that a step writes. */
export interface DecodeOutputs {
  readonly newKeyValues: NewKeyValues;
  /** [selected, vocabulary] */
  readonly logits: BufferView;
  readonly rawProbabilities: BufferView;
  readonly probabilities: BufferView;
  /** [constrained, headTokens] */
  readonly constrainedLogits: BufferView;
  /** [selected + constrained]; undefined for a model without a value head. */
  readonly values: BufferView | undefined;
  /** States of the new tokens after the frozen layers [tokens, width]; undefined if the step did not compute them. */
  readonly frozenStates: BufferView | undefined;
}

/** An inference session of a model's decode graph, for prompts and single tokens. */
export class DecodeSession {
  private readonly shape;
  private readonly fromStates = new LazyPromise(() => DecodeSession.create(this.model, true));
  private emptyCache: BufferView;
  /** By whether the adapter is used. */
  private readonly parameters = new Map<boolean, IoBinding>();
  private newKeyValues: { view: BufferView; tokens: number } | undefined;
  private scores: BufferView | undefined;
  private inputs: { key: string; binding: IoBinding } | undefined;
  private outputs: { key: string; binding: IoBinding; result: DecodeOutputs } | undefined;

  private constructor(
    private readonly model: CausalLM,
    private readonly session: Session,
    private readonly hasFrozenStates: boolean,
    /** First layer that is computed; the states before it are read from the model's `FrozenStates`. */
    private readonly firstLayer: number,
  ) {
    this.shape = cacheShape(model.config);
    this.emptyCache = model.runtime.allocate("float32", [0]);
  }

  static async create(model: CausalLM, fromFrozenStates = false): Promise<DecodeSession> {
    const scope = model.scope("unmerged", { forDecoding: true });
    const frozenLayers = model.isTrainable ? model.frozenLayers : 0;
    const computeValues = (hidden: Node) => model.computeValues(scope, hidden);
    const graph = compile(decodeGraph(model.config, scope, { computeValues, frozenLayers, fromFrozenStates }));
    const hasFrozenStates = frozenLayers > 0 && !fromFrozenStates;
    return new DecodeSession(
      model,
      await model.createSession(graph),
      hasFrozenStates,
      fromFrozenStates ? frozenLayers : 0,
    );
  }

  /** Returns the session that starts from kept states of the frozen layers. */
  startingFromStates(): Promise<DecodeSession> {
    return this.fromStates.get();
  }

  /** Prepares the requests of a step; send them before requests that use its outputs. */
  prepare(inputs: DecodeInputs): { requests: WorkerRequest[]; outputs: DecodeOutputs } {
    const { model } = this;
    const rowCount = inputs.cache?.rows ?? inputs.rows.length;
    const feeds = rowFeeds(model.config, inputs, rowCount);
    const tokenCount = feeds.tokens.data.length;
    const kept = inputs.frozenSlots && FrozenStates.find(model)!.load(inputs.frozenSlots, tokenCount);
    const inputBinding = this.bindInputs(inputs, rowCount);
    const { binding, result } = this.bindOutputs(tokenCount, inputs);
    const request = this.session.request(
      { ...feeds, ...(kept && { [FROZEN_STATES]: kept.states }) },
      { bindings: [this.bindParameters(inputs.adapter), inputBinding, binding] },
    );
    return { requests: [...(kept?.requests ?? []), request], outputs: result };
  }

  async release(): Promise<void> {
    const { runtime } = this.model;
    for (const buffer of [this.emptyCache, this.newKeyValues?.view, this.scores])
      if (buffer !== undefined) runtime.free(buffer);
    for (const binding of [...this.parameters.values(), this.inputs?.binding, this.outputs?.binding]) {
      if (binding !== undefined) runtime.unbind(binding);
    }
    await (await this.fromStates.peek())?.release();
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
    for (let layer = this.firstLayer; layer < layers; layer++) {
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

  private bindOutputs(
    tokenCount: number,
    { selectedTokens, constrainedTokens = [], headTokens = [0] }: DecodeInputs,
  ): { binding: IoBinding; result: DecodeOutputs } {
    const [selectedCount, constrainedCount] = [selectedTokens.length, constrainedTokens.length];
    const { runtime, config } = this.model;
    const { keyValueHeads, headDim } = this.shape;
    const layers = this.shape.layers - this.firstLayer;
    const width = keyValueHeads * headDim;
    const stateWidth = this.hasFrozenStates ? config.hiddenSize : 0;
    if (this.newKeyValues === undefined || this.newKeyValues.tokens < tokenCount) {
      if (this.newKeyValues !== undefined) runtime.free(this.newKeyValues.view);
      const view = runtime.allocate("float32", [tokenCount * (layers * 2 * width + stateWidth)]);
      this.newKeyValues = { view, tokens: tokenCount };
      this.unbindOutputs();
    }
    const logitsSize = selectedCount * config.vocabSize;
    const constrainedSize = constrainedCount * headTokens.length;
    const scoresSize = 3 * logitsSize + constrainedSize + selectedCount + constrainedCount;
    if (this.scores === undefined || this.scores.shape[0] < scoresSize) {
      if (this.scores !== undefined) runtime.free(this.scores);
      this.scores = runtime.allocate("float32", [scoresSize]);
      this.unbindOutputs();
    }
    const key = `${tokenCount}:${selectedCount}:${constrainedCount}:${headTokens.length}`;
    if (this.outputs?.key === key) return this.outputs;
    this.unbindOutputs();
    const keyValueViews = Array.from({ length: layers * 2 }, (_, i) =>
      subview(this.newKeyValues!.view, i * this.newKeyValues!.tokens * width, [tokenCount, width]),
    );
    const scores = this.scores;
    const [logits, rawProbabilities, probabilities] = [0, 1, 2].map((i) =>
      subview(scores, i * logitsSize, [selectedCount, config.vocabSize]),
    );
    const constrainedLogits = subview(scores, 3 * logitsSize, [constrainedCount, headTokens.length]);
    const values =
      this.model.valueHead && subview(scores, 3 * logitsSize + constrainedSize, [selectedCount + constrainedCount]);
    const { view: newValues, tokens: capacity } = this.newKeyValues;
    const frozenStates = this.hasFrozenStates
      ? subview(newValues, layers * 2 * capacity * width, [tokenCount, stateWidth])
      : undefined;
    const fetches: Record<string, BufferView> = {
      logits,
      rawProbabilities,
      probabilities,
      constrainedLogits,
      ...(values && { values }),
      ...(frozenStates && { [FROZEN_STATES]: frozenStates }),
    };
    keyValueViews.forEach((view, i) => {
      fetches[`${i % 2 === 0 ? "key" : "value"}_${this.firstLayer + (i >> 1)}`] = view;
    });
    this.outputs = {
      key,
      binding: runtime.bind({ fetches }),
      result: {
        newKeyValues: {
          view: this.newKeyValues.view,
          stride: this.newKeyValues.tokens * width,
          firstLayer: this.firstLayer,
        },
        logits,
        rawProbabilities,
        probabilities,
        constrainedLogits,
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
