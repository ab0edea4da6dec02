import type { Tokenizer } from "../models/text/index.js";

/** Tokens of another vocabulary for the same text. */
export interface TranslatedTokens {
  /** At least one token: where the vocabulary differs, an end token comes first. */
  readonly tokens: readonly number[];
  /** Returns how many of them are within the text of the first `count` original tokens. */
  readonly lengthOf: (count: number) => number;
}

/** Whether tokenizers have the same vocabulary, by pairs of tokenizers. */
const sameVocabulary = new WeakMap<Tokenizer, WeakMap<Tokenizer, boolean>>();

/** Returns tokens in the vocabulary of another tokenizer, through their text if it differs. */
export function translateTokens(tokens: readonly number[], from: Tokenizer, to: Tokenizer): TranslatedTokens {
  if (hasSameVocabulary(from, to) && tokens.length > 0) return { tokens, lengthOf: (count) => count };
  const decoder = from.createStreamDecoder();
  let text = "";
  const textLengths = [0];
  for (const token of tokens) {
    text += decoder.push(token);
    textLengths.push(text.length);
  }
  text += decoder.end();
  textLengths[tokens.length] = text.length;
  const { ids, offsets } = to.encodeWithOffsets(text);
  const lengthOf = (count: number) => {
    const end = offsets.findIndex(([, tokenEnd]) => tokenEnd > textLengths[count]);
    return 1 + (end === -1 ? ids.length : end);
  };
  return { tokens: [to.eosTokenId ?? 0, ...ids], lengthOf };
}

function hasSameVocabulary(a: Tokenizer, b: Tokenizer): boolean {
  if (a === b) return true;
  if (a.vocabSize !== b.vocabSize) return false;
  const known = sameVocabulary.get(a) ?? new WeakMap<Tokenizer, boolean>();
  sameVocabulary.set(a, known);
  const found = known.get(b);
  if (found !== undefined) return found;
  const isSame = Array.from({ length: a.vocabSize }, (_, id) => a.idToToken(id) === b.idToToken(id)).every(Boolean);
  known.set(b, isSame);
  return isSame;
}
