import { encodeBytes } from "./byte-level.js";
import { type JsonObject, corruptFileError, isObject, readObjectList, unsupportedTypeError } from "./tokenizer-json.js";
import { compilePattern, escapeRegExp } from "./compile-pattern.js";
import { type SplitBehavior, splitBehaviors, splitText } from "./split-text.js";

/**
 * Splits text into the pieces that the model encodes separately. `atStart` is whether the text
 * begins the sequence.
 */
export type PreTokenizer = (text: string, atStart: boolean) => string[];

const supported = [
  "Sequence",
  "ByteLevel",
  "Metaspace",
  "Split",
  "Digits",
  "Punctuation",
  "Whitespace",
  "WhitespaceSplit",
  "CharDelimiterSplit",
  "BertPreTokenizer",
  "FixedLength",
];

const gpt2Pattern =
  /'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\p{White_Space}\p{L}\p{N}]+|\p{White_Space}+(?!\P{White_Space})|\p{White_Space}+/gu;
const numeric = /\p{N}/gu;
const punctuation = /[\p{P}!-/:-@[-`{-~]/gu;
const whitespace = /\p{White_Space}/gu;
const wordClass = "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\\p{Join_Control}";
const wordsAndSymbols = new RegExp(`[${wordClass}]+|[^${wordClass}\\p{White_Space}]+`, "gu");

/**
 * Creates the pre-tokenizer that tokenizer.json describes, or null. `prefix: false` adds no leading
 * space, for continuing text; `spell: false` leaves the pieces of a final ByteLevel as text.
 */
export function createPreTokenizer(config: unknown, { prefix = true, spell = true } = {}): PreTokenizer | null {
  if (config === null || config === undefined) return null;
  if (!isObject(config)) throw unsupportedTypeError("A pre-tokenizer", config, supported);
  switch (config.type) {
    case "Sequence": {
      const parts = readObjectList(config, "pretokenizers");
      return createSequence(
        parts
          .map((part, index) => createPreTokenizer(part, { prefix, spell: spell || index < parts.length - 1 }))
          .filter((part) => part !== null),
      );
    }
    case "ByteLevel":
      return createByteLevel(prefix && config.add_prefix_space !== false, config.use_regex !== false, spell);
    case "Metaspace":
      return createMetaspace(config, prefix);
    case "Split": {
      const pattern = compilePattern(config.pattern);
      const behavior = readSplitBehavior(config);
      return (text) => splitText(text, pattern, behavior, config.invert === true);
    }
    case "Digits": {
      const behavior = config.individual_digits === true ? "Isolated" : "Contiguous";
      return (text) => splitText(text, numeric, behavior);
    }
    case "Punctuation": {
      const behavior = config.behavior === undefined ? "Isolated" : readSplitBehavior(config);
      return (text) => splitText(text, punctuation, behavior);
    }
    case "Whitespace":
      return (text) => splitText(text, wordsAndSymbols, "Removed", true);
    case "WhitespaceSplit":
      return (text) => splitText(text, whitespace, "Removed");
    case "CharDelimiterSplit": {
      const pattern = new RegExp(escapeRegExp(String(config.delimiter)), "gu");
      return (text) => splitText(text, pattern, "Removed");
    }
    case "BertPreTokenizer":
      return (text) =>
        splitText(text, whitespace, "Removed").flatMap((piece) => splitText(piece, punctuation, "Isolated"));
    case "FixedLength":
      return createFixedLength(config);
    default:
      throw unsupportedTypeError("A pre-tokenizer", config.type, supported);
  }
}

/** Whether the last step converts bytes to characters. */
export function endsWithByteLevel(config: unknown): boolean {
  if (!isObject(config)) return false;
  if (config.type === "Sequence") return endsWithByteLevel(readObjectList(config, "pretokenizers").at(-1));
  return config.type === "ByteLevel";
}

function createSequence(parts: readonly PreTokenizer[]): PreTokenizer {
  return (text, atStart) =>
    parts.reduce((pieces, part) => pieces.flatMap((piece, index) => part(piece, atStart && index === 0)), [text]);
}

function createByteLevel(addPrefixSpace: boolean, useRegex: boolean, spell: boolean): PreTokenizer {
  return (text) => {
    const prefixed = addPrefixSpace && !text.startsWith(" ") ? ` ${text}` : text;
    const pieces = useRegex ? splitText(prefixed, gpt2Pattern, "Isolated") : [prefixed];
    return spell ? pieces.map(encodeBytes) : pieces;
  };
}

/** SentencePiece's scheme: a space becomes a visible character attached to the next word. */
function createMetaspace(config: JsonObject, prefix: boolean): PreTokenizer {
  const mark = typeof config.replacement === "string" ? config.replacement : "▁";
  const legacyScheme = config.add_prefix_space === false ? "never" : "always";
  const scheme = prefix ? (config.prepend_scheme ?? legacyScheme) : "never";
  const pattern = new RegExp(escapeRegExp(mark), "gu");
  return (text, atStart) => {
    let marked = text.replaceAll(" ", mark);
    if ((scheme === "always" || (scheme === "first" && atStart)) && !marked.startsWith(mark)) marked = mark + marked;
    return config.split === false ? [marked] : splitText(marked, pattern, "MergedWithNext");
  };
}

function readSplitBehavior(config: JsonObject): SplitBehavior {
  const behavior = splitBehaviors.find((known) => known === config.behavior);
  if (!behavior) throw unsupportedTypeError(`A ${String(config.type)} behavior`, config.behavior, splitBehaviors);
  return behavior;
}

function createFixedLength(config: JsonObject): PreTokenizer {
  const { length } = config;
  if (typeof length !== "number" || !(length >= 1)) {
    throw corruptFileError(`tokenizer.json: FixedLength needs a length of at least 1, not ${JSON.stringify(length)}.`);
  }
  return (text) => {
    const characters = Array.from(text);
    const pieces: string[] = [];
    for (let i = 0; i < characters.length; i += length) pieces.push(characters.slice(i, i + length).join(""));
    return pieces;
  };
}
