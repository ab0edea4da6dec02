import { sharedPrefixLength } from "../../models/graphs/index.js";
import type { CausalLM } from "../../models/index.js";
import { getRopeRegime } from "../../engine/nn/index.js";
import type { RunningSequence } from "./running-sequence.js";
import { cacheShape, KvCache, copyCacheRows, roundedCapacity } from "../cache/kv-cache.js";
import type { PrefixCache } from "../cache/prefix-cache.js";

/** Tokens after the prefix whose keys and values are cached. */
interface CachedTokens {
  tokens: number[];
  /** See getRopeRegime; the keys and values are valid only for this regime. */
  regime: number;
  /**
   * Whether the keys and values of frozen layers are missing, because kept states replaced these
   * layers.
   */
  lacksFrozenLayers: boolean;
  lastUsed: number;
}

/** A row of the cache, and the sequence that runs in it. */
export interface CacheRow extends CachedTokens {
  sequence: RunningSequence | undefined;
}

/** The contents of a row, moved to a separate cache. */
interface StashedRow extends CachedTokens {
  readonly cache: KvCache;
}

/** A row whose first `length` tokens a sequence begins with. */
interface RowMatch {
  readonly candidate: CacheRow | StashedRow;
  readonly length: number;
}

/**
 * Idle rows cost attention time, but moving rows costs too, so idle rows are stashed after this
 * many steps.
 */
const STEPS_BEFORE_COMPACTION = 8;

/** Maximum number of stashed keys and values (512 MB). */
const MAX_STASHED_VALUES = 2 ** 27;

/**
 * The rows of a sampler's KV cache, and the sequences that run in them. A row keeps the tokens of
 * its finished sequence for prompts that continue it; rows that stay idle are stashed outside of
 * the cache.
 */
export class KvCacheRows {
  rows: CacheRow[] = [];
  cache: KvCache | undefined;
  private stashed: StashedRow[] = [];
  private clock = 0;
  private idleSteps = 0;

  constructor(private readonly model: CausalLM) {}

  get activeCount(): number {
    return this.rows.filter(({ sequence }) => sequence !== undefined).length;
  }

  /** Frees all memory. */
  clear(): void {
    this.invalidate();
    this.cache?.free();
    this.cache = undefined;
    this.rows = [];
  }

  /** Discards all cached tokens after the prefix has changed. No row may be active. */
  invalidate(): void {
    for (const { cache } of this.stashed.splice(0)) cache.free();
    this.rows = this.rows.map(() => createRow());
  }

  /**
   * Assigns each sequence the row that has cached the most of its tokens after the first
   * `prefixLength`.
   */
  async admit(sequences: readonly RunningSequence[], prefixLength: number): Promise<void> {
    if (sequences.length === 0) return;
    const tokensAfterPrefix = new Map(
      sequences.map((sequence) => [sequence, sequence.tokensToPrefill.slice(prefixLength)]),
    );
    const maxLength = Math.max(...[...tokensAfterPrefix.values()].map(({ length }) => length), this.maxActiveLength);
    const count = this.activeCount + sequences.length;
    // If the cache is resized anyway, long idle rows must not determine the capacity of all rows.
    if (count > this.rows.length && this.capacity > 2 * roundedCapacity(maxLength + 1)) {
      await this.stashIdle(count, roundedCapacity(maxLength + 1));
    } else await this.ensureCapacity(count, maxLength);
    const idle = this.rows.filter(({ sequence }) => sequence === undefined);
    // A prompt that shares only a short prefix must not take the row of a long conversation.
    const matches = this.matchRows(tokensAfterPrefix, [...idle, ...this.stashed], 0.5);
    const overwritten = this.selectOverwritten(sequences.length, matches);
    const unmatched = new Map([...tokensAfterPrefix].filter(([sequence]) => !matches.has(sequence)));
    for (const [sequence, match] of this.matchRows(unmatched, overwritten, 0)) matches.set(sequence, match);
    const free = new Set(overwritten);
    for (const { candidate } of matches.values()) free.delete(candidate as CacheRow);
    for (const [sequence, tokens] of tokensAfterPrefix) {
      const { candidate, length = 0 } = matches.get(sequence) ?? {};
      if (candidate !== undefined && "sequence" in candidate) {
        this.assign(candidate, sequence, tokens, length);
        continue;
      }
      const [row] = free;
      free.delete(row);
      if (candidate !== undefined) await this.restore(candidate, row, length);
      this.assign(row, sequence, tokens, length);
    }
  }

  /** Releases the row of a finished sequence; its tokens stay cached. */
  release(row: CacheRow): void {
    row.sequence = undefined;
    row.lastUsed = this.clock++;
  }

  /**
   * Copies the prefix into the rows that follow it, so that sequences with other beginnings can
   * join them.
   */
  async absorbPrefix({ tokens, cache: prefixCache }: PrefixCache): Promise<void> {
    const { runtime, config } = this.model;
    const shape = cacheShape(config);
    for (const { cache } of this.stashed.splice(0)) cache.free();
    const next = new KvCache(runtime, shape, this.rows.length, roundedCapacity(tokens.length + this.capacity));
    const used = this.rows.flatMap((row, toRow) =>
      row.sequence !== undefined || row.tokens.length > 0 ? [{ row, toRow }] : [],
    );
    await runtime.sequence([
      copyCacheRows(
        shape,
        prefixCache!,
        next,
        used.map(({ toRow }) => ({ fromRow: 0, toRow, tokenCount: tokens.length })),
      ),
      copyCacheRows(
        shape,
        this.cache!,
        next,
        used.map(({ row, toRow }) => ({
          fromRow: toRow,
          toRow,
          toToken: tokens.length,
          tokenCount: row.tokens.length,
        })),
      ),
    ]);
    this.cache!.free();
    this.cache = next;
    for (const { row } of used) row.tokens = [...tokens, ...row.tokens];
  }

  /** Ensures capacity for all known tokens of the running sequences. */
  async reserve(): Promise<void> {
    await this.ensureCapacity(this.rows.length, this.maxActiveLength);
  }

  /** Stashes idle rows when most rows have been idle for some steps. Call it before each step. */
  async compactWhenIdle(): Promise<void> {
    this.idleSteps = 2 * this.activeCount <= this.rows.length ? this.idleSteps + 1 : 0;
    if (this.idleSteps < STEPS_BEFORE_COMPACTION || this.activeCount === this.rows.length) return;
    this.idleSteps = 0;
    await this.stashIdle(this.activeCount, roundedCapacity(this.maxActiveLength + 1));
  }

  /** Returns the regime of rotary frequencies of a sequence length. */
  private regime(length: number): number {
    return getRopeRegime(this.model.config.ropes, length);
  }

  /**
   * Returns the idle rows that sequences without a matching row take: empty ones, then those that
   * have been idle longest.
   */
  private selectOverwritten(sequenceCount: number, matches: ReadonlyMap<RunningSequence, RowMatch>): CacheRow[] {
    const taken = new Set([...matches.values()].map(({ candidate }) => candidate));
    const idle = this.rows.filter((row) => row.sequence === undefined && !taken.has(row));
    const takenRows = this.rows.filter((row) => taken.has(row)).length;
    return idle
      .sort((a, b) => Math.sign(a.tokens.length) - Math.sign(b.tokens.length) || a.lastUsed - b.lastUsed)
      .slice(0, sequenceCount - takenRows);
  }

  /**
   * Matches sequences with the rows that have cached the most of them, longest matches first. A
   * match must be at least `minFraction` of the row's tokens.
   */
  private matchRows(
    tokensAfterPrefix: ReadonlyMap<RunningSequence, readonly number[]>,
    rows: readonly (CacheRow | StashedRow)[],
    minFraction: number,
  ): Map<RunningSequence, RowMatch> {
    const pairs = [...tokensAfterPrefix].flatMap(([sequence, tokens]) => {
      const regime = this.regime(sequence.length);
      const maxReusable = tokens.length - sequence.recomputedLength;
      return rows.flatMap((candidate) => {
        const length =
          candidate.regime === regime ? Math.min(maxReusable, sharedPrefixLength(candidate.tokens, tokens)) : 0;
        return length > 0 && length >= minFraction * candidate.tokens.length ? [{ sequence, candidate, length }] : [];
      });
    });
    const matches = new Map<RunningSequence, RowMatch>();
    const used = new Set<unknown>();
    for (const { sequence, ...match } of pairs.sort((a, b) => b.length - a.length)) {
      if (matches.has(sequence) || used.has(match.candidate)) continue;
      used.add(match.candidate);
      matches.set(sequence, match);
    }
    return matches;
  }

  private assign(
    row: CacheRow,
    sequence: RunningSequence,
    tokensAfterPrefix: readonly number[],
    cachedLength: number,
  ): void {
    row.tokens.length = cachedLength;
    if (cachedLength === 0) row.lacksFrozenLayers = false;
    row.regime = this.regime(sequence.length);
    row.sequence = sequence;
    row.lastUsed = this.clock++;
    sequence.unprocessedTokens = tokensAfterPrefix.slice(cachedLength);
    sequence.cachedTokens = sequence.tokensToPrefill.length - sequence.unprocessedTokens.length;
  }

  private get capacity(): number {
    return this.cache?.capacity ?? 0;
  }

  /** Length of the longest active row, including unprocessed tokens. */
  private get maxActiveLength(): number {
    return Math.max(
      0,
      ...this.rows.map(({ tokens, sequence }) => (sequence ? tokens.length + sequence.unprocessedTokens.length : 0)),
    );
  }

  /** Stashes the idle rows and resizes the cache. */
  private async stashIdle(rowCount: number, capacity: number): Promise<void> {
    for (const [rowIndex, row] of this.rows.entries()) if (row.sequence === undefined) this.stash(row, rowIndex);
    const keptRows = this.rows.flatMap((row, rowIndex) => (row.sequence === undefined ? [] : [{ row, rowIndex }]));
    await this.replaceCache(keptRows, rowCount, capacity);
  }

  private async ensureCapacity(rowCount: number, tokens: number): Promise<void> {
    const needed = roundedCapacity(Math.max(tokens, ...this.rows.map((row) => row.tokens.length)) + 1);
    const capacity = Math.max(this.capacity, needed);
    const count = Math.max(rowCount, this.rows.length);
    if (this.cache !== undefined && this.cache.rows >= count && this.cache.capacity >= capacity) return;
    await this.replaceCache(
      this.rows.map((row, rowIndex) => ({ row, rowIndex })),
      count,
      capacity,
    );
  }

  /** Replaces the cache by one of another size with the given rows. */
  private async replaceCache(
    keptRows: readonly { readonly row: CacheRow; readonly rowIndex: number }[],
    rowCount: number,
    capacity: number,
  ): Promise<void> {
    const shape = cacheShape(this.model.config);
    const next = new KvCache(this.model.runtime, shape, rowCount, capacity);
    if (this.cache !== undefined) {
      const copies = keptRows.map(({ row, rowIndex }, i) => ({
        fromRow: rowIndex,
        toRow: i,
        tokenCount: row.tokens.length,
      }));
      await this.model.runtime.sequence([copyCacheRows(shape, this.cache, next, copies)]);
      this.cache.free();
    }
    this.cache = next;
    this.rows = keptRows.map(({ row }) => row);
    while (this.rows.length < rowCount) this.rows.push(createRow());
  }

  private stash({ tokens, regime, lacksFrozenLayers, lastUsed }: CacheRow, rowIndex: number): void {
    if (tokens.length === 0) return;
    const { runtime, config } = this.model;
    const shape = cacheShape(config);
    const cache = new KvCache(runtime, shape, 1, tokens.length);
    const copy = copyCacheRows(shape, this.cache!, cache, [{ fromRow: rowIndex, toRow: 0, tokenCount: tokens.length }]);
    const stashed: StashedRow = { tokens, regime, lacksFrozenLayers, lastUsed, cache };
    // Not awaited: the worker handles requests in order, so the copy is complete before the stashed
    // row is read.
    runtime.sequence([copy]).catch(() => this.unstash(stashed));
    this.stashed.push(stashed);
    this.stashed.sort((a, b) => b.lastUsed - a.lastUsed);
    let storedValues = 0;
    const limit = this.stashed.findIndex(
      (each) => (storedValues += 2 * shape.layers * each.cache.sectionSize) > MAX_STASHED_VALUES,
    );
    if (limit >= 0) for (const { cache: dropped } of this.stashed.splice(limit)) dropped.free();
  }

  /**
   * Copies the first `length` tokens of a stashed row into a row; the stashed row may be longer
   * than the cache's rows.
   */
  private async restore(stashedRow: StashedRow, row: CacheRow, length: number): Promise<void> {
    const toRow = this.rows.indexOf(row);
    const { tokens, lacksFrozenLayers, cache } = stashedRow;
    const copy = copyCacheRows(cacheShape(this.model.config), cache, this.cache!, [
      { fromRow: 0, toRow, tokenCount: length },
    ]);
    await this.model.runtime.sequence([copy]);
    this.unstash(stashedRow);
    row.tokens = tokens.slice(0, length);
    row.lacksFrozenLayers = lacksFrozenLayers;
  }

  private unstash(stashedRow: StashedRow): void {
    const index = this.stashed.indexOf(stashedRow);
    if (index < 0) return;
    this.stashed.splice(index, 1);
    stashedRow.cache.free();
  }
}

const createRow = (): CacheRow => ({
  tokens: [],
  regime: 0,
  lacksFrozenLayers: false,
  sequence: undefined,
  lastUsed: -1,
});
