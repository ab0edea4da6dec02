import { BertNormalizer, PrecompiledNormalizer } from "@huggingface/tokenizers";

import { encodeBytes } from "./byte-level.js";
import { type JsonObject, readObjectList, readPart, readString } from "./tokenizer-json.js";
import { createReplacer } from "./compile-pattern.js";

/** Normalizes text before it is split: Unicode forms, spaces, case. */
export type Normalizer = (text: string) => string;

interface NormalizerOptions {
  /** Whether to add a prefix; not for continuing text. Default true. */
  readonly prefix?: boolean;
  /** Whether to strip whitespace at the ends; not for a small part of a text. Default true. */
  readonly strip?: boolean;
}

const unicodeForm = (form: string) => () => (text: string) => text.normalize(form);

const normalizers: Readonly<Record<string, (config: JsonObject, options: NormalizerOptions) => Normalizer>> = {
  Sequence: (config, options) => {
    const parts = readObjectList(config, "normalizers")
      .map((part) => createNormalizer(part, options))
      .filter((part) => part !== null);
    return (text) => parts.reduce((current, part) => part(current), text);
  },
  NFC: unicodeForm("NFC"),
  NFD: unicodeForm("NFD"),
  NFKC: unicodeForm("NFKC"),
  NFKD: unicodeForm("NFKD"),
  // By letter: JavaScript lowercases a final sigma by its position in the word, Python's tokenizers do not.
  Lowercase: () => (text) => text.replace(/\p{Changes_When_Lowercased}/gu, (letter) => letter.toLowerCase()),
  Strip: (config, { strip = true }) => (strip ? createStripNormalizer(config) : (text) => text),
  StripAccents: () => (text) => text.replace(/\p{M}/gu, ""),
  Prepend: (config, { prefix = true }) => {
    const prepend = prefix ? readString(config, "prepend") : "";
    return (text) => (text === "" ? "" : prepend + text);
  },
  Replace: createReplacer,
  Nmt: () => normalizeNmt,
  ByteLevel: () => encodeBytes,
  BertNormalizer: (config) => wrapNormalizer(new BertNormalizer({ ...config, type: "BertNormalizer" })),
  Precompiled: (config) => {
    const charsmap = readString(config, "precompiled_charsmap");
    return wrapNormalizer(new PrecompiledNormalizer({ type: "Precompiled", precompiled_charsmap: charsmap }));
  },
};

/** Creates the normalizer that tokenizer.json describes, or null. */
export function createNormalizer(config: unknown, options: NormalizerOptions = {}): Normalizer | null {
  if (config === null || config === undefined) return null;
  return readPart("A normalizer", config, normalizers)(options);
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
