import { commonLength } from "../models/batch.js";
import type { CausalLM } from "../models/causal-lm.js";
import { ropeRegime } from "../nn/rope.js";
import { firstTokens, reusable, sequenceLength, type Job } from "./job.js";
import { cacheShape, KvCache, moveRows, roomFor } from "./kv-cache.js";

/** Tokens whose keys and values are held, behind the prefix. */
interface Held {
  tokens: number[];
  /** See ropeRegime: with another one, the keys and values are worth nothing. */
  regime: number;
  lastUsed: number;
}

/** A row of the cache: what it holds, and for whom. */
export interface Slot extends Held {
  job: Job | undefined;
}

/** What a row held, in a cache of its own. */
interface ParkedRow extends Held {
  readonly cache: KvCache;
}

/** Attention costs by the row, idle or not; moving rows costs too. So idle ones leave after this many steps. */
const STEPS_BEFORE_SHRINKING = 8;

/** Numbers of keys and values that parked rows hold at most (512 MB). */
const PARKED_NUMBERS = 2 ** 27;

/**
 * The rows that a sampler runs: one cache for those that are busy, and what finished ones have read, for prompts that go on
 * with it. Rows that stay idle are parked outside of the cache.
 */
export class Rows {
  slots: Slot[] = [];
  cache: KvCache | undefined;
  private parked: ParkedRow[] = [];
  private clock = 0;
  private idleSteps = 0;

  constructor(private readonly model: CausalLM) {}

  get busy(): number {
    return this.slots.filter(({ job }) => job !== undefined).length;
  }

  /** Gives everything back. */
  clear(): void {
    this.forgetTokens();
    this.cache?.free();
    this.cache = undefined;
    this.slots = [];
  }

  /** Forgets what was read, with no row busy: it stood behind another prefix. */
  forgetTokens(): void {
    for (const { cache } of this.parked.splice(0)) cache.free();
    this.slots = this.slots.map(() => emptySlot());
  }

  /** Gives each job a row, the one that has read most of what comes behind the first `prefixLength` tokens of its prompt. */
  async join(jobs: readonly Job[], prefixLength: number): Promise<void> {
    if (jobs.length === 0) return;
    const own = new Map(jobs.map((job) => [job, firstTokens(job).slice(prefixLength)]));
    const longest = Math.max(...[...own.values()].map(({ length }) => length), this.longestBusy);
    const count = this.busy + jobs.length;
    // Where rows must be added anyway, a few long ones that are idle must not make all of them long.
    if (count > this.slots.length && this.capacity > 2 * roomFor(longest + 1)) {
      await this.parkIdle(count, roomFor(longest + 1));
    } else await this.grow(count, longest);
    const matches = this.match(own);
    for (const { job, held, length } of matches) {
      if (!("job" in held)) continue;
      this.occupy(held, job, own.get(job)!, length);
    }
    const free = this.slots
      .filter((slot) => slot.job === undefined)
      .sort((a, b) => Math.sign(a.tokens.length) - Math.sign(b.tokens.length) || a.lastUsed - b.lastUsed);
    for (const job of jobs) {
      const match = matches.find((each) => each.job === job);
      if (match !== undefined && "job" in match.held) continue;
      const slot = free.shift()!;
      if (match !== undefined) await this.unpark(match.held as ParkedRow, slot);
      this.occupy(slot, job, own.get(job)!, match?.length ?? 0);
    }
  }

  /** The job is over; what its row holds stays. */
  leave(slot: Slot): void {
    slot.job = undefined;
    slot.lastUsed = this.clock++;
  }

  /** Room for that many tokens in every row. */
  async reserve(tokens: number): Promise<void> {
    await this.grow(this.slots.length, tokens);
  }

  /** Called before each step: parks idle rows when most have been idle for some steps. */
  async shrinkWhenIdle(): Promise<void> {
    this.idleSteps = 2 * this.busy <= this.slots.length ? this.idleSteps + 1 : 0;
    if (this.idleSteps < STEPS_BEFORE_SHRINKING || this.busy === this.slots.length) return;
    this.idleSteps = 0;
    await this.parkIdle(this.busy, roomFor(this.longestBusy + 1));
  }

  /** The rotary frequencies that a sequence of this length needs. */
  regime(length: number): number {
    return ropeRegime(this.model.config.ropes, length);
  }

  /** For each job the free row, parked or not, that has read most of it; each row once, the longest matches first. */
  private match(own: ReadonlyMap<Job, readonly number[]>): { job: Job; held: Slot | ParkedRow; length: number }[] {
    const free = [...this.slots.filter(({ job }) => job === undefined), ...this.parked];
    const all = [...own].flatMap(([job, tokens]) => {
      const regime = this.regime(sequenceLength(job));
      const most = tokens.length - (job.prompt.length - reusable(job));
      return free.flatMap((held) => {
        const length = held.regime === regime ? Math.min(most, commonLength(held.tokens, tokens)) : 0;
        // A prompt that shares only a beginning must not take a long conversation's row.
        return length > 0 && 2 * length >= held.tokens.length ? [{ job, held, length }] : [];
      });
    });
    const chosen: typeof all = [];
    const used = new Set<unknown>();
    for (const each of all.sort((a, b) => b.length - a.length)) {
      if (used.has(each.job) || used.has(each.held)) continue;
      used.add(each.job).add(each.held);
      chosen.push(each);
    }
    return chosen;
  }

  private occupy(slot: Slot, job: Job, own: readonly number[], known: number): void {
    slot.tokens.length = known;
    slot.regime = this.regime(sequenceLength(job));
    slot.job = job;
    slot.lastUsed = this.clock++;
    job.pending = own.slice(known);
  }

  private get capacity(): number {
    return this.cache?.capacity ?? 0;
  }

  /** Tokens of the longest busy row, with those that it is to read. */
  private get longestBusy(): number {
    return Math.max(0, ...this.slots.map(({ tokens, job }) => (job ? tokens.length + job.pending.length : 0)));
  }

  /** A cache for the busy rows and room for others, of the given size. */
  private async parkIdle(rows: number, capacity: number): Promise<void> {
    for (const [row, slot] of this.slots.entries()) if (slot.job === undefined) this.park(slot, row);
    const kept = this.slots.flatMap((slot, row) => (slot.job === undefined ? [] : [{ slot, row }]));
    await this.replaceCache(kept, rows, capacity);
  }

  private async grow(rows: number, tokens: number): Promise<void> {
    const needed = roomFor(Math.max(tokens, ...this.slots.map((slot) => slot.tokens.length)) + 1);
    const capacity = Math.max(this.capacity, needed);
    const count = Math.max(rows, this.slots.length);
    if (this.cache !== undefined && this.cache.rows >= count && this.cache.capacity >= capacity) return;
    await this.replaceCache(
      this.slots.map((slot, row) => ({ slot, row })),
      count,
      capacity,
    );
  }

  /** A cache of another size with the given rows in it. */
  private async replaceCache(
    kept: readonly { readonly slot: Slot; readonly row: number }[],
    rows: number,
    capacity: number,
  ): Promise<void> {
    const shape = cacheShape(this.model.config);
    const next = new KvCache(this.model.runtime, shape, rows, capacity);
    if (this.cache !== undefined) {
      const moves = kept.map(({ slot, row }, i) => ({ fromRow: row, toRow: i, tokens: slot.tokens.length }));
      await this.model.runtime.sequence([moveRows(shape, this.cache, next, moves)]);
      this.cache.free();
    }
    this.cache = next;
    this.slots = kept.map(({ slot }) => slot);
    while (this.slots.length < rows) this.slots.push(emptySlot());
  }

  private park({ tokens, regime, lastUsed }: Slot, row: number): void {
    if (tokens.length === 0) return;
    const { runtime, config } = this.model;
    const shape = cacheShape(config);
    const cache = new KvCache(runtime, shape, 1, tokens.length);
    const move = moveRows(shape, this.cache!, cache, [{ fromRow: row, toRow: 0, tokens: tokens.length }]);
    // The worker does one after another: what is parked is there before it is asked for.
    runtime.sequence([move]).catch(() => {});
    this.parked.push({ tokens, regime, lastUsed, cache });
    this.parked.sort((a, b) => b.lastUsed - a.lastUsed);
    let numbers = 0;
    const limit = this.parked.findIndex(
      (each) => (numbers += 2 * shape.layers * each.cache.sectionSize) > PARKED_NUMBERS,
    );
    if (limit >= 0) for (const { cache: dropped } of this.parked.splice(limit)) dropped.free();
  }

  private async unpark(parked: ParkedRow, slot: Slot): Promise<void> {
    const row = this.slots.indexOf(slot);
    const shape = cacheShape(this.model.config);
    const { tokens, cache } = parked;
    const move = moveRows(shape, cache, this.cache!, [{ fromRow: 0, toRow: row, tokens: tokens.length }]);
    await this.model.runtime.sequence([move]);
    cache.free();
    this.parked.splice(this.parked.indexOf(parked), 1);
    slot.tokens = tokens;
  }
}

const emptySlot = (): Slot => ({ tokens: [], regime: 0, job: undefined, lastUsed: -1 });
