import type { StreamDecoder, Tokenizer } from "../models/text/index.js";
import { StopStringMatcher } from "./stop-string-matcher.js";

export interface IncrementalDetokenizerOptions {
  readonly stop: readonly string[];
  /** Tokens that end the reply; they are no text. */
  readonly stopTokens: ReadonlySet<number>;
  /** The prompt's last token, for a reply that goes on with the prompt's text. */
  readonly previousToken: number | undefined;
}

/** The text of a reply as its tokens come, without special tokens and what a stop string cuts off. */
export class IncrementalDetokenizer {
  /** All text so far. */
  text = "";
  private readonly decoder: StreamDecoder;
  private readonly stopStrings: StopStringMatcher;
  private readonly stopTokens: ReadonlySet<number>;

  constructor(tokenizer: Tokenizer, { stop, stopTokens, previousToken }: IncrementalDetokenizerOptions) {
    this.decoder = tokenizer.createStreamDecoder({ skipSpecialTokens: true });
    this.stopStrings = new StopStringMatcher(stop);
    this.stopTokens = stopTokens;
    // A decoder that has seen a token before does not take the next one's space for the start of a text.
    if (previousToken !== undefined) this.decoder.push(previousToken);
  }

  /** Whether a stop string has come. */
  get hasMatchedStopString(): boolean {
    return this.stopStrings.hasMatched;
  }

  /** Takes the next token and gives the text that is now certain. */
  push(token: number): string {
    return this.stopTokens.has(token) ? "" : this.append(this.stopStrings.push(this.decoder.push(token)));
  }

  /** Gives the text that was held back; the reply is over. */
  flush(): string {
    return this.append(this.stopStrings.push(this.decoder.end()) + this.stopStrings.flush());
  }

  private append(piece: string): string {
    this.text += piece;
    return piece;
  }
}
