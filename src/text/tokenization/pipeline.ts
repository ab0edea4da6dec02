import { type AddedToken, AddedTokenSplitter, type Section } from "./added-tokens.js";
import { type JsonObject, corrupt, isObject } from "./json.js";
import { type TokenModel, createModel } from "./model.js";
import { type Normalizer, createNormalizer } from "./normalizer.js";
import { spellBytes } from "./byte-level.js";
import { type PreTokenizer, createPreTokenizer, endsInByteLevel } from "./pre-tokenizer.js";

/** A stretch of text with the ids of its tokens. */
export interface EncodedSection extends Section {
  readonly ids: readonly number[];
}

/** Where a text stands: the start of a sequence, after an added token, or in the middle of running text. */
export type TextPosition = "start" | "after-token" | "continued";

/** Text repeats itself: the ids of short pieces are kept, up to some megabytes. */
const longestCached = 64;
const cachedPieces = 50_000;

interface Stretches {
  readonly normalizer: Normalizer | null;
  readonly preTokenizer: PreTokenizer | null;
}

/**
 * The way of a text to ids, as Python's tokenizers goes it: added tokens are cut out, what lies between is normalized,
 * cut at the normalized added tokens, pre-tokenized and given to the model.
 */
export class EncodingPipeline {
  /** The normal form of a small part of the text, null when text stays as it is. For aligning tokens with text. */
  readonly normalizePart: Normalizer | null;
  private readonly model: TokenModel;
  private readonly spellsBytes: boolean;
  private readonly cache = new Map<string, readonly number[]>();
  private readonly rawTokens: AddedTokenSplitter;
  private readonly normalizedTokens: AddedTokenSplitter;
  private readonly fresh: Stretches;
  private readonly continued: Stretches;

  constructor(tokenizerJson: JsonObject, vocabulary: ReadonlyMap<string, number>, addedTokens: readonly AddedToken[]) {
    if (!isObject(tokenizerJson.model)) throw corrupt('tokenizer.json: there is no "model".');
    this.model = createModel(tokenizerJson.model, vocabulary);
    this.spellsBytes = endsInByteLevel(tokenizerJson.pre_tokenizer);
    const stretches = (prefix: boolean): Stretches => ({
      normalizer: createNormalizer(tokenizerJson.normalizer, { prefix }),
      preTokenizer: createPreTokenizer(tokenizerJson.pre_tokenizer, { prefix, spell: !this.spellsBytes }),
    });
    this.fresh = stretches(true);
    this.continued = stretches(false);
    this.normalizePart = createNormalizer(tokenizerJson.normalizer, { prefix: false, strip: false });
    this.rawTokens = new AddedTokenSplitter(addedTokens.filter((token) => !token.normalized));
    this.normalizedTokens = new AddedTokenSplitter(
      addedTokens.filter((token) => token.normalized),
      this.fresh.normalizer,
    );
  }

  /** The text's sections with their ids, without what a post-processor adds. */
  encode(text: string, position: TextPosition = "start"): EncodedSection[] {
    return this.rawTokens.split(wellFormed(text)).map((section, index) => ({
      ...section,
      ids: section.token ? [section.token.id] : this.encodePlain(section, position, index === 0),
    }));
  }

  private encodePlain(section: Section, position: TextPosition, first: boolean): number[] {
    const { normalizer, preTokenizer } = first && position === "continued" ? this.continued : this.fresh;
    const normalized = normalizer ? normalizer(section.text) : section.text;
    const ids: number[] = [];
    this.normalizedTokens.split(normalized).forEach((part, index) => {
      if (part.token) {
        ids.push(part.token.id);
        return;
      }
      const atStart = first && index === 0 && position === "start";
      for (const piece of preTokenizer ? preTokenizer(part.text, atStart) : [part.text]) {
        for (const id of this.encodePiece(piece)) ids.push(id);
      }
    });
    return ids;
  }

  private encodePiece(piece: string): readonly number[] {
    const cached = this.cache.get(piece);
    if (cached) return cached;
    const ids = this.model.encode(this.spellsBytes ? spellBytes(piece) : piece);
    if (piece.length <= longestCached) {
      if (this.cache.size >= cachedPieces) this.cache.clear();
      this.cache.set(piece, ids);
    }
    return ids;
  }
}

/** Half a surrogate pair is no character: it becomes U+FFFD, as everywhere where text is written as UTF-8. */
function wellFormed(text: string): string {
  return /[\ud800-\udfff]/.test(text) ? text.replace(/\p{Surrogate}/gu, "\ufffd") : text;
}
