import { compile } from "../graph/index.js";
import { headSlots, PADDING_POSITION, positionFeeds, route } from "../models/batch.js";
import { cachedGraph } from "../models/cached-graph.js";
import type { CausalLM } from "../models/causal-lm.js";
import type { Request } from "../runtime/protocol.js";
import type { Session } from "../runtime/session.js";
import { subview, type Binding, type View } from "../runtime/buffer.js";
import { int32, tensor, type Tensor } from "../tensor/tensor.js";
import { cacheShape, type FreshTokens, type KvCache } from "./kv-cache.js";

/** New tokens of one row, behind what its cache holds. */
export interface RowTokens {
  readonly tokens: readonly number[];
  /** The row of the cache that holds what comes before (its number among the rows, where there is no cache). */
  readonly slot: number;
  /** How many tokens of that row are valid. */
  readonly cached: number;
  /** Tokens of the whole sequence, as far as they are known; some rotary embeddings depend on it. */
  readonly sequenceLength: number;
}

export interface CachedRun {
  readonly rows: readonly RowTokens[];
  /** Tokens that come before all rows. */
  readonly prefix: KvCache | undefined;
  readonly prefixLength: number;
  readonly cache: KvCache | undefined;
  /** Flat numbers (rows one after another) of the tokens whose scores are wanted. */
  readonly select: readonly number[];
  /** For each selected token. */
  readonly inverseTemperatures: readonly number[];
  readonly adapter: boolean;
}

/** Where a run leaves what it computed. */
export interface CachedOutputs {
  readonly fresh: FreshTokens;
  /** [selected, vocabulary] */
  readonly logits: View;
  readonly plain: View;
  readonly tempered: View;
  /** [selected], undefined for a model without a value head. */
  readonly values: View | undefined;
}

/** A model with the graph that decodes: one session for prompts and single tokens alike. */
export class CachedModel {
  private readonly shape;
  private nothing: View;
  /** With the adapter, and without. */
  private readonly parameters = new Map<boolean, Binding>();
  private fresh: { view: View; tokens: number } | undefined;
  private scores: { view: View; rows: number } | undefined;
  private inputs: { key: string; binding: Binding } | undefined;
  private outputs: { key: string; binding: Binding; result: CachedOutputs } | undefined;

  private constructor(
    private readonly model: CausalLM,
    private readonly session: Session,
  ) {
    this.shape = cacheShape(model.config);
    this.nothing = model.runtime.allocate("float32", [0]);
  }

  static async create(model: CausalLM): Promise<CachedModel> {
    const scope = model.scope("separate");
    const graph = compile(cachedGraph(model.config, scope, (hidden) => model.values(scope, hidden)));
    return new CachedModel(model, await model.createSession(graph));
  }

  /** The run as a request, to be sent before others that use its outputs. */
  prepare(run: CachedRun): { request: Request; outputs: CachedOutputs } {
    const { config } = this.model;
    const slots = run.cache?.rows ?? run.rows.length;
    const feeds = rowFeeds(config, run, slots);
    const tokens = feeds.tokens.data.length;
    const inputs = this.bindInputs(run, slots);
    const { binding, result } = this.bindOutputs(tokens, run.select.length);
    return {
      request: this.session.request(feeds, { bindings: [this.bindParameters(run.adapter), inputs, binding] }),
      outputs: result,
    };
  }

  async release(): Promise<void> {
    const { runtime } = this.model;
    for (const buffer of [this.nothing, this.fresh?.view, this.scores?.view])
      if (buffer !== undefined) runtime.free(buffer);
    for (const binding of [...this.parameters.values(), this.inputs?.binding, this.outputs?.binding]) {
      if (binding !== undefined) runtime.unbind(binding);
    }
    await this.session.release();
  }

  private bindParameters(adapter: boolean): Binding {
    const { model, session, parameters } = this;
    const binding =
      parameters.get(adapter) ?? model.runtime.bind({ feeds: model.parameterViews(session.graph, { adapter }) });
    parameters.set(adapter, binding);
    return binding;
  }

  /** Prefix, cache and their positions, which change only when a cache is replaced. */
  private bindInputs({ prefix, prefixLength, cache }: CachedRun, slots: number): Binding {
    const key = `${prefix?.buffer.buffer}:${prefixLength}:${cache?.buffer.buffer}:${slots}`;
    if (this.inputs?.key === key) return this.inputs.binding;
    if (this.inputs !== undefined) this.model.runtime.unbind(this.inputs.binding);
    const { layers, keyValueHeads, headDim } = this.shape;
    this.holdNothing(slots);
    const feeds: Record<string, View> = {};
    for (let layer = 0; layer < layers; layer++) {
      for (const kind of ["key", "value"] as const) {
        const shared = prefix?.view(layer, kind) ?? this.nothing;
        feeds[`prefix_${kind}_${layer}`] = { ...shared, shape: [1, keyValueHeads, atLeastOne(prefixLength), headDim] };
        const own = cache?.view(layer, kind) ?? this.nothing;
        feeds[`cache_${kind}_${layer}`] = { ...own, shape: [1, keyValueHeads, slots, cache?.capacity ?? 1, headDim] };
      }
    }
    this.inputs = { key, binding: this.model.runtime.bind({ feeds }) };
    return this.inputs.binding;
  }

  /** Room for one token in each row of a cache that is not there: nobody sees it. */
  private holdNothing(slots: number): void {
    const needed = this.shape.keyValueHeads * slots * this.shape.headDim;
    if (this.nothing.shape[0] >= needed) return;
    this.model.runtime.free(this.nothing);
    this.nothing = this.model.runtime.allocate("float32", [needed]);
  }

  private bindOutputs(tokens: number, selected: number): { binding: Binding; result: CachedOutputs } {
    const { runtime, config } = this.model;
    const { layers, keyValueHeads, headDim } = this.shape;
    const width = keyValueHeads * headDim;
    if (this.fresh === undefined || this.fresh.tokens < tokens) {
      if (this.fresh !== undefined) runtime.free(this.fresh.view);
      this.fresh = { view: runtime.allocate("float32", [layers * 2 * tokens * width]), tokens };
      this.dropOutputs();
    }
    if (this.scores === undefined || this.scores.rows < selected) {
      if (this.scores !== undefined) runtime.free(this.scores.view);
      this.scores = { view: runtime.allocate("float32", [selected * (3 * config.vocabSize + 1)]), rows: selected };
      this.dropOutputs();
    }
    const key = `${tokens}:${selected}`;
    if (this.outputs?.key === key) return this.outputs;
    this.dropOutputs();
    const fresh = Array.from({ length: layers * 2 }, (_, i) =>
      subview(this.fresh!.view, i * this.fresh!.tokens * width, [tokens, width]),
    );
    const [logits, plain, tempered] = [0, 1, 2].map((i) =>
      subview(this.scores!.view, i * this.scores!.rows * config.vocabSize, [selected, config.vocabSize]),
    );
    const values =
      this.model.valueHead && subview(this.scores.view, 3 * this.scores.rows * config.vocabSize, [selected]);
    const fetches: Record<string, View> = { logits, plain, tempered, ...(values && { values }) };
    fresh.forEach((view, i) => {
      fetches[`${i % 2 === 0 ? "key" : "value"}_${i >> 1}`] = view;
    });
    this.outputs = {
      key,
      binding: runtime.bind({ fetches }),
      result: { fresh: { view: this.fresh.view, stride: this.fresh.tokens * width }, logits, plain, tempered, values },
    };
    return this.outputs;
  }

  private dropOutputs(): void {
    if (this.outputs !== undefined) this.model.runtime.unbind(this.outputs.binding);
    this.outputs = undefined;
  }
}

/** The inputs of cachedGraph that change from step to step. */
function rowFeeds(
  config: CausalLM["config"],
  { rows, prefixLength, cache, select, inverseTemperatures }: CachedRun,
  slots: number,
): Record<string, Tensor> {
  const tokens: number[] = [];
  const positions: number[] = [];
  const lengths: number[] = [];
  const starts = new Map<number, { first: number; row: RowTokens }>();
  for (const row of rows) {
    starts.set(row.slot, { first: tokens.length, row });
    row.tokens.forEach((token, i) => {
      tokens.push(token);
      positions.push(prefixLength + row.cached + i);
      lengths.push(row.sequenceLength);
    });
  }
  const rowTokens = Math.max(1, ...rows.map((row) => row.tokens.length));
  const rowPositions = new Int32Array(slots * rowTokens).fill(PADDING_POSITION);
  const cacheLengths = new Int32Array(slots);
  const flat = new Int32Array(slots * rowTokens).fill(-1);
  for (const [slot, { first, row }] of starts) {
    cacheLengths[slot] = row.cached;
    row.tokens.forEach((_, i) => {
      rowPositions[slot * rowTokens + i] = positions[first + i];
      flat[slot * rowTokens + i] = first + i;
    });
  }
  // A dummy token fills the slots of rows that are shorter or not running; nobody sees it.
  if (flat.includes(-1)) {
    flat.forEach((value, i) => {
      if (value === -1) flat[i] = tokens.length;
    });
    tokens.push(0);
    positions.push(0);
    lengths.push(1);
  }
  const headRoute = (name: string, heads: number) => {
    const places = { groups: 1, rows: slots, tokens: rowTokens };
    return route(
      name,
      headSlots(config, heads, places, (_, row, i) => flat[row * rowTokens + i]),
      tokens.length * heads,
    );
  };
  return {
    tokens: int32(tokens),
    ...positionFeeds(config, positions, lengths),
    row_positions: tensor("int32", [1, slots, rowTokens], rowPositions),
    prefix_positions: int32(
      Array.from({ length: atLeastOne(prefixLength) }, (_, i) => (i < prefixLength ? i : PADDING_POSITION)),
      [1, 1, atLeastOne(prefixLength)],
    ),
    cache_positions: cachePositions(cache, cacheLengths, prefixLength, slots),
    ...headRoute("query", config.heads),
    ...headRoute("key", config.keyValueHeads),
    select: int32(select),
    inverse_temperature: tensor("float32", [select.length, 1], Float32Array.from(inverseTemperatures)),
  };
}

function cachePositions(cache: KvCache | undefined, lengths: Int32Array, prefixLength: number, slots: number): Tensor {
  const capacity = cache?.capacity ?? 1;
  const positions = new Int32Array(slots * capacity).fill(PADDING_POSITION);
  lengths.forEach((length, slot) => {
    for (let i = 0; i < length; i++) positions[slot * capacity + i] = prefixLength + i;
  });
  return tensor("int32", [1, slots, capacity], positions);
}

/** Graphs are made for a prefix of at least one token; a missing one is a token that nobody sees. */
function atLeastOne(prefixLength: number): number {
  return Math.max(1, prefixLength);
}
