import { yieldToEventLoop } from "#platform";
import { LlamaGymError } from "../../core/errors.js";
import { type FrozenStates, checkTokens, sharedPrefixLength } from "../../models/graphs/index.js";
import type { CausalLM } from "../../models/index.js";
import { fixedFrequencyLength } from "../../engine/nn/index.js";
import { DecodeSession } from "../cache/decode-session.js";
import { RunningSequence } from "./running-sequence.js";
import { PrefixCache } from "../cache/prefix-cache.js";
import type { FinishReason, SampleOutput, SampleRequest, ScoredTokens } from "./sample-request.js";
import { KvCacheRows, type CacheRow } from "./kv-cache-rows.js";
import { DecodeStep } from "./decode-step.js";
import { planStep, type RowPlan } from "./step-plan.js";

/** Options of a `Sampler`. */
export interface SamplerOptions {
  /** Maximum number of sequences in a batch; more wait. Default 64. */
  readonly maxNumSequences?: number;
  /**
   * Whether to sample with the model's adapter (the default) or without it, as the reference
   * policy.
   */
  readonly adapter?: boolean;
}

/**
 * Samples many completions in a continuous batch: sequences are admitted while there is room and
 * leave when they finish. A prefix that all prompts share is computed once, and the keys and values
 * of a finished sequence are reused by a prompt that continues it, until the model's parameters
 * change.
 */
export class Sampler {
  private readonly waiting: RunningSequence[] = [];
  private readonly cacheRows: KvCacheRows;
  private readonly prefixCache: PrefixCache;
  private activeLoop: Promise<void> | undefined;
  private cacheVersion: number;
  private readonly maxNumSequences: number;
  private readonly adapter: boolean;
  /**
   * Sequences that may grow longer than this do not share a prefix, because their rotary
   * frequencies change.
   */
  private readonly maxSharedLength: number;

  private constructor(
    private readonly model: CausalLM,
    private readonly session: DecodeSession,
    /** Number of samplers that use the session. */
    private readonly sessionUsers: { count: number },
    { maxNumSequences = 64, adapter = true }: SamplerOptions,
  ) {
    this.maxNumSequences = maxNumSequences;
    this.adapter = adapter;
    this.maxSharedLength = fixedFrequencyLength(model.config.ropes);
    this.cacheVersion = model.cacheVersion;
    this.prefixCache = new PrefixCache(model, session, adapter);
    this.cacheRows = new KvCacheRows(model);
  }

  /** Creates a sampler; `frozenStates` are those that the model's learner keeps. */
  static async create(
    model: CausalLM,
    { frozenStates, ...options }: SamplerOptions & { readonly frozenStates?: FrozenStates | undefined } = {},
  ): Promise<Sampler> {
    return new Sampler(model, await DecodeSession.create(model, frozenStates), { count: 1 }, options);
  }

  /**
   * Creates a sampler with the same session and frozen states and its own cache, such as one for
   * the reference policy.
   */
  withAdapter(options: SamplerOptions = {}): Sampler {
    this.sessionUsers.count++;
    return new Sampler(this.model, this.session, this.sessionUsers, options);
  }

  /**
   * Creates a sampler with the same session for another version of the model, from `withOwnValues`,
   * with its own cache.
   */
  withModel(model: CausalLM, options: SamplerOptions = {}): Sampler {
    this.sessionUsers.count++;
    return new Sampler(model, this.session, this.sessionUsers, options);
  }

  /** Samples a completion; calls made in the same turn of the event loop run as one batch. */
  async sample(request: SampleRequest): Promise<SampleOutput> {
    return this.resume(RunningSequence.forSampling(request));
  }

  /** Samples the rest of a completion whose first tokens are known already. */
  async resume(sequence: RunningSequence): Promise<SampleOutput> {
    this.checkPrompt(sequence.prompt, sequence.request!.maxNewTokens);
    sequence.start();
    const { finishReason } = sequence;
    return finishReason === undefined ? this.enqueue(sequence) : sequence.toOutput(finishReason);
  }

  /**
   * Computes the log-probability of each token of a continuation, under the model at temperature 1.
   * With `sharesPrompt`, continuations that are scored in the same turn of the event loop compute
   * their prompt once.
   */
  async score(
    prompt: readonly number[],
    continuation: readonly number[],
    { sharesPrompt }: { readonly sharesPrompt?: boolean } = {},
  ): Promise<readonly number[]> {
    return (await this.scoreTokens(prompt, continuation, 0, sharesPrompt)).logProbs;
  }

  /** As `score`, with the `alternatives` most probable tokens in place of each token. */
  async scoreTokens(
    prompt: readonly number[],
    continuation: readonly number[],
    alternatives = 0,
    sharesPrompt = false,
  ): Promise<ScoredTokens> {
    if (continuation.length === 0) return { logProbs: [], topLogProbs: [] };
    checkTokens(this.model.config, continuation);
    this.checkPrompt(prompt, continuation.length);
    const sequence = RunningSequence.forScoring(prompt, continuation, alternatives, sharesPrompt);
    const { rawLogProbs: logProbs, topLogProbs = [] } = await this.enqueue(sequence);
    return { logProbs, topLogProbs };
  }

  async release(): Promise<void> {
    await this.activeLoop;
    this.invalidate();
    if (--this.sessionUsers.count === 0) await this.session.release();
    else this.session.forget(this.model);
  }

  private checkPrompt(prompt: readonly number[], newTokens: number): void {
    if (prompt.length === 0)
      throw new LlamaGymError("INVALID_ARGUMENT", "The prompt is empty; it must have at least one token.");
    checkTokens(this.model.config, prompt);
    const { maxPositions } = this.model.config;
    if (prompt.length + newTokens > maxPositions) {
      throw new LlamaGymError(
        "CONTEXT_OVERFLOW",
        `The prompt's ${prompt.length} tokens and ${newTokens} new ones exceed the model's context of ${maxPositions} tokens.`,
      );
    }
  }

  private async enqueue(sequence: RunningSequence): Promise<SampleOutput> {
    this.waiting.push(sequence);
    this.activeLoop ??= new Promise<void>((resolve) => {
      // Starts in the next turn of the event loop, so that all calls made in this one become one
      // batch.
      void yieldToEventLoop().then(() => this.run().then(resolve));
    });
    return sequence.waitForOutput();
  }

  private async run(): Promise<void> {
    try {
      while (this.waiting.length > 0 || this.cacheRows.activeCount > 0) {
        await this.admit();
        await this.step();
      }
    } catch (error) {
      this.failAll(error as Error);
    } finally {
      this.activeLoop = undefined;
    }
  }

  private failAll(error: Error): void {
    const running = this.cacheRows.rows.flatMap(({ sequence }) => (sequence === undefined ? [] : [sequence]));
    for (const sequence of [...this.waiting.splice(0), ...running]) sequence.reject(error);
    this.invalidate();
    // The states of the failed step are registered, but may not have been computed.
    this.session.frozenStates?.clear();
    this.session.discardDerived();
  }

  /** Invalidates everything computed with outdated parameters. */
  private invalidate(): void {
    this.cacheRows.clear();
    this.prefixCache.clear();
    this.cacheVersion = this.model.cacheVersion;
  }

  /**
   * Assigns rows to waiting sequences. The shared prefix may change only while no row is active.
   */
  private async admit(): Promise<void> {
    this.dropAborted();
    if (this.waiting.length === 0) return;
    const { activeCount } = this.cacheRows;
    // Running sequences finish with the keys and values of the old parameters; new ones wait for
    // them.
    if (activeCount > 0 && this.cacheVersion !== this.model.cacheVersion) return;
    if (activeCount === 0) {
      if (this.cacheVersion !== this.model.cacheVersion) this.invalidate();
      const prompts = this.waiting.slice(0, this.maxNumSequences).map((sequence) => this.sharableTokens(sequence));
      if (await this.prefixCache.update(prompts)) this.cacheRows.invalidate();
    } else if (activeCount < this.maxNumSequences && !this.fitsPrefix(this.waiting[0])) {
      // It would wait until all others are finished, and those that start meanwhile.
      await this.cacheRows.absorbPrefix(this.prefixCache);
      this.prefixCache.clear();
    }
    const { tokens: prefix } = this.prefixCache;
    const admitted: RunningSequence[] = [];
    for (const sequence of this.waiting) {
      if (activeCount + admitted.length >= this.maxNumSequences) break;
      if (this.fitsPrefix(sequence)) admitted.push(sequence);
    }
    await this.cacheRows.admit(admitted, prefix.length);
    // Removed only now, so that each sequence is in a list that `failAll` reads when a request to
    // the worker fails.
    for (const sequence of admitted) this.waiting.splice(this.waiting.indexOf(sequence), 1);
  }

  /** Whether a sequence starts with the shared prefix. */
  private fitsPrefix(sequence: RunningSequence): boolean {
    const { tokens } = this.prefixCache;
    return tokens.length === 0 || sharedPrefixLength(tokens, this.sharableTokens(sequence)) === tokens.length;
  }

  /**
   * The tokens that a prefix may contain. The last ones are always processed: their logits predict
   * the next token, or are scored.
   */
  private sharableTokens({ context, recomputedLength, maxLength }: RunningSequence): readonly number[] {
    return maxLength <= this.maxSharedLength ? context.slice(0, -recomputedLength) : [];
  }

  /**
   * Runs one step. The plan is carried out before anything is awaited, as a learner may discard
   * states at any time.
   */
  private async step(): Promise<void> {
    this.finishAborted();
    await this.cacheRows.compactWhenIdle();
    if (this.cacheRows.activeCount === 0) return;
    await this.cacheRows.reserve();
    const activeRows = this.cacheRows.rows.flatMap((row, rowIndex) =>
      row.sequence === undefined ? [] : [{ row, rowIndex, sequence: row.sequence }],
    );
    const { fromStates, fromTokens } = planStep(activeRows, {
      config: this.model.config,
      prefix: this.prefixCache.tokens,
      frozenStates: this.session.frozenStates,
    });
    const statesSession = this.session.fromStates;
    if (fromStates.length > 0 && statesSession === undefined) return this.session.openFromStates();
    if (fromStates.length > 0) await this.decode(fromStates, statesSession!);
    // Rows that start from tokens do not depend on states.
    if (fromTokens.length > 0) await this.decode(fromTokens, this.session);
    for (const { row, sequence } of activeRows) this.finish(row, sequence.finishReason);
  }

  private async decode(rows: readonly RowPlan[], session: DecodeSession): Promise<void> {
    const { model, prefixCache, adapter } = this;
    await new DecodeStep({ model, prefixCache, adapter, cache: this.cacheRows.cache!, session }, rows).run();
  }

  /** Finishes sequences that were aborted while waiting for a row. */
  private dropAborted(): void {
    const aborted = this.waiting.filter(({ request }) => request?.signal?.aborted === true);
    for (const sequence of aborted) {
      this.waiting.splice(this.waiting.indexOf(sequence), 1);
      sequence.finish("aborted");
    }
  }

  private finishAborted(): void {
    for (const row of this.cacheRows.rows) {
      if (row.sequence?.request?.signal?.aborted === true) this.finish(row, "aborted");
    }
  }

  private finish(row: CacheRow, reason: FinishReason | undefined): void {
    if (reason === undefined) return;
    const sequence = row.sequence!;
    this.cacheRows.release(row);
    sequence.finish(reason);
  }
}
