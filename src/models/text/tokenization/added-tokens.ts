import { type JsonRecord, corruptFileError, isObject } from "./tokenizer-json.js";
import type { Normalizer } from "./normalizer.js";
import { escapeRegExp } from "./compile-pattern.js";
import { WINDOW_LENGTH, findMatches } from "./text-windows.js";

/**
 * A token outside the model's vocabulary, matched in the text before anything else, such as
 * <|im_end|>.
 */
export interface AddedToken {
  readonly id: number;
  readonly content: string;
  /** Omitted when decoding without special tokens. */
  readonly special: boolean;
  /** Matched in the normalized instead of the raw text. */
  readonly normalized: boolean;
  /** Matches only where no word character is adjacent. */
  readonly singleWord: boolean;
  /** Includes whitespace before (`lstrip`) or after (`rstrip`) the match. */
  readonly lstrip: boolean;
  readonly rstrip: boolean;
}

/** Text between added tokens, or an added token; [start, end) are UTF-16 positions. */
export interface TextSection {
  readonly start: number;
  readonly end: number;
  readonly text: string;
  readonly token: AddedToken | null;
}

/** Whether the characters of a range may be a special token. */
export type SpecialTokenFilter = (start: number, end: number) => boolean;

const wordBefore = /[\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\p{Join_Control}]$/u;
const wordAfter = /^[\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\p{Join_Control}]/u;
const whitespace = /\p{White_Space}/u;

/** Parses an added token of tokenizer.json, added_tokens_decoder or tokenizer_config.json. */
export function readAddedToken(entry: unknown, id: unknown): AddedToken {
  if (!isObject(entry) || typeof entry.content !== "string" || !Number.isSafeInteger(id) || Number(id) < 0)
    throw corruptFileError(`tokenizer.json: the added token ${JSON.stringify(entry)} needs an id and a content.`);
  const special = entry.special === true;
  return {
    id: Number(id),
    content: entry.content,
    special,
    normalized: typeof entry.normalized === "boolean" ? entry.normalized : !special,
    singleWord: entry.single_word === true,
    lstrip: entry.lstrip === true,
    rstrip: entry.rstrip === true,
  };
}

/** Matches added tokens: the longest at each position, without overlaps. */
export class AddedTokenSplitter {
  private readonly pattern: RegExp | null;
  private readonly byContent = new Map<string, AddedToken>();

  constructor(tokens: readonly AddedToken[], normalizer: Normalizer | null = null) {
    for (const token of tokens) {
      const content = normalizer ? normalizer(token.content) : token.content;
      if (content !== "") this.byContent.set(content, token);
    }
    const contents = Array.from(this.byContent.keys()).sort((a, b) => b.length - a.length);
    this.pattern = contents.length > 0 ? new RegExp(contents.map(escapeRegExp).join("|"), "gu") : null;
  }

  /** Splits a text into sections; null where the caller can pause. */
  *split(text: string, isSpecialAllowed: SpecialTokenFilter = () => true): Generator<TextSection | null> {
    let last = 0;
    for (const match of this.pattern ? findMatches(text, this.pattern) : []) {
      if (match === null) {
        yield null;
        continue;
      }
      let [start, end] = match;
      const token = this.byContent.get(text.slice(start, end));
      if (!token || start < last || (token.singleWord && touchesWord(text, start, end))) continue;
      if (token.special && !isSpecialAllowed(start, end)) continue;
      if (token.lstrip) start = Math.max(last, yield* skipWhitespace(text, start, -1));
      if (token.rstrip) end = yield* skipWhitespace(text, end, 1);
      if (start > last) yield { start: last, end: start, text: text.slice(last, start), token: null };
      yield { start, end, text: token.content, token };
      last = end;
    }
    if (last < text.length) yield { start: last, end: text.length, text: text.slice(last), token: null };
  }
}

/** Returns the end of the whitespace after a position, or its start before the position. */
function* skipWhitespace(text: string, position: number, direction: 1 | -1): Generator<null, number> {
  const offset = direction === 1 ? 0 : -1;
  let end = position;
  while (whitespace.test(text[end + offset] ?? "")) {
    end += direction;
    if (end % WINDOW_LENGTH === 0) yield null;
  }
  return end;
}

function touchesWord(text: string, start: number, end: number): boolean {
  return wordBefore.test(text.slice(Math.max(0, start - 2), start)) || wordAfter.test(text.slice(end, end + 2));
}

export function readAddedTokens(tokenizerJson: JsonRecord): AddedToken[] {
  const list = tokenizerJson.added_tokens ?? [];
  if (!Array.isArray(list)) throw corruptFileError('tokenizer.json: "added_tokens" must be a list.');
  return list.map((entry: unknown) => readAddedToken(entry, isObject(entry) ? entry.id : undefined));
}
