import { invalidArgument } from "../../core/errors.js";
import { LazyPromise } from "../../core/promise-cache.js";
import { compile } from "../../engine/graph/index.js";
import { getRopeRegime } from "../../engine/nn/index.js";
import { subview, type BufferView, type Session, type WorkerRequest } from "../../engine/runtime/index.js";
import type { CausalLM } from "../causal-lm.js";
import { chooseAdapterMode } from "../weights/micro-batch-memory.js";
import { FIRST_TOKEN, packSequences, PADDING_TOKEN, type PackedBatch, type PrefixGroup } from "./sequence-batch.js";
import { sequenceGraph } from "./sequence-graph.js";
import { SlotBuffers } from "./slot-buffers.js";

/**
 * Maximum number of values in the states that are kept (512 MB); those of a batch beyond it are
 * kept for that batch.
 */
const MAX_VALUES = 2 ** 27;
/** Maximum number of values that are part of checkpoints (128 MB). */
const MAX_SAVED_VALUES = 2 ** 25;
/**
 * An update that adds more than this fraction of the states before it has few prompts that recur.
 */
const MAX_GROWTH = 1 / 2;
/** The state of padding, which is zero. */
const PADDING_SLOT = 0;

/** Tokens of a decoding step, which follow cached ones. */
export interface NewTokens {
  readonly cached: readonly number[];
  readonly tokens: readonly number[];
  /** Length of the sequence, which rotary frequencies may depend on. */
  readonly sequenceLength: number;
}

/** Tokens that a decoding step processed, with their states in its output. */
export interface DecodedTokens extends NewTokens {
  /** Index of the first token's state. */
  readonly flatIndex: number;
}

/**
 * Kept states, part of a checkpoint: rounding depends on the batch in which a state was computed.
 */
export interface SavedFrozenStates {
  /** For each slot but that of padding the slot before it; -1 for a root. */
  readonly parents: Int32Array;
  /** For each slot but that of padding its token; the regime of rotary frequencies of a root. */
  readonly tokens: Int32Array;
  /** [slots, width], without the slot of padding. */
  readonly states: Float32Array;
}

/**
 * Hidden states after the layers that updates do not change: computed once, by the sampler or for
 * the first batch, and read by the next rollouts, the scores of policy and reference and all epochs
 * of an update. A state depends on a token and those before it, so states form a tree of tokens.
 * Whoever creates a model's sampler and its learner gives both the same object; it keeps nothing
 * before a learner calls `open`.
 */
export class FrozenStates {
  private readonly kept: SlotBuffers;
  private batchStates: BufferView | undefined;
  private computedStates: BufferView | undefined;
  /** Slot of each token by the slot before it. */
  private readonly slots = new Map<number, number>();
  /** Slots of the roots by the regime of rotary frequencies. */
  private readonly roots = new Map<number, number>();
  private slotCount = PADDING_SLOT + 1;
  /** Number of states after the last update. */
  private previousSize = 0;
  /** Number of callers of `open` that have not called `release`. */
  private users = 0;
  private pendingSession = this.openLazily();
  /** Computes the states of packed sequences; set while `open`. */
  private session: Session | undefined;

  private constructor(
    private readonly model: CausalLM,
    /** Number of frozen layers; the states are those after the last of them. */
    readonly layers: number,
    private readonly maxSlots: number,
  ) {
    this.kept = new SlotBuffers(model.runtime, model.config.hiddenSize);
  }

  /**
   * Returns an empty cache for a trainable model; undefined for a model whose first layer is
   * trained. With `areSaved`, checkpoints contain all states, so that there may be fewer.
   */
  static create(
    model: CausalLM,
    {
      areSaved = false,
      maxStates = Math.floor((areSaved ? MAX_SAVED_VALUES : MAX_VALUES) / model.config.hiddenSize),
    }: { readonly areSaved?: boolean; readonly maxStates?: number | undefined } = {},
  ): FrozenStates | undefined {
    const layers = model.isTrainable ? model.frozenLayers : 0;
    return layers === 0 ? undefined : new FrozenStates(model, layers, maxStates);
  }

  /** Starts keeping states, until every caller of `open` has called `release`. */
  async open(): Promise<void> {
    this.users++;
    try {
      this.session = await this.pendingSession.get();
    } catch (error) {
      this.users--;
      throw error;
    }
  }

  /** Number of states that are kept. */
  get size(): number {
    return this.slots.size;
  }

  /** Number of slots in use, for `truncate`. */
  get count(): number {
    return this.slotCount;
  }

  /** Discards the states that were added since there were `count` slots. */
  truncate(count: number): void {
    if (count >= this.slotCount) return;
    for (const [key, slot] of this.slots) if (slot >= count) this.slots.delete(key);
    for (const [regime, slot] of this.roots) if (slot >= count) this.roots.delete(regime);
    this.slotCount = count;
  }

  /** Discards all states; memory is kept for the next ones. */
  clear(): void {
    this.slots.clear();
    this.roots.clear();
    this.slotCount = PADDING_SLOT + 1;
    this.previousSize = 0;
  }

  /**
   * Discards the states after an update if they are many or too few of them were kept before it.
   */
  endUpdate(): void {
    const isNew = this.previousSize > 0 && this.size > (1 + MAX_GROWTH) * this.previousSize;
    if (isNew || this.size * this.model.config.hiddenSize > MAX_SAVED_VALUES) this.clear();
    this.previousSize = this.size;
  }

  /** Returns the kept states; undefined if there are none. */
  async getState(): Promise<SavedFrozenStates | undefined> {
    if (this.size === 0) return undefined;
    const { vocabSize, hiddenSize } = this.model.config;
    const count = this.slotCount - 1;
    const [parents, tokens] = [new Int32Array(count), new Int32Array(count)];
    for (const [regime, slot] of this.roots) [parents[slot - 1], tokens[slot - 1]] = [-1, regime];
    for (const [key, slot] of this.slots)
      [parents[slot - 1], tokens[slot - 1]] = [Math.floor(key / vocabSize), key % vocabSize];
    const states = await this.kept.read(this.slotCount);
    return { parents, tokens, states: states.subarray(hiddenSize) };
  }

  /** Restores saved states. @throws INVALID_ARGUMENT for those of another model. */
  async setState({ parents, tokens, states }: SavedFrozenStates): Promise<void> {
    const { hiddenSize } = this.model.config;
    if (states.length !== parents.length * hiddenSize || tokens.length !== parents.length)
      throw invalidArgument(`The saved states of frozen layers do not have the model's width of ${hiddenSize}.`);
    this.clear();
    parents.forEach((parent, i) => {
      if (parent >= 0) this.slots.set(this.key(parent, tokens[i]), this.slotCount);
      else this.roots.set(tokens[i], this.slotCount);
      this.slotCount++;
    });
    this.previousSize = this.size;
    const padded = new Float32Array(states.length + hiddenSize);
    padded.set(states, hiddenSize);
    await this.kept.write(padded);
  }

  /** Stops keeping states and frees their memory, unless other callers of `open` still use them. */
  async release(): Promise<void> {
    if (--this.users > 0) return;
    const { batchStates, computedStates, pendingSession } = this;
    this.clear();
    this.kept.free();
    for (const view of [batchStates, computedStates]) if (view !== undefined) this.model.runtime.free(view);
    this.batchStates = this.computedStates = this.session = undefined;
    this.pendingSession = this.openLazily();
    await (await pendingSession.peek())?.release();
  }

  /**
   * Returns the states of a packed batch as input of a graph, and the requests that compute missing
   * ones and collect them; send them together with the run that reads them.
   */
  prepare(groups: readonly PrefixGroup[], packed: PackedBatch): { requests: WorkerRequest[]; states: BufferView } {
    const requests = this.computeMissing(groups);
    const slots = this.findSlots(packed);
    const kept = this.load(slots, slots.length);
    requests.push(...kept.requests);
    this.truncate(this.maxSlots);
    return { requests, states: kept.states };
  }

  /** Returns the slots of a decoding step's tokens; undefined unless the states of all are kept. */
  find({ cached, tokens, sequenceLength }: NewTokens): number[] | undefined {
    let slot = this.findSlot(cached, sequenceLength);
    const slots: number[] = [];
    for (const token of tokens) {
      slot = slot === undefined ? undefined : this.slots.get(this.key(slot, token));
      if (slot === undefined) return undefined;
      slots.push(slot);
    }
    return slots;
  }

  /**
   * Returns the states of slots as input of a graph, padded to `count`, and the requests that copy
   * them.
   */
  load(slots: readonly number[], count: number): { requests: WorkerRequest[]; states: BufferView } {
    this.batchStates = this.reserve(this.batchStates, count);
    const states = subview(this.batchStates, 0, [count, this.model.config.hiddenSize]);
    const padding = Array<number>(count - slots.length).fill(PADDING_SLOT);
    return { requests: this.kept.copy("fromSlots", [...slots, ...padding], states), states };
  }

  /**
   * Returns requests that keep the states of a decoding step, as far as there is room; none unless
   * `open` was called.
   */
  keep(rows: readonly DecodedTokens[], states: BufferView): WorkerRequest[] {
    if (this.users === 0) return [];
    const flatIndices: number[] = [];
    const slots: number[] = [];
    for (const { cached, tokens, sequenceLength, flatIndex } of rows) {
      this.root(sequenceLength);
      let slot = this.findSlot(cached, sequenceLength);
      if (slot === undefined) continue;
      for (const [i, token] of tokens.entries()) {
        const key = this.key(slot, token);
        const known = this.slots.get(key);
        if (known === undefined && this.slotCount >= this.maxSlots) break;
        slot = known ?? this.add(key);
        if (known !== undefined) continue;
        slots.push(slot);
        flatIndices.push(flatIndex + i);
      }
    }
    return this.kept.copy("toSlots", slots, states, flatIndices);
  }

  private openLazily(): LazyPromise<Session> {
    return new LazyPromise(() => this.createSession());
  }

  private async createSession(): Promise<Session> {
    const { model, layers } = this;
    const scope = model.scope(chooseAdapterMode(model.config));
    const states = sequenceGraph(model.config, scope, { withPrefix: true, states: "all", end: layers });
    return model.createSession(compile({ states }), { packWeights: false });
  }

  /** Returns requests that compute the states of the rows with missing ones. */
  private computeMissing(groups: readonly PrefixGroup[]): WorkerRequest[] {
    const incomplete = groups.flatMap(({ prefix, rows }) => {
      const missing = rows.filter((row) => !this.hasSequence(prefix, row));
      return missing.length === 0 ? [] : [{ prefix, rows: missing }];
    });
    if (incomplete.length === 0) return [];
    const { config } = this.model;
    const packed = packSequences(config, incomplete);
    const known = this.slotCount;
    const slots = this.findSlots(packed);
    this.computedStates = this.reserve(this.computedStates, slots.length);
    const states = subview(this.computedStates, 0, [slots.length, config.hiddenSize]);
    const added = slots.flatMap((slot, i) => (slot >= known ? [i] : []));
    return [
      this.session!.request(packed.feeds, { fetches: { states } }),
      ...this.kept.copy(
        "toSlots",
        added.map((i) => slots[i]),
        states,
        added,
      ),
    ];
  }

  private hasSequence(prefix: readonly number[], row: readonly number[]): boolean {
    return this.find({ cached: prefix, tokens: row, sequenceLength: prefix.length + row.length }) !== undefined;
  }

  /** Returns the slot of the last token; undefined if its state is not kept. */
  private findSlot(tokens: readonly number[], sequenceLength: number): number | undefined {
    let slot = this.roots.get(getRopeRegime(this.model.config.ropes, sequenceLength));
    for (const token of tokens) {
      if (slot === undefined) return undefined;
      slot = this.slots.get(this.key(slot, token));
    }
    return slot;
  }

  /** Returns the slot of each packed token; new ones for tokens that have none. */
  private findSlots({ feeds, predecessors, lengths }: PackedBatch): number[] {
    const slots: number[] = [];
    predecessors.forEach((predecessor, i) => {
      if (predecessor === PADDING_TOKEN) return slots.push(PADDING_SLOT);
      const before = predecessor === FIRST_TOKEN ? this.root(lengths[i]) : slots[predecessor];
      const key = this.key(before, Number(feeds.tokens.data[i]));
      return slots.push(this.slots.get(key) ?? this.add(key));
    });
    return slots;
  }

  private key(slot: number, token: number): number {
    return slot * this.model.config.vocabSize + token;
  }

  private add(key: number): number {
    this.slots.set(key, this.slotCount);
    return this.slotCount++;
  }

  /** Returns the slot that stands before the first token of sequences of a length. */
  private root(length: number): number {
    const regime = getRopeRegime(this.model.config.ropes, length);
    const root = this.roots.get(regime) ?? this.slotCount++;
    this.roots.set(regime, root);
    return root;
  }

  /** Returns a buffer of at least `count` states. */
  private reserve(view: BufferView | undefined, count: number): BufferView {
    const { runtime, config } = this.model;
    if (view !== undefined && view.shape[0] >= count) return view;
    if (view !== undefined) runtime.free(view);
    return runtime.allocate("float32", [count, config.hiddenSize]);
  }
}
