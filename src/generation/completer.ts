import type { RandomStream } from "../core/random/random-stream.js";
import type { Tokenizer } from "../models/text/index.js";
import type { CompletionCache } from "./sampling/completion-cache.js";
import type { Completion } from "./completion.js";
import type { CompiledConstraint, TokenConstraint } from "./constraints/compiled-constraint.js";
import { IncrementalDetokenizer } from "./incremental-detokenizer.js";
import type { SampleRequest } from "./sampling/sample-request.js";
import type { TokenSampler } from "./policy-backend.js";

export interface CompletionRequest extends Pick<
  SampleRequest,
  | "prompt"
  | "sampling"
  | "maxNewTokens"
  | "skipForcedTokens"
  | "skipRawLogProbs"
  | "recordsKeptTokens"
  | "onDistribution"
  | "topLogProbs"
  | "signal"
> {
  readonly random: RandomStream;
  readonly stop: StopConditions;
  readonly constraint?: TokenConstraint & Pick<CompiledConstraint, "findChoice">;
  /** Whether the completion continues the prompt's text, instead of starting a text. */
  readonly isContinuation: boolean;
  /**
   * Distributions of earlier completions with the same parameters and sampling; only for a
   * temperature above 0.
   */
  readonly cache?: CompletionCache;
  /** Receives the text in pieces as soon as they are certain. */
  readonly onText?: (piece: string) => void;
}

export interface StopConditions {
  /**
   * Tokens that end an unconstrained completion and are not part of its text; a constraint decides
   * itself where it ends.
   */
  readonly tokens: ReadonlySet<number>;
  /** Strings that end the completion and are not part of its text. */
  readonly strings: readonly string[];
}

const NO_TOKENS: ReadonlySet<number> = new Set();

/**
 * Samples completions and their texts, and scores continuations: the one path from prompts to text.
 */
export class Completer {
  constructor(
    private readonly sampler: TokenSampler,
    /** Undefined for a model without one; completions then have no text. */
    private readonly tokenizer: Tokenizer | undefined,
  ) {}

  /** Samples a completion; requests made in the same turn of the event loop run as one batch. */
  async complete(request: CompletionRequest): Promise<Completion> {
    const { random, stop, isContinuation, cache, onText, ...rest } = request;
    const { prompt, constraint } = rest;
    const detokenizer =
      this.tokenizer &&
      new IncrementalDetokenizer(this.tokenizer, {
        stop: stop.strings,
        stopTokens: stop.tokens,
        previousToken: isContinuation ? prompt.at(-1) : undefined,
      });
    const sampleRequest: SampleRequest = {
      ...rest,
      random: () => random.random(),
      stopTokens: constraint === undefined ? stop.tokens : NO_TOKENS,
      stopStrings: stop.strings,
      shouldStop: () => detokenizer?.hasMatchedStopString === true,
      onToken: (token) => {
        const piece = detokenizer?.push(token);
        if (piece !== undefined) onText?.(piece);
      },
    };
    const output = await (cache === undefined
      ? this.sampler.sample(sampleRequest)
      : cache.sample(sampleRequest, this.sampler));
    const lastPiece = detokenizer?.flush();
    if (lastPiece !== undefined) onText?.(lastPiece);
    return {
      ...output,
      text: detokenizer?.text ?? "",
      promptTokens: prompt,
      choice: constraint?.findChoice?.(output.tokens),
    };
  }

  /**
   * Computes the log-probability of each token of each continuation, under the model at temperature
   * 1.
   */
  async score(
    prompt: readonly number[],
    continuations: readonly (readonly number[])[],
  ): Promise<(readonly number[])[]> {
    const options = { sharesPrompt: continuations.length > 1 };
    return Promise.all(continuations.map((continuation) => this.sampler.score(prompt, continuation, options)));
  }
}
