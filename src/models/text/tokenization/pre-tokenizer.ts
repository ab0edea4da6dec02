import { encodeBytes } from "./byte-level.js";
import {
  type JsonRecord,
  corruptFileError,
  isObject,
  readObjectList,
  readPart,
  unsupportedTypeError,
} from "./tokenizer-json.js";
import { compilePattern, escapeRegExp } from "./compile-pattern.js";
import { type SplitBehavior, splitBehaviors, splitText } from "./split-text.js";
import { cutPiece } from "./text-windows.js";

/**
 * Splits text into the pieces that the model encodes separately. `atStart` is whether the text
 * begins the sequence. Pieces of a long text may be empty, where the caller can pause.
 */
export type PreTokenizer = (text: string, atStart: boolean) => Iterable<string>;

const gpt2Pattern =
  /'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\p{White_Space}\p{L}\p{N}]+|\p{White_Space}+(?!\P{White_Space})|\p{White_Space}+/gu;
const numeric = /\p{N}/gu;
const punctuation = /[\p{P}!-/:-@[-`{-~]/gu;
const whitespace = /\p{White_Space}/gu;
const wordClass = "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\\p{Join_Control}";
const wordsAndSymbols = new RegExp(`[${wordClass}]+|[^${wordClass}\\p{White_Space}]+`, "gu");

interface PreTokenizerOptions {
  /** Whether to add a leading space; not for continuing text. Default true. */
  readonly prefix?: boolean;
  /**
   * Whether a final ByteLevel converts the pieces to byte characters, instead of leaving them as
   * text. Default true.
   */
  readonly spell?: boolean;
}

const splitAt = (pattern: RegExp, behavior: SplitBehavior, invert = false): PreTokenizer => {
  return (text) => splitText(text, pattern, behavior, invert);
};

const preTokenizers: Readonly<Record<string, (config: JsonRecord, options: PreTokenizerOptions) => PreTokenizer>> = {
  Sequence: (config, { prefix, spell = true }) => {
    const parts = readObjectList(config, "pretokenizers");
    return createSequence(
      parts
        .map((part, index) => createPreTokenizer(part, { prefix, spell: spell || index < parts.length - 1 }))
        .filter((part) => part !== null),
    );
  },
  ByteLevel: (config, { prefix = true, spell = true }) =>
    createByteLevel(prefix && config.add_prefix_space !== false, config.use_regex !== false, spell),
  Metaspace: (config, { prefix = true }) => createMetaspace(config, prefix),
  Split: (config) => splitAt(compilePattern(config.pattern), readSplitBehavior(config), config.invert === true),
  Digits: (config) => splitAt(numeric, config.individual_digits === true ? "Isolated" : "Contiguous"),
  Punctuation: (config) => splitAt(punctuation, config.behavior === undefined ? "Isolated" : readSplitBehavior(config)),
  Whitespace: () => splitAt(wordsAndSymbols, "Removed", true),
  WhitespaceSplit: () => splitAt(whitespace, "Removed"),
  CharDelimiterSplit: (config) => splitAt(new RegExp(escapeRegExp(String(config.delimiter)), "gu"), "Removed"),
  BertPreTokenizer: () => createSequence([splitAt(whitespace, "Removed"), splitAt(punctuation, "Isolated")]),
  FixedLength: createFixedLength,
};

export function createPreTokenizer(config: unknown, options: PreTokenizerOptions = {}): PreTokenizer | null {
  if (config === null || config === undefined) return null;
  return readPart("A pre-tokenizer", config, preTokenizers)(options);
}

/** Whether the last step converts bytes to characters. */
export function endsWithByteLevel(config: unknown): boolean {
  if (!isObject(config)) return false;
  if (config.type === "Sequence") return endsWithByteLevel(readObjectList(config, "pretokenizers").at(-1));
  return config.type === "ByteLevel";
}

function createSequence(parts: readonly PreTokenizer[]): PreTokenizer {
  if (parts.length === 0) return (text) => [text];
  return parts.reduce((first, second) => {
    return function* (text, atStart) {
      let isFirst = atStart;
      for (const piece of first(text, atStart)) {
        yield* piece === "" && text !== "" ? [""] : second(piece, isFirst);
        isFirst &&= piece === "";
      }
    };
  });
}

function createByteLevel(addPrefixSpace: boolean, useRegex: boolean, spell: boolean): PreTokenizer {
  return function* (text) {
    const prefixed = addPrefixSpace && !text.startsWith(" ") ? ` ${text}` : text;
    const pieces = useRegex ? splitText(prefixed, gpt2Pattern, "Isolated") : [prefixed];
    if (!spell) return yield* pieces;
    for (const piece of pieces) for (const part of cutPiece(piece)) yield encodeBytes(part);
  };
}

/** SentencePiece's scheme: a space becomes a visible character attached to the next word. */
function createMetaspace(config: JsonRecord, prefix: boolean): PreTokenizer {
  const mark = typeof config.replacement === "string" ? config.replacement : "▁";
  const legacyScheme = config.add_prefix_space === false ? "never" : "always";
  const scheme = prefix ? (config.prepend_scheme ?? legacyScheme) : "never";
  const pattern = new RegExp(` |${escapeRegExp(mark)}`, "gu");
  return function* (text, atStart) {
    let isPrefixed = scheme === "always" || (scheme === "first" && atStart);
    const pieces = config.split === false ? cutPiece(text) : splitText(text, pattern, "MergedWithNext");
    for (const piece of text === "" ? [""] : pieces) {
      const marked = piece.replaceAll(" ", mark);
      yield isPrefixed && !marked.startsWith(mark) ? mark + marked : marked;
      isPrefixed &&= piece === "";
    }
  };
}

function readSplitBehavior(config: JsonRecord): SplitBehavior {
  const behavior = splitBehaviors.find((known) => known === config.behavior);
  if (!behavior) throw unsupportedTypeError(`A ${String(config.type)} behavior`, config.behavior, splitBehaviors);
  return behavior;
}

function createFixedLength(config: JsonRecord): PreTokenizer {
  const { length } = config;
  if (typeof length !== "number" || !(length >= 1))
    throw corruptFileError(`tokenizer.json: FixedLength needs a length of at least 1, not ${JSON.stringify(length)}.`);
  return function* (text) {
    let piece = "";
    let count = 0;
    for (const character of text) {
      piece += character;
      if (++count < length) continue;
      yield piece;
      piece = "";
      count = 0;
    }
    if (piece !== "") yield piece;
  };
}
