import { type AddedToken, AddedTokenSplitter, type LiteralPositions, type TextSection } from "./added-tokens.js";
import { insertMarks, removeMarks, unusedNoncharacters } from "../rendered-text.js";
import { type JsonObject, corruptFileError, isObject } from "./tokenizer-json.js";
import { type TokenModel, createModel } from "./token-model.js";
import { type Normalizer, createNormalizer } from "./normalizer.js";
import { encodeBytes } from "./byte-level.js";
import { type PreTokenizer, createPreTokenizer, endsWithByteLevel } from "./pre-tokenizer.js";

/** A section of text with its token ids. */
export interface EncodedSection extends TextSection {
  readonly ids: readonly number[];
}

/** Position of a text: start of a sequence, after an added token, or continuing other text. */
export type TextPosition = "start" | "after-token" | "continuation";

/** Ids of short pieces are cached, up to a few megabytes. */
const MAX_CACHED_LENGTH = 64;
const MAX_CACHED_PIECES = 50_000;

interface TextPreprocessing {
  readonly normalizer: Normalizer | null;
  readonly preTokenizer: PreTokenizer | null;
}

/**
 * Encodes text like Python's tokenizers: splits at added tokens, normalizes, splits at normalized
 * added tokens, pre-tokenizes and applies the model.
 */
export class EncodingPipeline {
  /** Normalizes a small part of a text, for aligning tokens; null if text is unchanged. */
  readonly normalizePart: Normalizer | null;
  private readonly model: TokenModel;
  private readonly encodesBytes: boolean;
  private readonly cache = new Map<string, readonly number[]>();
  private readonly rawTokenSplitter: AddedTokenSplitter;
  private readonly normalizedTokenSplitter: AddedTokenSplitter;
  private readonly specialContents: ReadonlyMap<number, string>;
  private readonly hasNormalizedSpecial: boolean;
  private readonly startPreprocessing: TextPreprocessing;
  private readonly continuationPreprocessing: TextPreprocessing;

  constructor(tokenizerJson: JsonObject, vocabulary: ReadonlyMap<string, number>, addedTokens: readonly AddedToken[]) {
    if (!isObject(tokenizerJson.model)) throw corruptFileError('tokenizer.json: there is no "model".');
    this.model = createModel(tokenizerJson.model, vocabulary);
    this.encodesBytes = endsWithByteLevel(tokenizerJson.pre_tokenizer);
    const createPreprocessing = (prefix: boolean): TextPreprocessing => ({
      normalizer: createNormalizer(tokenizerJson.normalizer, { prefix }),
      preTokenizer: createPreTokenizer(tokenizerJson.pre_tokenizer, { prefix, spell: !this.encodesBytes }),
    });
    this.startPreprocessing = createPreprocessing(true);
    this.continuationPreprocessing = createPreprocessing(false);
    this.normalizePart = createNormalizer(tokenizerJson.normalizer, { prefix: false, strip: false });
    this.rawTokenSplitter = new AddedTokenSplitter(addedTokens.filter((token) => !token.normalized));
    this.specialContents = new Map(
      addedTokens.filter(({ special }) => special).map(({ id, content }) => [id, content]),
    );
    this.hasNormalizedSpecial = addedTokens.some((token) => token.normalized && token.special);
    this.normalizedTokenSplitter = new AddedTokenSplitter(
      addedTokens.filter((token) => token.normalized),
      this.startPreprocessing.normalizer,
    );
  }

  /** Encodes the sections of a text, without the post-processor; `literals` belong to no special token. */
  encode(text: string, position: TextPosition = "start", literals: LiteralPositions = []): EncodedSection[] {
    return this.rawTokenSplitter.split(toWellFormed(text), literals).map((section, index) => ({
      ...section,
      ids: section.token ? [section.token.id] : this.encodePlain(section, position, index === 0, literals),
    }));
  }

  private encodePlain(
    section: TextSection,
    position: TextPosition,
    isFirst: boolean,
    literals: LiteralPositions,
  ): number[] {
    const { normalizer, preTokenizer } =
      isFirst && position === "continuation" ? this.continuationPreprocessing : this.startPreprocessing;
    const normalized = normalizeSection(section, normalizer, this.hasNormalizedSpecial ? literals : []);
    const ids: number[] = [];
    this.normalizedTokenSplitter.split(normalized.text, normalized.literals).forEach((part, index) => {
      if (part.token) {
        ids.push(part.token.id);
        return;
      }
      const atStart = isFirst && index === 0 && position === "start";
      for (const piece of preTokenizer ? preTokenizer(part.text, atStart) : [part.text]) {
        for (const id of this.encodePiece(piece)) ids.push(id);
      }
    });
    return ids;
  }

  private encodePiece(piece: string): readonly number[] {
    const cached = this.cache.get(piece);
    if (cached) return cached;
    const ids = this.encodeText(piece);
    if (piece.length <= MAX_CACHED_LENGTH) {
      if (this.cache.size >= MAX_CACHED_PIECES) this.cache.clear();
      this.cache.set(piece, ids);
    }
    return ids;
  }

  /**
   * Encodes a piece as text. Some vocabularies contain special tokens, which would be found in split text too; as in
   * SentencePiece, text never becomes one.
   */
  private encodeText(piece: string): readonly number[] {
    const ids = this.model.encode(this.encodesBytes ? encodeBytes(piece) : piece);
    for (const id of ids) {
      const content = this.specialContents.get(id);
      const index = content === undefined || content === "" ? -1 : piece.indexOf(content);
      if (index < 0) continue;
      const [first] = content!;
      const middle = index + first.length;
      // A single character can only be the token.
      if (content === first) continue;
      return [...this.encodeText(piece.slice(0, middle)), ...this.encodeText(piece.slice(middle))];
    }
    return ids;
  }
}

/** Normalizes a section, whose literal positions marks follow through the normalizer. */
function normalizeSection(
  { text, start, end }: TextSection,
  normalizer: Normalizer | null,
  literals: LiteralPositions,
): { text: string; literals: LiteralPositions } {
  const normalize = (part: string) => (normalizer ? normalizer(part) : part);
  if (literals === "all") return { text: normalize(text), literals };
  const inside = literals.filter((position) => position >= start && position < end);
  const [mark] = inside.length === 0 ? [] : unusedNoncharacters([text]);
  // A section with all noncharacters has no special tokens then.
  if (mark === undefined) return { text: normalize(text), literals: inside.length === 0 ? [] : "all" };
  const marked = insertMarks({ text, literals: inside.map((position) => position - start) }, mark);
  const { literals: positions } = removeMarks(normalize(marked), new RegExp(mark, "g"));
  return { text: normalize(text), literals: positions };
}

/** Unpaired surrogates become U+FFFD, as in UTF-8. */
function toWellFormed(text: string): string {
  return /[\ud800-\udfff]/.test(text) ? text.replace(/\p{Surrogate}/gu, "\ufffd") : text;
}
