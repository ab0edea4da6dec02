import type { StreamDecoder, Tokenizer } from "../models/text/index.js";
import { StopStringMatcher } from "./stop-string-matcher.js";

export interface IncrementalDetokenizerOptions {
  readonly stop: readonly string[];
  /** Tokens that end the completion and are not part of its text. */
  readonly stopTokens: ReadonlySet<number>;
  /** Last token of the prompt, for a completion that continues the prompt's text. */
  readonly previousToken: number | undefined;
}

/**
 * Decodes a completion token by token, without special tokens and without a stop string and what
 * follows it.
 */
export class IncrementalDetokenizer {
  /** The text so far. */
  text = "";
  private readonly decoder: StreamDecoder;
  private readonly stopStrings: StopStringMatcher;
  private readonly stopTokens: ReadonlySet<number>;

  constructor(tokenizer: Tokenizer, { stop, stopTokens, previousToken }: IncrementalDetokenizerOptions) {
    this.decoder = tokenizer.createStreamDecoder({ skipSpecialTokens: true });
    this.stopStrings = new StopStringMatcher(stop);
    this.stopTokens = stopTokens;
    // After a first token the decoder keeps the next one's leading space.
    if (previousToken !== undefined) this.decoder.push(previousToken);
  }

  /** Whether the text contains a stop string. */
  get hasMatchedStopString(): boolean {
    return this.stopStrings.hasMatched;
  }

  /** Adds a token and returns the text that is now certain. */
  push(token: number): string {
    return this.stopTokens.has(token) ? "" : this.append(this.stopStrings.push(this.decoder.push(token)));
  }

  /** Returns the buffered text at the end of the completion. */
  flush(): string {
    return this.append(this.stopStrings.push(this.decoder.end()) + this.stopStrings.flush());
  }

  private append(piece: string): string {
    this.text += piece;
    return piece;
  }
}
