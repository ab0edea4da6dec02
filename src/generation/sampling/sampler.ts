import { LlamaGymError } from "../../core/errors.js";
import { checkTokens, sharedPrefixLength } from "../../models/graphs/sequence-batch.js";
import type { CausalLM } from "../../models/causal-lm.js";
import { fixedFrequencyLength } from "../../engine/nn/rope.js";
import { DecodeSession } from "../cache/decode-session.js";
import { RunningSequence } from "./running-sequence.js";
import { PrefixCache } from "../cache/prefix-cache.js";
import type { FinishReason, SampleOutput, SampleRequest } from "./sample-request.js";
import { KvCacheRows, type CacheRow } from "../cache/kv-cache-rows.js";
import { PREFILL_THRESHOLD, MAX_CHUNK_TOKENS, DecodeStep } from "./decode-step.js";

export interface SamplerOptions {
  /** Rows that are computed at once; more wait. */
  readonly maxNumSequences?: number;
  /** Samples from the policy with its adapter (the default) or from the reference policy without. */
  readonly adapter?: boolean;
}

/**
 * Draws replies for many prompts at once. Rows join when there is room and leave when they are done; what all prompts begin
 * with is computed once, and what a row has read is kept for the next prompt that continues it, as long as the model's
 * parameters stand.
 */
export class Sampler {
  private readonly waiting: RunningSequence[] = [];
  private readonly cacheRows: KvCacheRows;
  private readonly prefixCache: PrefixCache;
  private activeLoop: Promise<void> | undefined;
  private parametersVersion: number;
  private readonly maxNumSequences: number;
  private readonly adapter: boolean;
  /** Sequences that may grow longer than this do not share a prefix. */
  private readonly maxSharedLength: number;

  private constructor(
    private readonly model: CausalLM,
    private readonly session: DecodeSession,
    /** How many samplers use the session. */
    private readonly sessionUsers: { count: number },
    { maxNumSequences = 64, adapter = true }: SamplerOptions,
  ) {
    this.maxNumSequences = maxNumSequences;
    this.adapter = adapter;
    this.maxSharedLength = fixedFrequencyLength(model.config.ropes);
    this.parametersVersion = model.parametersVersion;
    this.prefixCache = new PrefixCache(model, session, adapter);
    this.cacheRows = new KvCacheRows(model);
  }

  static async create(model: CausalLM, options: SamplerOptions = {}): Promise<Sampler> {
    return new Sampler(model, await DecodeSession.create(model), { count: 1 }, options);
  }

  /** Another sampler with the same session and rows of its own: for the policy beside its reference. */
  withAdapter(options: SamplerOptions = {}): Sampler {
    this.sessionUsers.count++;
    return new Sampler(this.model, this.session, this.sessionUsers, options);
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

  /** Computes the log-probability of each token of a continuation, under the model at temperature 1. */
  async score(prompt: readonly number[], continuation: readonly number[]): Promise<readonly number[]> {
    if (continuation.length === 0) return [];
    checkTokens(this.model.config, continuation);
    this.checkPrompt(prompt, continuation.length);
    const { rawLogProbs } = await this.enqueue(RunningSequence.forScoring(prompt, continuation));
    return rawLogProbs;
  }

  async release(): Promise<void> {
    await this.activeLoop;
    this.invalidate();
    if (--this.sessionUsers.count === 0) await this.session.release();
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

  private async enqueue(sequence: RunningSequence): Promise<SampleOutput> {
    this.waiting.push(sequence);
    this.activeLoop ??= new Promise<void>((resolve) => {
      // Starts in the next turn of the event loop, so that all calls made in this one become one batch.
      setImmediate(() => void this.run().then(resolve));
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
    }
    this.activeLoop = undefined;
  }

  private failAll(error: Error): void {
    const sequences = [
      ...this.waiting.splice(0),
      ...this.cacheRows.rows.flatMap(({ sequence }) => (sequence === undefined ? [] : [sequence])),
    ];
    this.invalidate();
    for (const sequence of sequences) sequence.reject(error);
  }

  /** Drops all that was computed with parameters that no longer stand. */
  private invalidate(): void {
    this.cacheRows.clear();
    this.prefixCache.clear();
    this.parametersVersion = this.model.parametersVersion;
  }

  /** Gives waiting jobs a row. With no row running, the shared prefix may change. */
  private async admit(): Promise<void> {
    this.dropAborted();
    if (this.waiting.length === 0) return;
    const { activeCount } = this.cacheRows;
    // What is kept was read with older parameters: those that run finish, and new ones start from nothing.
    if (activeCount > 0 && this.parametersVersion !== this.model.parametersVersion) return;
    if (activeCount === 0) {
      if (this.parametersVersion !== this.model.parametersVersion) this.invalidate();
      const prompts = this.waiting
        .slice(0, this.maxNumSequences)
        .map((sequence) =>
          this.canSharePrefix(sequence) ? sequence.context.slice(0, -sequence.recomputedLength) : [],
        );
      if (await this.prefixCache.update(prompts)) this.cacheRows.invalidate();
    }
    const { tokens: prefix } = this.prefixCache;
    const admitted: RunningSequence[] = [];
    for (let i = 0; i < this.waiting.length && activeCount + admitted.length < this.maxNumSequences;) {
      const { context } = this.waiting[i];
      const fits = prefix.length === 0 || this.canSharePrefix(this.waiting[i]);
      // The last token is always processed: its logits are those of the next token.
      if (fits && sharedPrefixLength(prefix, context) === prefix.length && context.length > prefix.length)
        admitted.push(...this.waiting.splice(i, 1));
      else i++;
    }
    await this.cacheRows.admit(admitted, prefix.length);
  }

  private canSharePrefix({ maxLength }: RunningSequence): boolean {
    return maxLength <= this.maxSharedLength;
  }

  /** One run for rows that have much to read, or else for every running row. */
  private async step(): Promise<void> {
    this.finishAborted();
    await this.cacheRows.compactWhenIdle();
    const activeRows = this.cacheRows.rows.flatMap((row, rowIndex) =>
      row.sequence === undefined ? [] : [{ row, rowIndex, sequence: row.sequence }],
    );
    if (activeRows.length === 0) return;
    for (const { row, sequence } of activeRows) this.recomputeIfStale(row, sequence);
    const prefilling = activeRows.filter(({ sequence }) => sequence.unprocessedTokens.length > PREFILL_THRESHOLD);
    const selectedRows = prefilling.length > 0 ? prefilling : activeRows;
    const tokens = selectedRows.map(
      ({ row, sequence }) => row.tokens.length + Math.min(sequence.unprocessedTokens.length, MAX_CHUNK_TOKENS),
    );
    await this.cacheRows.reserve(Math.max(...tokens));
    await new DecodeStep(
      this.model,
      this.session,
      this.cacheRows.cache!,
      this.prefixCache,
      selectedRows,
      this.adapter,
    ).run();
    for (const { row, sequence } of selectedRows) this.finish(row, sequence.finishReason);
  }

  /** Jobs that were aborted before they had a row. */
  private dropAborted(): void {
    const aborted = this.waiting.filter(({ request }) => request?.signal?.aborted === true);
    for (const sequence of aborted) {
      this.waiting.splice(this.waiting.indexOf(sequence), 1);
      sequence.finish("aborted");
    }
  }

  /** A sequence that has grown into other rotary frequencies is read again from its start. */
  private recomputeIfStale(row: CacheRow, sequence: RunningSequence): void {
    const regime = this.cacheRows.regime(sequence.length);
    if (row.regime === regime) return;
    sequence.unprocessedTokens = [...row.tokens, ...sequence.unprocessedTokens];
    row.tokens = [];
    row.regime = regime;
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
