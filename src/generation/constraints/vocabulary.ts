import { LlamaGymError } from "../../core/errors.js";
import type { Tokenizer } from "../../models/text/index.js";
import { type VocabularyToken, TokenTrie } from "./token-trie.js";

/** Whether a reply starts a text of its own, or goes on with its prompt's. */
export type TextStart = "fresh" | "continued";

export interface VocabularyOptions {
  /** Rows of the model's embedding: it may have more than the tokenizer has tokens, or fewer. */
  readonly vocabSize: number;
  /** The token that ends a constrained reply; undefined where the model has none. */
  readonly endToken: number | undefined;
  /** All tokens that end a reply; they write nothing. */
  readonly endTokens: readonly number[];
}

/** What tokens write. */
export class TokenBytes {
  readonly trie: TokenTrie;
  /** Tokens that write nothing. */
  readonly emptyTokens: readonly number[];
  private readonly bytesById: (Uint8Array | undefined)[] = [];

  constructor(tokens: readonly VocabularyToken[]) {
    for (const { id, bytes } of tokens) this.bytesById[id] = bytes;
    this.trie = new TokenTrie(tokens.filter(({ bytes }) => bytes.length > 0));
    this.emptyTokens = tokens.filter(({ bytes }) => bytes.length === 0).map(({ id }) => id);
  }

  /** The bytes that a token writes; undefined for one that is no text. */
  bytes(id: number): Uint8Array | undefined {
    return this.bytesById[id];
  }
}

/** What a model's tokens write, for constraints on text. Special tokens are no text. */
export class Vocabulary {
  readonly tokenBytes: TokenBytes;
  readonly endToken: number | undefined;
  readonly size: number;
  private readonly tokens: VocabularyToken[] = [];
  private startTokenBytes: TokenBytes | undefined;

  /** Throws TOKENIZER_UNSUPPORTED for a tokenizer whose text is not its tokens' bytes, joined. */
  constructor(
    private readonly tokenizer: Tokenizer,
    { vocabSize, endToken, endTokens }: VocabularyOptions,
  ) {
    this.size = vocabSize;
    this.endToken = endToken;
    for (let id = 0; id < vocabSize; id++) {
      if (tokenizer.isSpecial(id) || id === endToken || endTokens.includes(id)) continue;
      const bytes = tokenizer.tokenBytes(id);
      if (bytes.length > 0) this.tokens.push({ id, bytes });
    }
    checkConcatenable(tokenizer, this.tokens);
    this.tokenBytes = new TokenBytes(this.tokens);
  }

  /** What a reply's first token writes: some tokenizers drop a space at the start of a text. */
  firstTokenBytes(start: TextStart): TokenBytes {
    return start === "continued" ? this.tokenBytes : (this.startTokenBytes ??= this.computeStartTokenBytes());
  }

  private computeStartTokenBytes(): TokenBytes {
    const { tokenizer, tokens } = this;
    const spacedToken = tokens.find(({ bytes }) => /^ [a-z]+$/i.test(toLatin1(bytes)));
    if (spacedToken === undefined || tokenizer.decode([spacedToken.id]).startsWith(" ")) return this.tokenBytes;
    // Only tokens with a space can lose one; the others include pieces of characters, which have no text.
    const startTokens = tokens.map(({ id, bytes }) => ({
      id,
      bytes: bytes.includes(SPACE) ? Buffer.from(tokenizer.decode([id])) : bytes,
    }));
    return new TokenBytes(startTokens);
  }
}

const SPACE = 0x20;

const toLatin1 = (bytes: Uint8Array) => Buffer.from(bytes).toString("latin1");

function checkConcatenable(tokenizer: Tokenizer, tokens: readonly VocabularyToken[]): void {
  const [a, b] = tokens.filter(({ bytes }) => /^[a-z]+$/i.test(toLatin1(bytes)));
  if (a === undefined || b === undefined) return;
  if (tokenizer.decode([a.id, b.id]) === toLatin1(a.bytes) + toLatin1(b.bytes)) return;
  throw new LlamaGymError(
    "TOKENIZER_UNSUPPORTED",
    `The tokenizer ${tokenizer.name} puts text between its tokens, so a reply cannot be held to an expression. Use choices.`,
  );
}
