import { encodeBytes } from "../../src/models/text/tokenization/byte-level.js";
import type { TokenizerFiles } from "../../src/engine.js";
import { trainBytePairs, mergePair, type BytePairs } from "./byte-pairs.js";

/**
 * Tokens that no text contains by accident: padding, one mark for each role, one end. Their ids are
 * their places.
 */
const SPECIAL_TOKENS = ["<|pad|>", "<|system|>", "<|user|>", "<|assistant|>", "<|end|>"] as const;

export const PAD_TOKEN_ID = 0;
export const END_TOKEN_ID = 4;

/** A role's mark, the content, the end: turns that are appended leave those before as they were. */
const CHAT_TEMPLATE =
  "{% for message in messages %}{{ '<|' + message['role'] + '|>' }}" +
  "{% if message['role'] == 'assistant' %}{% generation %}{{ message['content'] + '<|end|>' }}{% endgeneration %}" +
  "{% else %}{{ message['content'] + '<|end|>' }}{% endif %}{% endfor %}" +
  "{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}";

/** A digit, a word with the space before it, a sign with the space before it, other white space. */
const PIECES = String.raw`\p{N}| ?\p{L}+| ?[^\s\p{L}\p{N}]|\s+(?!\S)|\s`;
const pieces = new RegExp(PIECES, "gu");

export interface TokenizerSize {
  /** All tokens. */
  readonly vocabSize: number;
  /** Parts of words that rare words are spelled with; the rest of the vocabulary is whole words. */
  readonly merges: number;
}

/**
 * A byte-level tokenizer for a kind of text: its most useful words are tokens, every other word is
 * spelled with byte pairs, digits stand alone. Gives tokenizer.json, tokenizer_config.json and the
 * chat template.
 */
export function trainTokenizer(texts: Iterable<string>, { vocabSize, merges }: TokenizerSize): TokenizerFiles {
  const counts = countWords(texts);
  const pairs = trainBytePairs(counts, merges);
  const known = [...SPECIAL_TOKENS, ...byteAlphabet(), ...new Set(pairs.symbols)];
  const words = selectUsefulWords(counts, pairs, new Set(known), vocabSize - known.length);
  return {
    tokenizerJson: tokenizerJson([...known, ...words], pairs),
    tokenizerConfig: {
      tokenizer_class: "PreTrainedTokenizerFast",
      pad_token: SPECIAL_TOKENS[PAD_TOKEN_ID],
      eos_token: SPECIAL_TOKENS[END_TOKEN_ID],
      model_max_length: 2048,
      clean_up_tokenization_spaces: false,
      chat_template: CHAT_TEMPLATE,
    },
  };
}

function countWords(texts: Iterable<string>): Map<string, number> {
  const counts = new Map<string, number>();
  for (const text of texts) {
    for (const piece of text.match(pieces) ?? []) {
      const word = encodeBytes(piece);
      counts.set(word, (counts.get(word) ?? 0) + 1);
    }
  }
  return counts;
}

/** The words that save the most tokens when they are one token. */
function selectUsefulWords(
  counts: ReadonlyMap<string, number>,
  { merges }: BytePairs,
  known: ReadonlySet<string>,
  count: number,
): string[] {
  return [...counts]
    .filter(([word]) => !known.has(word))
    .map(([word, occurrences]) => {
      const tokens = merges.reduce<string[]>((symbols, pair) => mergePair(symbols, pair), Array.from(word)).length;
      return { word, saved: occurrences * (tokens - 1) };
    })
    .filter(({ saved }) => saved > 0)
    .sort((a, b) => b.saved - a.saved || (a.word < b.word ? -1 : 1))
    .slice(0, count)
    .map(({ word }) => word);
}

function tokenizerJson(tokens: readonly string[], { merges }: BytePairs): Record<string, unknown> {
  const byteLevel = { type: "ByteLevel", add_prefix_space: false, trim_offsets: true, use_regex: false };
  return {
    version: "1.0",
    truncation: null,
    padding: null,
    added_tokens: SPECIAL_TOKENS.map((content, id) => ({
      id,
      content,
      single_word: false,
      lstrip: false,
      rstrip: false,
      normalized: false,
      special: true,
    })),
    normalizer: null,
    pre_tokenizer: {
      type: "Sequence",
      pretokenizers: [{ type: "Split", pattern: { Regex: PIECES }, behavior: "Isolated", invert: false }, byteLevel],
    },
    post_processor: null,
    decoder: byteLevel,
    model: {
      type: "BPE",
      dropout: null,
      unk_token: null,
      continuing_subword_prefix: null,
      end_of_word_suffix: null,
      fuse_unk: false,
      byte_fallback: false,
      ignore_merges: true,
      vocab: Object.fromEntries(tokens.map((token, id) => [token, id])),
      merges,
    },
  };
}

/** The 256 characters that bytes are spelled with. */
function byteAlphabet(): string[] {
  const ranges = [
    [0x21, 0x7e],
    [0xa1, 0xac],
    [0xae, 0x143],
  ];
  return ranges.flatMap(([first, last]) =>
    Array.from({ length: last - first + 1 }, (_, i) => String.fromCharCode(first + i)),
  );
}
