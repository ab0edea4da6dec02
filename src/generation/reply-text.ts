import type { StreamDecoder, Tokenizer } from "../text/index.js";
import { StopStrings } from "./stop-strings.js";

export interface ReplyTextOptions {
  readonly stop: readonly string[];
  /** Tokens that end the reply; they are no text. */
  readonly stopTokens: ReadonlySet<number>;
  /** The prompt's last token, for a reply that goes on with the prompt's text. */
  readonly continuedFrom: number | undefined;
}

/** The text of a reply as its tokens come, without special tokens and what a stop string cuts off. */
export class ReplyText {
  /** All text so far. */
  text = "";
  private readonly decoder: StreamDecoder;
  private readonly stops: StopStrings;
  private readonly stopTokens: ReadonlySet<number>;

  constructor(tokenizer: Tokenizer, { stop, stopTokens, continuedFrom }: ReplyTextOptions) {
    this.decoder = tokenizer.createStreamDecoder({ skipSpecialTokens: true });
    this.stops = new StopStrings(stop);
    this.stopTokens = stopTokens;
    // A decoder that has seen a token before does not take the next one's space for the start of a text.
    if (continuedFrom !== undefined) this.decoder.push(continuedFrom);
  }

  /** Whether a stop string has come. */
  get stopped(): boolean {
    return this.stops.stopped;
  }

  /** Takes the next token and gives the text that is now certain. */
  push(token: number): string {
    return this.stopTokens.has(token) ? "" : this.add(this.stops.push(this.decoder.push(token)));
  }

  /** Gives the text that was held back; the reply is over. */
  end(): string {
    return this.add(this.stops.push(this.decoder.end()) + this.stops.end());
  }

  private add(piece: string): string {
    this.text += piece;
    return piece;
  }
}
