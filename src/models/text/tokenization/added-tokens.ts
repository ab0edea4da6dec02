import { type JsonObject, corruptFileError, isObject } from "./tokenizer-json.js";
import type { Normalizer } from "./normalizer.js";
import { escapeRegExp } from "./compile-pattern.js";

/** A token outside the model's vocabulary, matched in the text before anything else, such as <|im_end|>. */
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

/** Ascending positions of characters that belong to no special token, or all. */
export type LiteralPositions = readonly number[] | "all";

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

  /** Splits a text into sections. Special tokens that cover a literal position are text, as are all with "all". */
  split(text: string, literals: LiteralPositions = []): TextSection[] {
    if (!this.pattern) return text === "" ? [] : [{ start: 0, end: text.length, text, token: null }];
    const sections: TextSection[] = [];
    let last = 0;
    const addText = (start: number, end: number) => {
      if (end > start) sections.push({ start, end, text: text.slice(start, end), token: null });
    };
    for (const match of text.matchAll(this.pattern)) {
      const token = this.byContent.get(match[0]);
      let start = match.index;
      let end = start + match[0].length;
      if (!token || start < last || (token.singleWord && touchesWord(text, start, end))) continue;
      if (token.special && coversLiteral(literals, start, end)) continue;
      while (token.lstrip && start > last && whitespace.test(text[start - 1])) start--;
      while (token.rstrip && end < text.length && whitespace.test(text[end])) end++;
      addText(last, start);
      sections.push({ start, end, text: token.content, token });
      last = end;
    }
    addText(last, text.length);
    return sections;
  }
}

/** Whether a range covers one of the ascending positions. */
function coversLiteral(literals: LiteralPositions, start: number, end: number): boolean {
  if (literals === "all") return true;
  let low = 0;
  let high = literals.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (literals[middle] < start) low = middle + 1;
    else high = middle;
  }
  return low < literals.length && literals[low] < end;
}

function touchesWord(text: string, start: number, end: number): boolean {
  return wordBefore.test(text.slice(Math.max(0, start - 2), start)) || wordAfter.test(text.slice(end, end + 2));
}

export function readAddedTokens(tokenizerJson: JsonObject): AddedToken[] {
  const list = tokenizerJson.added_tokens ?? [];
  if (!Array.isArray(list)) throw corruptFileError('tokenizer.json: "added_tokens" must be a list.');
  return list.map((entry: unknown) => readAddedToken(entry, isObject(entry) ? entry.id : undefined));
}
