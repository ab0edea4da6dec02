import type { Steps } from "../../../core/steps.js";
import { type AddedToken, AddedTokenSplitter, type SpecialTokenFilter, type TextSection } from "./added-tokens.js";
import { insertMarks, removeMarks, unusedNoncharacters } from "../rendered-text.js";
import { type JsonRecord, corruptFileError, isObject } from "./tokenizer-json.js";
import { type TokenModel, createModel } from "./token-model.js";
import { type Normalizer, type NormalizerSteps, createNormalizer, createNormalizerSteps } from "./normalizer.js";
import { encodeBytes } from "./byte-level.js";
import { type PreTokenizer, createPreTokenizer, endsWithByteLevel } from "./pre-tokenizer.js";
import { cutPiece } from "./text-windows.js";

/** A section of text with its token ids. */
export interface EncodedSection extends TextSection {
  readonly ids: readonly number[];
}

/** Position of a text: start of a sequence, after an added token, or continuing other text. */
export type TextPosition = "start" | "after-token" | "continuation";

/** Ascending positions of characters that belong to no special token, or all. */
type LiteralPositions = readonly number[] | "all";

/** Ids of short pieces are cached, up to a few megabytes. */
const MAX_CACHED_LENGTH = 64;
const MAX_CACHED_PIECES = 50_000;

/** Characters after which encoding can pause. */
const CHARACTERS_PER_STEP = 4096;

/** Ids after which joining them can pause. */
const IDS_PER_STEP = 65_536;

interface TextPreprocessing {
  readonly normalize: NormalizerSteps | null;
  readonly preTokenizer: PreTokenizer | null;
}

/**
 * Encodes text like Python's tokenizers: splits at added tokens, normalizes, splits at normalized
 * added tokens, pre-tokenizes and applies the model. Works in steps, between which callers can
 * pause.
 */
export class EncodingPipeline {
  /** Normalizes a small part of a text, for aligning tokens; null if text is unchanged. */
  readonly normalizePart: Normalizer | null;
  private readonly model: TokenModel;
  private readonly encodesBytes: boolean;
  private readonly cache = new Map<string, readonly number[]>();
  private readonly rawTokenSplitter: AddedTokenSplitter;
  private readonly normalizedTokenSplitter: AddedTokenSplitter;
  /**
   * Finds special tokens that are matched in normalized text, as they are written; null if there
   * are none.
   */
  private readonly writtenTokenSplitter: AddedTokenSplitter | null;
  private readonly startPreprocessing: TextPreprocessing;
  private readonly continuationPreprocessing: TextPreprocessing;

  constructor(tokenizerJson: JsonRecord, vocabulary: ReadonlyMap<string, number>, addedTokens: readonly AddedToken[]) {
    if (!isObject(tokenizerJson.model)) throw corruptFileError('tokenizer.json: there is no "model".');
    // A single character can only be the token.
    const controlIds = new Set(
      addedTokens.filter(({ special, content }) => special && Array.from(content).length > 1).map(({ id }) => id),
    );
    this.model = createModel(tokenizerJson.model, vocabulary, (id) => controlIds.has(id));
    this.encodesBytes = endsWithByteLevel(tokenizerJson.pre_tokenizer);
    const createPreprocessing = (prefix: boolean): TextPreprocessing => ({
      normalize: createNormalizerSteps(tokenizerJson.normalizer, { prefix }),
      preTokenizer: createPreTokenizer(tokenizerJson.pre_tokenizer, { prefix, spell: !this.encodesBytes }),
    });
    this.startPreprocessing = createPreprocessing(true);
    this.continuationPreprocessing = createPreprocessing(false);
    this.normalizePart = createNormalizer(tokenizerJson.normalizer, { prefix: false, strip: false });
    this.rawTokenSplitter = new AddedTokenSplitter(addedTokens.filter((token) => !token.normalized));
    const normalizedSpecial = addedTokens.filter((token) => token.normalized && token.special);
    this.writtenTokenSplitter = normalizedSpecial.length === 0 ? null : new AddedTokenSplitter(normalizedSpecial);
    this.normalizedTokenSplitter = new AddedTokenSplitter(
      addedTokens.filter((token) => token.normalized),
      createNormalizer(tokenizerJson.normalizer),
    );
  }

  /**
   * Encodes the sections of a text, without the post-processor. With `literals`, special tokens are
   * found only as they are written, where they cover no literal position. Ends early after more
   * than `maxIds` ids.
   */
  *encode(
    text: string,
    position: TextPosition = "start",
    literals?: LiteralPositions,
    maxIds = Infinity,
  ): Steps<EncodedSection[]> {
    const sections: EncodedSection[] = [];
    let count = 0;
    for (const section of this.rawTokenSplitter.split(text.toWellFormed(), allowOutside(literals))) {
      yield;
      if (section === null) continue;
      const ids = section.token
        ? [section.token.id]
        : yield* this.encodePlain(section, position, sections.length === 0, literals, maxIds - count);
      sections.push({ ...section, ids });
      count += ids.length;
      if (count > maxIds) break;
    }
    return sections;
  }

  private *encodePlain(
    section: TextSection,
    position: TextPosition,
    isFirst: boolean,
    literals: LiteralPositions | undefined,
    maxIds: number,
  ): Steps<number[]> {
    const { normalize, preTokenizer } =
      isFirst && position === "continuation" ? this.continuationPreprocessing : this.startPreprocessing;
    const normalized = yield* this.normalizeSection(section, normalize, literals);
    const ids: number[] = [];
    let atStart = isFirst && position === "start";
    let encodedLength = 0;
    for (const part of this.normalizedTokenSplitter.split(normalized.text, normalized.isSpecialAllowed)) {
      yield;
      if (part === null) continue;
      if (part.token) ids.push(part.token.id);
      else {
        for (const piece of preTokenizer ? preTokenizer(part.text, atStart) : [part.text]) {
          if (piece === "") yield;
          for (const shortPiece of cutPiece(piece)) {
            for (const id of this.encodePiece(shortPiece)) ids.push(id);
            if (ids.length > maxIds) return ids;
            encodedLength += shortPiece.length;
            if (encodedLength < CHARACTERS_PER_STEP) continue;
            encodedLength = 0;
            yield;
          }
        }
      }
      atStart = false;
    }
    return ids;
  }

  /**
   * Normalizes a section. Marks follow the special tokens that are written in it through the
   * normalizer.
   */
  private *normalizeSection(
    { text, start }: TextSection,
    normalize: NormalizerSteps | null,
    literals: LiteralPositions | undefined,
  ): Steps<{ text: string; isSpecialAllowed?: SpecialTokenFilter }> {
    if (literals === undefined || this.writtenTokenSplitter === null)
      return { text: normalize ? yield* normalize(text) : text };
    const allowed = allowOutside(literals);
    const written: number[] = [];
    const isAllowed: SpecialTokenFilter = (first, end) => allowed(start + first, start + end);
    for (const section of this.writtenTokenSplitter.split(text, isAllowed)) {
      yield;
      if (section?.token) written.push(text.indexOf(section.token.content, section.start));
    }
    const [mark] = written.length === 0 ? [] : unusedNoncharacters([text]);
    if (mark === undefined) return { text: normalize ? yield* normalize(text) : text, isSpecialAllowed: () => false };
    const marked = insertMarks(text, written, mark);
    const normalized = removeMarks(normalize ? yield* normalize(marked) : marked, mark);
    return { text: normalized.text, isSpecialAllowed: (first, end) => covers(normalized.positions, first, end) };
  }

  private encodePiece(piece: string): readonly number[] {
    const cached = this.cache.get(piece);
    if (cached) return cached;
    const ids = this.model.encode(this.encodesBytes ? encodeBytes(piece) : piece);
    if (piece.length <= MAX_CACHED_LENGTH) {
      if (this.cache.size >= MAX_CACHED_PIECES) this.cache.clear();
      this.cache.set(piece, ids);
    }
    return ids;
  }
}

/** Returns the ids of all sections. */
export function* joinIds(sections: readonly EncodedSection[]): Steps<number[]> {
  const ids: number[] = [];
  for (const section of sections) {
    for (const id of section.ids) {
      ids.push(id);
      if (ids.length % IDS_PER_STEP === 0) yield;
    }
  }
  return ids;
}

/** Allows special tokens that cover no literal position. */
function allowOutside(literals: LiteralPositions | undefined): SpecialTokenFilter {
  if (literals === undefined) return () => true;
  return literals === "all" ? () => false : (start, end) => !covers(literals, start, end);
}

/** Whether a range covers one of the ascending positions. */
function covers(positions: readonly number[], start: number, end: number): boolean {
  let low = 0;
  let high = positions.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (positions[middle] < start) low = middle + 1;
    else high = middle;
  }
  return low < positions.length && positions[low] < end;
}
