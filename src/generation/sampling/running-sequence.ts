import type { SampledToken, TokenDistribution } from "../../engine/runtime/index.js";
import type { ConstraintCursor } from "../constraints/compiled-constraint.js";
import type { FinishReason, SampleOutput, SampleRequest, TokenLogProb } from "./sample-request.js";

/** A sampled token with the state it was sampled in. */
export interface SampledTokenWithState extends SampledToken {
  /** Log-probability under the model at temperature 1. */
  readonly rawLogProb: number;
  readonly value: number;
  /** Only if the request has `onDistribution`. */
  readonly distribution: TokenDistribution | undefined;
  /**
   * Only if the request has `recordsKeptTokens`; by default the tokens that the constraint allows.
   */
  readonly keptTokens?: Int32Array;
  /** Only if the request has `topLogProbs`. */
  readonly topLogProbs?: readonly TokenLogProb[];
}

/** A sequence in the continuous batch: a completion to sample, or a continuation to score. */
export class RunningSequence {
  readonly tokens: number[] = [];
  readonly logProbs: number[] = [];
  readonly rawLogProbs: number[] = [];
  readonly values: number[] = [];
  readonly topLogProbs: (readonly TokenLogProb[])[] = [];
  /** Number of tokens whose keys and values were in the cache when the sequence was admitted. */
  cachedTokens = 0;
  /** The tokens whose keys and values are not in the cache yet. */
  unprocessedTokens: number[] = [];
  private readonly cursor: ConstraintCursor | undefined;
  private readonly allowedTokenLists: Int32Array[] = [];
  private initialTokenCount = 0;
  private failure: Error | undefined;
  private settle: { resolve: (output: SampleOutput) => void; reject: (error: Error) => void } | undefined;

  private constructor(
    readonly prompt: readonly number[],
    /** Undefined for a continuation to score. */
    readonly request: SampleRequest | undefined,
    /** The continuation to score. */
    readonly scoredTokens: readonly number[],
    /** Number of most probable tokens to return in place of each scored one. */
    readonly scoredAlternatives = 0,
    /** Whether other continuations of the prompt are scored at the same time. */
    private readonly sharesPrompt = false,
  ) {
    this.cursor = request?.constraint?.cursor();
  }

  /** Creates a completion to sample. */
  static forSampling(request: SampleRequest): RunningSequence {
    return new RunningSequence(request.prompt, request, []);
  }

  /** Creates a continuation of at least one token to score. */
  static forScoring(
    prompt: readonly number[],
    continuation: readonly number[],
    alternatives = 0,
    sharesPrompt = false,
  ): RunningSequence {
    const context = [...prompt, ...continuation.slice(0, -1)];
    return new RunningSequence(context, undefined, continuation, alternatives, sharesPrompt);
  }

  /** Adds the log-probability of the next scored token. */
  appendScore(logProb: number, alternatives: readonly TokenLogProb[]): void {
    this.rawLogProbs.push(logProb);
    this.topLogProbs.push(alternatives);
  }

  /** Number of known tokens, including the one that is scored last. */
  get length(): number {
    return this.prompt.length + (this.request === undefined ? 1 : this.tokens.length);
  }

  /** Number of tokens that the sequence may grow to. */
  get maxLength(): number {
    return this.prompt.length + (this.request?.maxNewTokens ?? 1);
  }

  /** The tokens that may be sampled next; undefined for any. */
  get allowedTokens(): Int32Array | undefined {
    return this.cursor?.allowedTokens;
  }

  /** The prompt and the tokens that were sampled before the sequence was started. */
  get context(): readonly number[] {
    const { prompt, tokens, initialTokenCount } = this;
    return initialTokenCount === 0 ? prompt : [...prompt, ...tokens.slice(0, initialTokenCount)];
  }

  /**
   * Number of tokens at the end of `context` that are always processed, because their outputs are
   * needed.
   */
  get recomputedLength(): number {
    return Math.max(1, this.scoredTokens.length);
  }

  /**
   * Number of tokens at the end of `tokensToPrefill` that are processed after the others, so that
   * these are computed once for all sequences that begin with them.
   */
  get ownLength(): number {
    return this.sharesPrompt ? this.scoredTokens.length - 1 : 0;
  }

  /** The tokens to process before the first sampling step: forced tokens may follow the prompt. */
  get tokensToPrefill(): readonly number[] {
    return [...this.prompt, ...this.tokens];
  }

  /** The reason why the sequence is finished; undefined while it is not. */
  get finishReason(): FinishReason | undefined {
    const { request, tokens } = this;
    if (this.failure !== undefined) return "aborted";
    if (request === undefined) return this.rawLogProbs.length === this.scoredTokens.length ? "length" : undefined;
    const lastToken = tokens.at(-1);
    if (lastToken === undefined) return undefined;
    if (request.stopTokens.has(lastToken) || this.cursor?.isComplete === true) return "stop";
    if (request.shouldStop?.(tokens) === true) return "stop_string";
    return tokens.length >= request.maxNewTokens ? "length" : undefined;
  }

  /** Makes the tokens so far part of the context, and appends the forced ones. */
  start(): void {
    this.initialTokenCount = this.tokens.length;
    this.appendForcedTokens();
  }

  appendToken({
    token,
    logProb,
    rawLogProb,
    value,
    distribution,
    topLogProbs,
    keptTokens = this.cursor?.allowedTokens,
  }: SampledTokenWithState): void {
    const { request, cursor } = this;
    if (distribution !== undefined) request!.onDistribution!(distribution, value, this.tokens.length);
    if (keptTokens !== undefined) this.allowedTokenLists.push(keptTokens);
    cursor?.advance(token);
    this.tokens.push(token);
    this.logProbs.push(logProb);
    this.rawLogProbs.push(rawLogProb);
    this.values.push(value);
    if (request?.topLogProbs !== undefined) this.topLogProbs.push(topLogProbs ?? []);
    this.unprocessedTokens.push(token);
    request!.onToken?.(token);
  }

  /**
   * Appends tokens without running the model while exactly one is allowed, if the request asks for
   * it.
   */
  appendForcedTokens(): void {
    const { request, cursor } = this;
    if (cursor === undefined || request?.skipForcedTokens !== true) return;
    while (this.finishReason === undefined && cursor.allowedTokens.length === 1) {
      const { allowedTokens } = cursor;
      const isSampled = request.sampling.temperature > 0;
      // Sampling would consume one random number, and later tokens must not depend on whether the
      // model was run.
      if (isSampled) request.random();
      const distribution =
        isSampled && request.onDistribution !== undefined
          ? { ids: allowedTokens, probabilities: Float64Array.of(1), count: 1 }
          : undefined;
      this.appendToken({ token: allowedTokens[0], logProb: 0, rawLogProb: NaN, value: NaN, distribution });
    }
  }

  /** Returns a promise of the output, which `finish` or `reject` settles. */
  waitForOutput(): Promise<SampleOutput> {
    return new Promise((resolve, reject) => {
      this.settle = { resolve, reject };
    });
  }

  /**
   * Ends the sequence with an error of one of its callbacks, which must not end the others of its
   * batch.
   */
  fail(error: Error): void {
    this.failure = error;
  }

  finish(finishReason: FinishReason): void {
    if (this.failure !== undefined) this.reject(this.failure);
    else this.settle?.resolve(this.toOutput(finishReason));
  }

  reject(error: Error): void {
    this.settle?.reject(error);
  }

  toOutput(finishReason: FinishReason): SampleOutput {
    const { tokens, logProbs, rawLogProbs, values, cursor, allowedTokenLists, request, cachedTokens } = this;
    const isLimited = cursor !== undefined || request?.recordsKeptTokens === true;
    const allowedTokens = isLimited ? allowedTokenLists : undefined;
    const isWithout = request !== undefined && request.topLogProbs === undefined;
    const topLogProbs = isWithout ? undefined : this.topLogProbs;
    return { tokens, logProbs, rawLogProbs, values, allowedTokens, topLogProbs, cachedTokens, finishReason };
  }
}
