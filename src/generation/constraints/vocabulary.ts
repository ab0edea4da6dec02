import { decodeLatin1, encodeUtf8 } from "../../core/bytes.js";
import { LlamaGymError } from "../../core/errors.js";
import type { Tokenizer } from "../../models/text/index.js";
import { type VocabularyToken, TokenTrie } from "./token-trie.js";

/** Whether a completion starts a text or continues the prompt's. */
export type TextStart = "start" | "continuation";

/** Longer tokens, which no published vocabulary has, are not used in constrained completions. */
const MAX_TOKEN_BYTES = 4_096;

export interface VocabularyOptions {
  /** Rows of the model's embedding, which may be more or fewer than the tokenizer's tokens. */
  readonly vocabSize: number;
  /** The token that ends a constrained completion; undefined if the model has none. */
  readonly endToken: number | undefined;
  /** All tokens that end a completion; they have no text. */
  readonly endTokens: readonly number[];
}

export class TokenBytes {
  readonly trie: TokenTrie;
  /** Tokens without bytes. */
  readonly emptyTokens: readonly number[];
  private readonly bytesById: (Uint8Array | undefined)[] = [];

  constructor(tokens: readonly VocabularyToken[]) {
    for (const { id, bytes } of tokens) this.bytesById[id] = bytes;
    this.trie = new TokenTrie(tokens.filter(({ bytes }) => bytes.length > 0));
    this.emptyTokens = tokens.filter(({ bytes }) => bytes.length === 0).map(({ id }) => id);
  }

  /** Returns the bytes of a token; undefined for a token that is not text. */
  bytes(id: number): Uint8Array | undefined {
    return this.bytesById[id];
  }
}

/** The bytes of a model's tokens, for constraints on text. Special tokens have none. */
export class Vocabulary {
  readonly tokenBytes: TokenBytes;
  readonly endToken: number | undefined;
  readonly size: number;
  private readonly tokens: VocabularyToken[] = [];
  private startTokenBytes: TokenBytes | undefined;

  /**
   * @throws TOKENIZER_UNSUPPORTED if the text of tokens is not the concatenation of their bytes.
   */
  constructor(
    private readonly tokenizer: Tokenizer,
    { vocabSize, endToken, endTokens }: VocabularyOptions,
  ) {
    this.size = vocabSize;
    this.endToken = endToken;
    for (let id = 0; id < vocabSize; id++) {
      if (tokenizer.isSpecial(id) || id === endToken || endTokens.includes(id)) continue;
      const bytes = tokenizer.tokenBytes(id);
      if (bytes.length > 0 && bytes.length <= MAX_TOKEN_BYTES) this.tokens.push({ id, bytes });
    }
    checkConcatenable(tokenizer, this.tokens);
    this.tokenBytes = new TokenBytes(this.tokens);
  }

  /**
   * Returns whether a completion after a token starts a text: after a special token, as in a chat,
   * or without a prompt.
   */
  textStartAfter(previousToken: number | undefined): TextStart {
    return previousToken === undefined || this.tokenizer.isSpecial(previousToken) ? "start" : "continuation";
  }

  /** Tokenizes a text that follows a token, without special tokens. */
  encode(text: string, previousToken: number | undefined): number[] {
    return this.tokenizer.encodeContinuation(text, previousToken, {
      splitSpecialTokens: this.tokenizer.splitSpecialTokens,
    });
  }

  /** Returns the first token of a text that starts a completion, or is inside of one. */
  firstToken(text: string, start: TextStart): number {
    return this.encode(text, start === "start" ? undefined : this.tokens[0].id)[0];
  }

  /**
   * Returns the bytes that tokens have at the start of a completion; some tokenizers drop a space
   * at the start of a text.
   */
  firstTokenBytes(start: TextStart): TokenBytes {
    return start === "continuation" ? this.tokenBytes : (this.startTokenBytes ??= this.computeStartTokenBytes());
  }

  private computeStartTokenBytes(): TokenBytes {
    const { tokenizer, tokens } = this;
    const spacedToken = tokens.find(({ bytes }) => /^ [a-z]+$/i.test(decodeLatin1(bytes)));
    if (spacedToken === undefined || tokenizer.decode([spacedToken.id]).startsWith(" ")) return this.tokenBytes;
    // Only tokens with a space can lose one; the others include parts of characters, which cannot
    // be decoded alone.
    const startTokens = tokens.map(({ id, bytes }) => ({
      id,
      bytes: bytes.includes(SPACE) ? encodeUtf8(tokenizer.decode([id])) : bytes,
    }));
    return new TokenBytes(startTokens);
  }
}

const SPACE = 0x20;

function checkConcatenable(tokenizer: Tokenizer, tokens: readonly VocabularyToken[]): void {
  const [a, b] = tokens.filter(({ bytes }) => /^[a-z]+$/i.test(decodeLatin1(bytes)));
  if (a === undefined || b === undefined) return;
  if (tokenizer.decode([a.id, b.id]) === decodeLatin1(a.bytes) + decodeLatin1(b.bytes)) return;
  throw new LlamaGymError(
    "TOKENIZER_UNSUPPORTED",
    `The tokenizer ${tokenizer.name} inserts text between tokens, which patterns do not support. Use choices.`,
  );
}
