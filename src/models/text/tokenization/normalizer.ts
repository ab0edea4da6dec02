import { BertNormalizer, PrecompiledNormalizer } from "@huggingface/tokenizers";

import { encodeBytes } from "./byte-level.js";
import { type JsonObject, isObject, readObjectList, readString, unsupportedTypeError } from "./tokenizer-json.js";
import { createReplacer } from "./compile-pattern.js";

/** Normalizes text before it is split: Unicode forms, spaces, case. */
export type Normalizer = (text: string) => string;

const supported = [
  "Sequence",
  "NFC",
  "NFD",
  "NFKC",
  "NFKD",
  "Lowercase",
  "Strip",
  "StripAccents",
  "Prepend",
  "Replace",
  "Nmt",
  "ByteLevel",
  "BertNormalizer",
  "Precompiled",
];

/**
 * Creates the normalizer that tokenizer.json describes, or null. `prefix: false` adds no prefix,
 * for continuing text; `strip: false` keeps whitespace at the ends, for a small part of a text.
 */
export function createNormalizer(config: unknown, { prefix = true, strip = true } = {}): Normalizer | null {
  if (config === null || config === undefined) return null;
  if (!isObject(config)) throw unsupportedTypeError("A normalizer", config, supported);
  switch (config.type) {
    case "Sequence": {
      const parts = readObjectList(config, "normalizers")
        .map((part) => createNormalizer(part, { prefix, strip }))
        .filter((part) => part !== null);
      return (text) => parts.reduce((current, part) => part(current), text);
    }
    case "NFC":
    case "NFD":
    case "NFKC":
    case "NFKD": {
      const form = config.type;
      return (text) => text.normalize(form);
    }
    case "Lowercase":
      // By letter: JavaScript lowercases a final sigma by its position in the word, Python's tokenizers do not.
      return (text) => text.replace(/\p{Changes_When_Lowercased}/gu, (letter) => letter.toLowerCase());
    case "Strip":
      return strip ? createStripNormalizer(config) : (text) => text;
    case "StripAccents":
      return (text) => text.replace(/\p{M}/gu, "");
    case "Prepend": {
      const prepend = readString(config, "prepend");
      return prefix ? (text) => (text === "" ? "" : prepend + text) : (text) => text;
    }
    case "Replace":
      return createReplacer(config);
    case "Nmt":
      return normalizeNmt;
    case "ByteLevel":
      return encodeBytes;
    case "BertNormalizer":
      return wrapNormalizer(new BertNormalizer({ ...config, type: "BertNormalizer" }));
    case "Precompiled":
      return wrapNormalizer(
        new PrecompiledNormalizer({
          type: "Precompiled",
          precompiled_charsmap: readString(config, "precompiled_charsmap"),
        }),
      );
    default:
      throw unsupportedTypeError("A normalizer", config.type, supported);
  }
}

function wrapNormalizer(normalizer: { normalize(text: string): string }): Normalizer {
  return (text) => normalizer.normalize(text);
}

function createStripNormalizer(config: JsonObject): Normalizer {
  return (text) => {
    let stripped = text;
    if (config.strip_left !== false) stripped = stripped.replace(/^\p{White_Space}+/u, "");
    if (config.strip_right !== false) stripped = stripped.replace(/\p{White_Space}+$/u, "");
    return stripped;
  };
}

/** Control characters except whitespace. */
const controlRanges = "\\x01-\\x08\\x0b\\x0e-\\x1f\\x7f\\x8f\\x9f";
const controlPattern = new RegExp(`[${controlRanges}]`, "g");

/** Removes control characters and normalizes spaces, as in machine translation toolkits. */
function normalizeNmt(text: string): string {
  return text.replace(controlPattern, "").replace(/[\t\n\f\r\u1680\u200b-\u200f\u2028\u2029\u2581\ufeff\ufffd]/g, " ");
}
