import { LlamaGymError } from "../errors.js";
import { checkTokens, commonLength } from "../models/batch.js";
import type { CausalLM } from "../models/causal-lm.js";
import { steadyLength } from "../nn/rope.js";
import { CachedModel } from "./cached-model.js";
import { appendForced, finishReason, reusable, type Job, sequenceLength } from "./job.js";
import { PrefixStore } from "./prefix-store.js";
import type { FinishReason, Reply, ReplyRequest } from "./request.js";
import { Rows, type Slot } from "./rows.js";
import { FEW_TOKENS, MAX_ROW_TOKENS, Step } from "./step.js";

export interface SamplerOptions {
  /** Rows that are computed at once; more wait. */
  readonly maxRows?: number;
  /** Samples from the policy with its adapter (the default) or from the reference policy without. */
  readonly adapter?: boolean;
}

/**
 * Draws replies for many prompts at once. Rows join when there is room and leave when they are done; what all prompts begin
 * with is computed once, and what a row has read is kept for the next prompt that continues it, as long as the model's
 * parameters stand.
 */
export class Sampler {
  private readonly waiting: Job[] = [];
  private readonly rows: Rows;
  private readonly prefixes: PrefixStore;
  private running: Promise<void> | undefined;
  private version: number;
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
    this.rows = new Rows(model);
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
  async reply(request: ReplyRequest): Promise<Reply> {
    this.checkPrompt(request.prompt, request.maxNewTokens);
    return new Promise((resolve, reject) => {
      const job: Job = {
        prompt: request.prompt,
        pending: [],
        reply: request,
        targets: [],
        tokens: [],
        logProbs: [],
        plainLogProbs: [],
        values: [],
        settle: (finishReason) => {
          const { tokens, logProbs, plainLogProbs, values } = job;
          resolve({ tokens, logProbs, plainLogProbs, values, finishReason });
        },
        reject,
      };
      appendForced(job);
      const isOver = finishReason(job);
      if (isOver === undefined) this.enqueue(job);
      else job.settle(isOver);
    });
  }

  /** Log-probability of each token of a continuation, under the model at temperature 1. */
  async score(prompt: readonly number[], continuation: readonly number[]): Promise<number[]> {
    if (continuation.length === 0) return [];
    checkTokens(this.model.config, continuation);
    this.checkPrompt(prompt, continuation.length);
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
        values: [],
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

  private checkPrompt(prompt: readonly number[], newTokens: number): void {
    if (prompt.length === 0) throw new LlamaGymError("INVALID_ARGUMENT", "A prompt needs at least one token.");
    checkTokens(this.model.config, prompt);
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
      while (this.waiting.length > 0 || this.rows.busy > 0) {
        await this.admit();
        await this.step();
      }
    } catch (error) {
      this.failAll(error as Error);
    }
    this.running = undefined;
  }

  private failAll(error: Error): void {
    const jobs = [...this.waiting.splice(0), ...this.rows.slots.flatMap(({ job }) => (job === undefined ? [] : [job]))];
    this.forget();
    for (const job of jobs) job.reject(error);
  }

  /** Drops all that was computed with parameters that no longer stand. */
  private forget(): void {
    this.rows.clear();
    this.prefixes.clear();
    this.version = this.model.version;
  }

  /** Gives waiting jobs a row. With no row running, the shared prefix may change. */
  private async admit(): Promise<void> {
    this.dropAborted();
    if (this.waiting.length === 0) return;
    const { busy } = this.rows;
    // What is kept was read with older parameters: those that run finish, and new ones start from nothing.
    if (busy > 0 && this.version !== this.model.version) return;
    if (busy === 0) {
      if (this.version !== this.model.version) this.forget();
      const prompts = this.waiting
        .slice(0, this.maxRows)
        .map((job) => (this.shares(job) ? job.prompt.slice(0, reusable(job)) : []));
      if (await this.prefixes.choose(prompts)) this.rows.forgetTokens();
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
    await this.rows.join(joining, prefix.length);
  }

  private shares({ prompt, reply }: Job): boolean {
    return prompt.length + (reply?.maxNewTokens ?? 1) <= this.sharedLength;
  }

  /** One run for rows that have much to read, or else for every running row. */
  private async step(): Promise<void> {
    this.leaveAborted();
    await this.rows.shrinkWhenIdle();
    const running = this.rows.slots.flatMap((slot, row) =>
      slot.job === undefined ? [] : [{ slot, row, job: slot.job }],
    );
    if (running.length === 0) return;
    for (const { slot, job } of running) this.rereadIfStale(slot, job);
    const reading = running.filter(({ job }) => job.pending.length > FEW_TOKENS);
    const chosen = reading.length > 0 ? reading : running;
    const tokens = chosen.map(({ slot, job }) => slot.tokens.length + Math.min(job.pending.length, MAX_ROW_TOKENS));
    await this.rows.reserve(Math.max(...tokens));
    await new Step(this.model, this.cached, this.rows.cache!, this.prefixes, chosen, this.adapter).run();
    for (const { slot, job } of chosen) this.leave(slot, finishReason(job));
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
    const regime = this.rows.regime(sequenceLength(job));
    if (slot.regime === regime) return;
    job.pending = [...slot.tokens, ...job.pending];
    slot.tokens = [];
    slot.regime = regime;
  }

  private leaveAborted(): void {
    for (const slot of this.rows.slots) {
      if (slot.job?.reply?.signal?.aborted === true) this.leave(slot, "aborted");
    }
  }

  private leave(slot: Slot, reason: FinishReason | undefined): void {
    if (reason === undefined) return;
    const job = slot.job!;
    this.rows.leave(slot);
    job.settle(reason);
  }
}
