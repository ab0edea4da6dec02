import { sharedPrefixLength } from "../../models/graphs/index.js";
import type { CausalLM } from "../../models/index.js";
import type { DecodeSession } from "./decode-session.js";
import { cacheShape, KvCache, copyCacheRows, writeCache } from "./kv-cache.js";

/** Shorter shared prefixes cost more in attention than they save. */
const MIN_PREFIX_LENGTH = 16;

/** A prefix is computed in one step; longer ones are left to the rows. */
const MAX_PREFIX_LENGTH = 1024;

/** The prefix that all active rows share, and its keys and values. */
export class PrefixCache {
  tokens: readonly number[] = [];
  cache: KvCache | undefined;

  constructor(
    private readonly model: CausalLM,
    private readonly session: DecodeSession,
    private readonly adapter: boolean,
  ) {}

  clear(): void {
    this.cache?.free();
    this.cache = undefined;
    this.tokens = [];
  }

  /**
   * Sets the prefix for a batch of prompts: the current one if all prompts start with it, otherwise
   * their common prefix, truncated from the current one or computed. Returns whether the prefix
   * changed.
   */
  async update(prompts: readonly (readonly number[])[]): Promise<boolean> {
    const minPromptLength = Math.min(...prompts.map(({ length }) => length));
    const maxLength = Math.min(minPromptLength, MAX_PREFIX_LENGTH);
    const sharedLength = Math.min(maxLength, ...prompts.map((prompt) => sharedPrefixLength(this.tokens, prompt)));
    if (this.tokens.length > 0 && sharedLength === this.tokens.length) return false;
    if (sharedLength >= MIN_PREFIX_LENGTH) {
      await this.truncate(sharedLength);
      return true;
    }
    const commonPrefixLength = Math.min(maxLength, ...prompts.map((prompt) => sharedPrefixLength(prompts[0], prompt)));
    const changed = this.tokens.length > 0;
    // A single prompt shares with no other; its row caches it.
    if (prompts.length === 1 || commonPrefixLength < MIN_PREFIX_LENGTH) {
      this.clear();
      return changed;
    }
    await this.compute(prompts[0].slice(0, commonPrefixLength));
    return true;
  }

  private async truncate(length: number): Promise<void> {
    const shape = cacheShape(this.model.config);
    const next = new KvCache(this.model.runtime, shape, 1, length);
    await this.model.runtime.sequence([
      copyCacheRows(shape, this.cache!, next, [{ fromRow: 0, toRow: 0, tokenCount: length }]),
    ]);
    const tokens = this.tokens.slice(0, length);
    this.clear();
    this.tokens = tokens;
    this.cache = next;
  }

  private async compute(tokens: readonly number[]): Promise<void> {
    this.clear();
    const shape = cacheShape(this.model.config);
    const cache = new KvCache(this.model.runtime, shape, 1, tokens.length);
    const { requests, outputs } = this.session.prepare({
      rows: [{ tokens, cacheRow: 0, cachedLength: 0, sequenceLength: tokens.length }],
      prefixCache: undefined,
      prefixLength: 0,
      cache: undefined,
      selectedTokens: [tokens.length - 1],
      inverseTemperatures: [1],
      adapter: this.adapter,
      model: this.model,
    });
    const write = writeCache(
      shape,
      outputs.newKeyValues,
      cache,
      tokens.map((_, i) => ({ flatIndex: i, row: 0, position: i })),
    );
    const decoded = [{ cached: [], tokens, sequenceLength: tokens.length, flatIndex: 0 }];
    const kept = this.session.frozenStates?.keep(decoded, outputs.frozenStates!) ?? [];
    await this.model.runtime.sequence([...requests, write, ...kept]);
    this.tokens = tokens;
    this.cache = cache;
  }
}
