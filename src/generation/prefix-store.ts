import { commonLength } from "../models/batch.js";
import type { CausalLM } from "../models/causal-lm.js";
import type { CachedModel } from "./cached-model.js";
import { cacheShape, KvCache, moveRows, storeTokens } from "./kv-cache.js";

/** Shorter than this, a shared prefix costs more in attention than it saves. */
const SHORTEST = 16;

/** A prefix is read in one run; what goes beyond is left to the rows. */
const LONGEST = 1024;

/** The prefix that all running rows share, with its keys and values. */
export class PrefixStore {
  tokens: readonly number[] = [];
  cache: KvCache | undefined;

  constructor(
    private readonly model: CausalLM,
    private readonly cached: CachedModel,
    private readonly adapter: boolean,
  ) {}

  clear(): void {
    this.cache?.free();
    this.cache = undefined;
    this.tokens = [];
  }

  /**
   * Sets the prefix for a batch of beginnings of prompts: the present one while it fits all of them, else what they have in
   * common, cut from the present one or computed anew. Tells whether it changed.
   */
  async choose(prompts: readonly (readonly number[])[]): Promise<boolean> {
    const shortest = Math.min(...prompts.map(({ length }) => length));
    const limit = Math.min(shortest, LONGEST);
    const fitting = Math.min(limit, ...prompts.map((prompt) => commonLength(this.tokens, prompt)));
    if (this.tokens.length > 0 && fitting === this.tokens.length) return false;
    if (fitting >= SHORTEST) {
      await this.shorten(fitting);
      return true;
    }
    const common = Math.min(limit, ...prompts.map((prompt) => commonLength(prompts[0], prompt)));
    const changed = this.tokens.length > 0;
    // A single prompt has no one to share with: its row keeps it.
    if (prompts.length === 1 || common < SHORTEST) {
      this.clear();
      return changed;
    }
    await this.compute(prompts[0].slice(0, common));
    return true;
  }

  private async shorten(length: number): Promise<void> {
    const shape = cacheShape(this.model.config);
    const next = new KvCache(this.model.runtime, shape, 1, length);
    await this.model.runtime.sequence([moveRows(shape, this.cache!, next, [{ fromRow: 0, toRow: 0, tokens: length }])]);
    const tokens = this.tokens.slice(0, length);
    this.clear();
    this.tokens = tokens;
    this.cache = next;
  }

  private async compute(tokens: readonly number[]): Promise<void> {
    this.clear();
    const shape = cacheShape(this.model.config);
    const cache = new KvCache(this.model.runtime, shape, 1, tokens.length);
    const { request, outputs } = this.cached.prepare({
      rows: [{ tokens, slot: 0, cached: 0, sequenceLength: tokens.length }],
      prefix: undefined,
      prefixLength: 0,
      cache: undefined,
      select: [tokens.length - 1],
      inverseTemperatures: [1],
      adapter: this.adapter,
    });
    const store = storeTokens(
      shape,
      outputs.fresh,
      cache,
      tokens.map((_, i) => ({ flat: i, row: 0, at: i })),
    );
    await this.model.runtime.sequence([request, store]);
    this.tokens = tokens;
    this.cache = cache;
  }
}
