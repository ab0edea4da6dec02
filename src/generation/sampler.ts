import { LlamaGymError } from "../errors.js";
import type { CausalLM } from "../models/causal-lm.js";
import { ropeRegime, steadyLength } from "../nn/rope.js";
import type { SampleResult } from "../runtime/kernels.js";
import type { Request } from "../runtime/protocol.js";
import { CachedModel, type RowTokens } from "./cached-model.js";
import { cacheShape, KvCache, moveRows, roomFor, storeTokens, type NewToken, type RowMove } from "./kv-cache.js";
import { commonLength, PrefixStore } from "./prefix-store.js";
import type { FinishReason, Reply, ReplyRequest } from "./request.js";

export interface SamplerOptions {
  /** Rows that are computed at once; more wait. */
  readonly maxRows?: number;
  /** Samples from the policy with its adapter (the default) or from the reference policy without. */
  readonly adapter?: boolean;
}

/** Tokens of one row that are read at once; longer prompts take several steps. */
const MAX_ROW_TOKENS = 512;

/** A row of the cache: what it holds, and for whom. */
interface Slot {
  /** Tokens whose keys and values the row holds, behind the prefix. */
  tokens: number[];
  /** See ropeRegime: with another one, the keys and values are worth nothing. */
  regime: number;
  job: Job | undefined;
  lastUsed: number;
}

/** Something that runs in a row: a reply to be drawn, or a continuation to be scored. */
interface Job {
  readonly prompt: readonly number[];
  /** Tokens not yet read. */
  pending: number[];
  readonly reply: ReplyRequest | undefined;
  /** The continuation to score. */
  readonly targets: readonly number[];
  readonly tokens: number[];
  readonly logProbs: number[];
  readonly plainLogProbs: number[];
  readonly settle: (reason: FinishReason) => void;
  readonly reject: (error: Error) => void;
}

/**
 * Draws replies for many prompts at once. Rows join when there is room and leave when they are done; what all prompts begin
 * with is computed once, and what a row has read is kept for the next prompt that continues it, as long as the model's
 * parameters stand.
 */
export class Sampler {
  private readonly waiting: Job[] = [];
  private slots: Slot[] = [];
  private cache: KvCache | undefined;
  private readonly prefixes: PrefixStore;
  private running: Promise<void> | undefined;
  private version: number;
  private clock = 0;
  private readonly maxRows: number;
  private readonly adapter: boolean;
  /** Sequences that may grow longer than this do not share a prefix. */
  private readonly sharedLength: number;

  private constructor(
    private readonly model: CausalLM,
    private readonly cached: CachedModel,
    /** How many samplers use the session. */
    private readonly users: { count: number },
    { maxRows = 64, adapter = true }: SamplerOptions,
  ) {
    this.maxRows = maxRows;
    this.adapter = adapter;
    this.sharedLength = steadyLength(model.config.ropes);
    this.version = model.version;
    this.prefixes = new PrefixStore(model, cached, adapter);
  }

  static async create(model: CausalLM, options: SamplerOptions = {}): Promise<Sampler> {
    return new Sampler(model, await CachedModel.create(model), { count: 1 }, options);
  }

  /** Another sampler with the same session and rows of its own: for the policy beside its reference. */
  sibling(options: SamplerOptions = {}): Sampler {
    this.users.count++;
    return new Sampler(this.model, this.cached, this.users, options);
  }

  /** Draws a reply; calls made in the same turn of the event loop run as one batch. */
  reply(request: ReplyRequest): Promise<Reply> {
    this.checkLength(request.prompt, request.maxNewTokens);
    return new Promise((resolve, reject) => {
      const job: Job = {
        prompt: request.prompt,
        pending: [],
        reply: request,
        targets: [],
        tokens: [],
        logProbs: [],
        plainLogProbs: [],
        settle: (finishReason) => {
          const { tokens, logProbs, plainLogProbs } = job;
          resolve({ tokens, logProbs, plainLogProbs, finishReason });
        },
        reject,
      };
      this.enqueue(job);
    });
  }

  /** Log-probability of each token of a continuation, under the model at temperature 1. */
  score(prompt: readonly number[], continuation: readonly number[]): Promise<number[]> {
    if (continuation.length === 0) return Promise.resolve([]);
    this.checkLength(prompt, continuation.length);
    return new Promise((resolve, reject) => {
      const plainLogProbs: number[] = [];
      this.enqueue({
        prompt: [...prompt, ...continuation.slice(0, -1)],
        pending: [],
        reply: undefined,
        targets: continuation,
        tokens: [],
        logProbs: [],
        plainLogProbs,
        settle: () => resolve(plainLogProbs),
        reject,
      });
    });
  }

  async release(): Promise<void> {
    await this.running;
    this.forget();
    if (--this.users.count === 0) await this.cached.release();
  }

  private checkLength(prompt: readonly number[], newTokens: number): void {
    if (prompt.length === 0) throw new LlamaGymError("INVALID_ARGUMENT", "A prompt needs at least one token.");
    const { maxPositions } = this.model.config;
    if (prompt.length + newTokens > maxPositions) {
      throw new LlamaGymError(
        "CONTEXT_OVERFLOW",
        `A prompt of ${prompt.length} tokens and ${newTokens} new ones need more than the model's context of ${maxPositions}.`,
      );
    }
  }

  private enqueue(job: Job): void {
    this.waiting.push(job);
    this.running ??= new Promise<void>((resolve) => {
      // Waits a turn, so that all calls made now become one batch.
      setImmediate(() => void this.run().then(resolve));
    });
  }

  private async run(): Promise<void> {
    try {
      while (this.waiting.length > 0 || this.slots.some(({ job }) => job !== undefined)) {
        await this.admit();
        await this.step();
      }
    } catch (error) {
      this.failAll(error as Error);
    }
    this.running = undefined;
  }

  private failAll(error: Error): void {
    const jobs = [...this.waiting.splice(0), ...this.slots.flatMap(({ job }) => (job === undefined ? [] : [job]))];
    this.forget();
    for (const job of jobs) job.reject(error);
  }

  /** Drops all that was computed with parameters that no longer stand. */
  private forget(): void {
    this.cache?.free();
    this.cache = undefined;
    this.slots = [];
    this.prefixes.clear();
    this.version = this.model.version;
  }

  /** Gives waiting jobs a row. With no row running, the shared prefix may change. */
  private async admit(): Promise<void> {
    this.dropAborted();
    if (this.waiting.length === 0) return;
    const busy = this.slots.filter(({ job }) => job !== undefined).length;
    // What is kept was read with older parameters: those that run finish, and new ones start from nothing.
    if (busy > 0 && this.version !== this.model.version) return;
    if (busy === 0) {
      if (this.version !== this.model.version) this.forget();
      const prompts = this.waiting
        .slice(0, this.maxRows)
        .map((job) => (this.shares(job) ? job.prompt.slice(0, reusable(job)) : []));
      if (await this.prefixes.choose(prompts)) this.slots = this.slots.map(() => emptySlot());
    }
    const { tokens: prefix } = this.prefixes;
    const joining: Job[] = [];
    for (let i = 0; i < this.waiting.length && busy + joining.length < this.maxRows;) {
      const { prompt } = this.waiting[i];
      const fits = prefix.length === 0 || this.shares(this.waiting[i]);
      // The prompt's last token is always read anew: its scores are what comes next.
      if (fits && commonLength(prefix, prompt) === prefix.length && prompt.length > prefix.length)
        joining.push(...this.waiting.splice(i, 1));
      else i++;
    }
    await this.makeRoom(busy + joining.length, Math.max(0, ...joining.map((job) => job.prompt.length - prefix.length)));
    for (const job of joining) this.place(job, job.prompt.slice(prefix.length));
  }

  private shares({ prompt, reply }: Job): boolean {
    return prompt.length + (reply?.maxNewTokens ?? 1) <= this.sharedLength;
  }

  /** Puts a job into the free row that holds most of its prompt. */
  private place(job: Job, own: readonly number[]): void {
    const regime = this.regime(sequenceLength(job));
    let best: Slot | undefined;
    let bestLength = -1;
    for (const slot of this.slots) {
      if (slot.job !== undefined) continue;
      const known = slot.regime === regime ? commonLength(slot.tokens, own) : 0;
      const length = Math.min(known, own.length - (job.prompt.length - reusable(job)));
      if (length > bestLength || (length === bestLength && slot.lastUsed < best!.lastUsed)) {
        best = slot;
        bestLength = length;
      }
    }
    best!.tokens.length = Math.max(0, bestLength);
    best!.regime = regime;
    best!.job = job;
    best!.lastUsed = this.clock++;
    job.pending = own.slice(best!.tokens.length);
  }

  /** Enough rows, and room in each for some tokens more than are there. */
  private async makeRoom(rows: number, tokens: number): Promise<void> {
    const capacity = Math.max(
      this.cache?.capacity ?? 0,
      roomFor(Math.max(tokens, ...this.slots.map((slot) => slot.tokens.length)) + 1),
    );
    const count = Math.max(rows, this.slots.length);
    if (this.cache !== undefined && this.cache.rows >= count && this.cache.capacity >= capacity) return;
    const shape = cacheShape(this.model.config);
    const next = new KvCache(this.model.runtime, shape, count, capacity);
    if (this.cache !== undefined) {
      const moves: RowMove[] = this.slots.map((slot, row) => ({
        fromRow: row,
        toRow: row,
        tokens: slot.tokens.length,
      }));
      await this.model.runtime.sequence([moveRows(shape, this.cache, next, moves)]);
      this.cache.free();
    }
    this.cache = next;
    while (this.slots.length < count) this.slots.push(emptySlot());
  }

  /** One run for rows that have prompt to read, or else one token for every running row. */
  private async step(): Promise<void> {
    this.leaveAborted();
    const running = this.slots.flatMap((slot, row) => (slot.job === undefined ? [] : [{ slot, row, job: slot.job }]));
    if (running.length === 0) return;
    for (const { slot, job } of running) this.rereadIfStale(slot, job);
    const reading = running.filter(({ job }) => job.pending.length > 1);
    const chosen = reading.length > 0 ? reading : running;
    await this.makeRoom(
      0,
      Math.max(...chosen.map(({ slot, job }) => slot.tokens.length + Math.min(job.pending.length, MAX_ROW_TOKENS))),
    );
    await new Step(this.model, this.cached, this.cache!, this.prefixes, chosen, this.adapter).run();
    for (const { slot } of chosen) this.finishIfDone(slot);
  }

  /** Jobs that were aborted before they had a row. */
  private dropAborted(): void {
    const aborted = this.waiting.filter(({ reply }) => reply?.signal?.aborted === true);
    for (const job of aborted) {
      this.waiting.splice(this.waiting.indexOf(job), 1);
      job.settle("aborted");
    }
  }

  /** A sequence that has grown into other rotary frequencies is read again from its start. */
  private rereadIfStale(slot: Slot, job: Job): void {
    const regime = this.regime(sequenceLength(job));
    if (slot.regime === regime) return;
    job.pending = [...slot.tokens, ...job.pending];
    slot.tokens = [];
    slot.regime = regime;
  }

  private regime(length: number): number {
    return ropeRegime(this.model.config.ropes, length);
  }

  private leaveAborted(): void {
    for (const slot of this.slots) {
      if (slot.job?.reply?.signal?.aborted === true) this.leave(slot, "aborted");
    }
  }

  private finishIfDone(slot: Slot): void {
    const job = slot.job!;
    if (job.reply === undefined) {
      if (job.plainLogProbs.length === job.targets.length) this.leave(slot, "length");
      return;
    }
    const { stopTokens, stopWhen, maxNewTokens, constraint } = job.reply;
    const last = job.tokens.at(-1);
    if (last === undefined) return;
    if (stopTokens.has(last) || constraint?.allowed(job.tokens)?.length === 0) this.leave(slot, "stop");
    else if (stopWhen?.(job.tokens) === true) this.leave(slot, "stop_string");
    else if (job.tokens.length >= maxNewTokens) this.leave(slot, "length");
  }

  private leave(slot: Slot, reason: FinishReason): void {
    const job = slot.job!;
    slot.job = undefined;
    slot.lastUsed = this.clock++;
    job.settle(reason);
  }
}

/** How many of a job's first tokens may have been read by others: from the first whose scores are wanted on, it reads itself. */
function reusable({ prompt, targets }: Job): number {
  return prompt.length - Math.max(1, targets.length);
}

/** A job's tokens as far as they are known. */
function sequenceLength({ prompt, tokens, reply }: Job): number {
  return prompt.length + (reply === undefined ? 1 : tokens.length);
}

const emptySlot = (): Slot => ({ tokens: [], regime: 0, job: undefined, lastUsed: -1 });

interface RunningRow {
  readonly slot: Slot;
  readonly row: number;
  readonly job: Job;
}

/** One run of the model over some rows: reads their pending tokens, keeps them, and draws or scores what follows. */
class Step {
  constructor(
    private readonly model: CausalLM,
    private readonly cached: CachedModel,
    private readonly cache: KvCache,
    private readonly prefix: PrefixStore,
    private readonly running: readonly RunningRow[],
    private readonly adapter: boolean,
  ) {}

  async run(): Promise<void> {
    const { runtime, config } = this.model;
    const shape = cacheShape(config);
    const chunks = this.running.map(({ job }) => job.pending.slice(0, MAX_ROW_TOKENS));
    // Reading rows run in a cache of their own, without the rows that do not read: attention costs by the row.
    const compact = this.running.length < this.cache.rows && chunks.some((chunk) => chunk.length > 1);
    const longest = Math.max(...this.running.map(({ slot }) => slot.tokens.length));
    const temporary = compact && longest > 0 ? new KvCache(runtime, shape, this.running.length, longest) : undefined;
    const rows: RowTokens[] = this.running.map(({ slot, row, job }, i) => ({
      tokens: chunks[i],
      slot: compact ? i : row,
      cached: slot.tokens.length,
      sequenceLength: sequenceLength(job),
    }));

    const plan = this.plan(chunks);
    const { request, outputs } = this.cached.prepare({
      rows,
      prefix: this.prefix.cache,
      prefixLength: this.prefix.tokens.length,
      cache: compact ? temporary : this.cache,
      select: [...plan.draws, ...plan.scores].map(({ flat }) => flat),
      inverseTemperatures: [...plan.draws, ...plan.scores].map(({ job }) => 1 / (job.reply?.settings.temperature || 1)),
      adapter: this.adapter,
    });
    const requests: Request[] = [];
    if (temporary !== undefined) {
      const moves = this.running.map(({ slot, row }, i) => ({ fromRow: row, toRow: i, tokens: slot.tokens.length }));
      requests.push(moveRows(shape, this.cache, temporary, moves));
    }
    requests.push(request, storeTokens(shape, outputs.fresh, this.cache, this.newTokens(chunks)));
    const head = (view: typeof outputs.plain, start: number, count: number) => ({
      ...view,
      offset: view.offset + start * config.vocabSize,
      shape: [count, config.vocabSize],
    });
    const { draws, scores } = plan;
    if (scores.length > 0) {
      const tokens = Int32Array.from(scores, ({ target }) => target);
      requests.push({
        kind: "kernel",
        call: {
          name: "pickLogProbs",
          logits: head(outputs.logits, draws.length, scores.length),
          plain: head(outputs.plain, draws.length, scores.length),
          tokens,
        },
      });
    }
    // Both go out in one turn: a sampler that shares the session must not run in between.
    const picked = scores.length > 0 ? runtime.sequence(requests.splice(0)) : undefined;
    if (draws.length > 0) {
      requests.push({
        kind: "kernel",
        call: {
          name: "sample",
          logits: head(outputs.logits, 0, draws.length),
          plain: head(outputs.plain, 0, draws.length),
          tempered: head(outputs.tempered, 0, draws.length),
          rows: draws.map(({ job }) => rowSampling(job)),
        },
      });
    }
    const drawn = requests.length > 0 ? runtime.sequence(requests) : undefined;
    temporary?.free();
    const [logProbs, result] = await Promise.all([picked, drawn]);
    this.running.forEach(({ slot, job }, i) => {
      for (const token of chunks[i]) slot.tokens.push(token);
      job.pending = job.pending.slice(chunks[i].length);
    });
    if (scores.length > 0)
      (logProbs as Float64Array).forEach((logProb, i) => scores[i].job.plainLogProbs.push(logProb));
    if (draws.length > 0) this.append(draws, result as SampleResult);
  }

  /** Which flat tokens are followed by a draw, and which by a token to be scored. */
  private plan(chunks: readonly (readonly number[])[]): {
    draws: { job: Job; flat: number }[];
    scores: { job: Job; flat: number; target: number }[];
  } {
    const draws: { job: Job; flat: number }[] = [];
    const scores: { job: Job; flat: number; target: number }[] = [];
    let flat = 0;
    this.running.forEach(({ job }, i) => {
      const chunk = chunks[i];
      const left = job.pending.length - chunk.length;
      if (job.reply !== undefined) {
        if (left === 0) draws.push({ job, flat: flat + chunk.length - 1 });
      } else {
        // The last target follows the last pending token, and so on backwards.
        chunk.forEach((_, k) => {
          const target = job.targets.length - 1 - (left + chunk.length - 1 - k);
          if (target >= 0) scores.push({ job, flat: flat + k, target: job.targets[target] });
        });
      }
      flat += chunk.length;
    });
    return { draws, scores };
  }

  private newTokens(chunks: readonly (readonly number[])[]): NewToken[] {
    let flat = 0;
    return this.running.flatMap(({ slot, row }, i) =>
      chunks[i].map((_, k) => ({ flat: flat++, row, at: slot.tokens.length + k })),
    );
  }

  private append(draws: readonly { job: Job }[], { tokens, logProbs, plainLogProbs }: SampleResult): void {
    draws.forEach(({ job }, i) => {
      job.tokens.push(tokens[i]);
      job.logProbs.push(logProbs[i]);
      job.plainLogProbs.push(plainLogProbs[i]);
      job.pending = [tokens[i]];
      job.reply!.onToken?.(tokens[i]);
    });
  }
}

function rowSampling({ reply, prompt, tokens }: Job) {
  const { settings, random, constraint } = reply!;
  const penalised = settings.repetitionPenalty !== 1;
  return {
    settings,
    uniform: settings.temperature === 0 ? 0 : random(),
    seen: penalised ? Int32Array.from([...prompt, ...tokens]) : new Int32Array(0),
    allowed: constraint?.allowed(tokens),
  };
}
