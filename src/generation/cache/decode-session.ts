import { LazyPromise } from "../../core/promise-cache.js";
import { compile, type Node } from "../../engine/graph/index.js";
import { decodeGraph, type FrozenStates, FROZEN_STATES } from "../../models/graphs/index.js";
import type { CausalLM } from "../../models/index.js";
import {
  type WorkerRequest,
  type Session,
  subview,
  type IoBinding,
  type BufferView,
} from "../../engine/runtime/index.js";
import type { DerivedInputs } from "./derived-inputs.js";
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
  /**
   * States of the new tokens after the frozen layers [tokens, width]; undefined if the step did not
   * compute them.
   */
  readonly frozenStates: BufferView | undefined;
}

/** Sizes on which the views of a step's outputs depend. */
interface OutputSizes {
  readonly tokens: number;
  readonly selected: number;
  readonly constrained: number;
  readonly headTokens: number;
}

/** An inference session of a model's decode graph, for prompts and single tokens. */
export class DecodeSession {
  private readonly shape;
  /** First layer that is computed; the states before it are read from `frozenStates`. */
  private readonly firstLayer: number;
  private openedFromStates: DecodeSession | undefined;
  private readonly pendingFromStates = new LazyPromise(() =>
    DecodeSession.create(this.model, this.frozenStates, { startsFromStates: true }),
  );
  private emptyCache: BufferView;
  /** By version of the model, and by whether its adapter is used. */
  private readonly parameters = new Map<CausalLM, Map<boolean, IoBinding>>();
  private newKeyValues: { view: BufferView; tokens: number } | undefined;
  private scores: BufferView | undefined;
  private inputs: { key: string; binding: IoBinding } | undefined;
  private outputs: { key: string; binding: IoBinding; result: DecodeOutputs } | undefined;

  private constructor(
    private readonly model: CausalLM,
    private readonly session: Session,
    /**
     * The states that steps start from or return; undefined where all layers are computed and none
     * are returned.
     */
    readonly frozenStates: FrozenStates | undefined,
    private readonly startsFromStates: boolean,
    private readonly derived: DerivedInputs | undefined,
  ) {
    this.shape = cacheShape(model.config);
    this.firstLayer = startsFromStates ? frozenStates!.layers : 0;
    this.emptyCache = model.runtime.allocate("float32", [0]);
  }

  /**
   * Creates a session; with `frozenStates`, its steps return the states of new tokens after the
   * frozen layers.
   */
  static async create(
    model: CausalLM,
    frozenStates?: FrozenStates,
    { startsFromStates = false } = {},
  ): Promise<DecodeSession> {
    const scope = model.scope("unmerged", { forDecoding: true, withDerivedInputs: true });
    const computeValues = (hidden: Node) => model.computeValues(scope, hidden);
    const frozenLayers = frozenStates?.layers ?? 0;
    const options = { computeValues, frozenLayers, fromFrozenStates: startsFromStates };
    const graph = compile(decodeGraph(model.config, scope, options));
    const { derivedValues } = scope;
    const derived =
      derivedValues.size === 0
        ? undefined
        : await (await import("./derived-inputs.js")).DerivedInputs.create(model, derivedValues);
    return new DecodeSession(model, await model.createSession(graph), frozenStates, startsFromStates, derived);
  }

  /**
   * The session that starts from kept states of the frozen layers; undefined until `openFromStates`
   * has created it.
   */
  get fromStates(): DecodeSession | undefined {
    return this.openedFromStates;
  }

  async openFromStates(): Promise<void> {
    this.openedFromStates = await this.pendingFromStates.get();
  }

  /** Prepares the requests of a step; send them before requests that use its outputs. */
  prepare(inputs: DecodeInputs): { requests: WorkerRequest[]; outputs: DecodeOutputs } {
    const { model } = this;
    const rowCount = inputs.cache?.rows ?? inputs.rows.length;
    const feeds = rowFeeds(model.config, inputs, rowCount);
    const tokenCount = feeds.tokens.data.length;
    const kept = inputs.frozenSlots && this.frozenStates!.load(inputs.frozenSlots, tokenCount);
    const inputBinding = this.bindInputs(inputs, rowCount);
    const { binding, result } = this.bindOutputs(tokenCount, inputs);
    const request = this.session.request(
      { ...feeds, ...(kept && { [FROZEN_STATES]: kept.states }) },
      { bindings: [this.bindParameters(inputs), inputBinding, binding] },
    );
    const derived = this.derived?.update(inputs.model, inputs.adapter) ?? [];
    return { requests: [...derived, ...(kept?.requests ?? []), request], outputs: result };
  }

  async release(): Promise<void> {
    const { runtime } = this.model;
    for (const buffer of [this.emptyCache, this.newKeyValues?.view, this.scores])
      if (buffer !== undefined) runtime.free(buffer);
    for (const binding of [this.inputs?.binding, this.outputs?.binding]) {
      if (binding !== undefined) runtime.unbind(binding);
    }
    for (const model of this.parameters.keys()) this.forget(model);
    await this.derived?.release();
    await (await this.pendingFromStates.peek())?.release();
    await this.session.release();
  }

  /** Drops what the session holds of a version of its model. */
  forget(model: CausalLM): void {
    for (const binding of this.parameters.get(model)?.values() ?? []) model.runtime.unbind(binding);
    this.parameters.delete(model);
    this.derived?.forget(model);
    this.openedFromStates?.forget(model);
  }

  /** Discards what a failed request may not have computed. */
  discardDerived(): void {
    this.derived?.invalidate();
    this.openedFromStates?.discardDerived();
  }

  private bindParameters({ model, adapter }: DecodeInputs): IoBinding {
    let bindings = this.parameters.get(model);
    if (bindings === undefined) this.parameters.set(model, (bindings = new Map()));
    const feeds = () => ({
      ...model.getParameterViews(this.session.graph, { adapter }),
      ...this.derived?.views(model, adapter),
    });
    const binding = bindings.get(adapter) ?? model.runtime.bind({ feeds: feeds() });
    bindings.set(adapter, binding);
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

  /** Binds the outputs, which change only with their sizes. */
  private bindOutputs(
    tokens: number,
    { selectedTokens, constrainedTokens = [], headTokens = [0] }: DecodeInputs,
  ): { binding: IoBinding; result: DecodeOutputs } {
    const sizes: OutputSizes = {
      tokens,
      selected: selectedTokens.length,
      constrained: constrainedTokens.length,
      headTokens: headTokens.length,
    };
    this.reserveOutputs(sizes);
    const key = Object.values(sizes).join(":");
    if (this.outputs?.key === key) return this.outputs;
    this.unbindOutputs();
    const result = this.viewOutputs(sizes);
    this.outputs = { key, binding: this.model.runtime.bind({ fetches: this.outputFetches(result, tokens) }), result };
    return this.outputs;
  }

  /** Allocates larger output buffers where these do not suffice. */
  private reserveOutputs({ tokens, selected, constrained, headTokens }: OutputSizes): void {
    const { runtime, config } = this.model;
    if (this.newKeyValues === undefined || this.newKeyValues.tokens < tokens) {
      if (this.newKeyValues !== undefined) runtime.free(this.newKeyValues.view);
      const tokenSize = 2 * this.computedLayers * this.keyValueWidth + this.stateWidth;
      this.newKeyValues = { view: runtime.allocate("float32", [tokens * tokenSize]), tokens };
      this.unbindOutputs();
    }
    const scoresSize = 3 * selected * config.vocabSize + constrained * headTokens + selected + constrained;
    if (this.scores === undefined || this.scores.shape[0] < scoresSize) {
      if (this.scores !== undefined) runtime.free(this.scores);
      this.scores = runtime.allocate("float32", [scoresSize]);
      this.unbindOutputs();
    }
  }

  /** Returns the parts of the output buffers that a step of these sizes writes. */
  private viewOutputs({ tokens, selected, constrained, headTokens }: OutputSizes): DecodeOutputs {
    const { valueHead, config } = this.model;
    const scores = this.scores!;
    const { view, tokens: capacity } = this.newKeyValues!;
    const logitsSize = selected * config.vocabSize;
    const [logits, rawProbabilities, probabilities] = [0, 1, 2].map((i) =>
      subview(scores, i * logitsSize, [selected, config.vocabSize]),
    );
    const valuesOffset = 3 * logitsSize + constrained * headTokens;
    const stride = capacity * this.keyValueWidth;
    const statesOffset = 2 * this.computedLayers * stride;
    return {
      newKeyValues: { view, stride, firstLayer: this.firstLayer },
      logits,
      rawProbabilities,
      probabilities,
      constrainedLogits: subview(scores, 3 * logitsSize, [constrained, headTokens]),
      values: valueHead && subview(scores, valuesOffset, [selected + constrained]),
      frozenStates: this.stateWidth === 0 ? undefined : subview(view, statesOffset, [tokens, this.stateWidth]),
    };
  }

  /** Returns the view of each output of the graph. */
  private outputFetches(outputs: DecodeOutputs, tokens: number): Record<string, BufferView> {
    const { newKeyValues, values, frozenStates, ...scores } = outputs;
    const fetches: Record<string, BufferView> = {
      ...scores,
      ...(values && { values }),
      ...(frozenStates && { [FROZEN_STATES]: frozenStates }),
    };
    for (let i = 0; i < 2 * this.computedLayers; i++) {
      const name = `${i % 2 === 0 ? "key" : "value"}_${this.firstLayer + (i >> 1)}`;
      fetches[name] = subview(newKeyValues.view, i * newKeyValues.stride, [tokens, this.keyValueWidth]);
    }
    return fetches;
  }

  private get computedLayers(): number {
    return this.shape.layers - this.firstLayer;
  }

  /** Width of a token's keys, and of its values, in one layer. */
  private get keyValueWidth(): number {
    return this.shape.keyValueHeads * this.shape.headDim;
  }

  /** Width of the states that steps return; 0 if they return none. */
  private get stateWidth(): number {
    return this.frozenStates === undefined || this.startsFromStates ? 0 : this.model.config.hiddenSize;
  }

  private unbindOutputs(): void {
    if (this.outputs !== undefined) this.model.runtime.unbind(this.outputs.binding);
    this.outputs = undefined;
  }
}
