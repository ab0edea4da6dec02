import { BertNormalizer, PrecompiledNormalizer } from "@huggingface/tokenizers";

import { type Steps, runSteps } from "../../../core/steps.js";
import { encodeBytes } from "./byte-level.js";
import { type JsonRecord, readObjectList, readPart, readString } from "./tokenizer-json.js";
import { checkReplacedLength, compilePattern, createReplacer } from "./compile-pattern.js";
import { WINDOW_LENGTH, cutClusters, findMatches } from "./text-windows.js";

/** Normalizes text before it is split: Unicode forms, spaces, case. */
export type Normalizer = (text: string) => string;

/** A normalizer of texts of any length, whose generator yields where the caller can pause. */
export type NormalizerSteps = (text: string) => Steps<string>;

interface NormalizerOptions {
  /** Whether to add a prefix; not for continuing text. Default true. */
  readonly prefix?: boolean;
  /** Whether to strip whitespace at the ends; not for a small part of a text. Default true. */
  readonly strip?: boolean;
}

/** Normalizes the parts of a long text separately. */
function byCluster(normalize: Normalizer): NormalizerSteps {
  return function* (text) {
    if (text.length <= WINDOW_LENGTH) return normalize(text);
    const parts: string[] = [];
    for (const part of cutClusters(text)) {
      parts.push(normalize(part));
      yield;
    }
    return parts.join("");
  };
}

/** Normalizes a text at its ends alone. */
function atEnds(normalize: Normalizer): NormalizerSteps {
  // eslint-disable-next-line require-yield
  return function* (text) {
    return normalize(text);
  };
}

const unicodeForm = (form: string) => () => byCluster((text) => text.normalize(form));

const normalizers: Readonly<Record<string, (config: JsonRecord, options: NormalizerOptions) => NormalizerSteps>> = {
  Sequence: (config, options) => {
    const parts = readObjectList(config, "normalizers")
      .map((part) => createNormalizerSteps(part, options))
      .filter((part) => part !== null);
    return function* (text) {
      let current = text;
      for (const part of parts) current = yield* part(current);
      return current;
    };
  },
  NFC: unicodeForm("NFC"),
  NFD: unicodeForm("NFD"),
  NFKC: unicodeForm("NFKC"),
  NFKD: unicodeForm("NFKD"),
  // By letter: JavaScript lowercases a final sigma by its position in the word, Python's tokenizers
  // do not.
  Lowercase: () => byCluster((text) => text.replace(/\p{Changes_When_Lowercased}/gu, (letter) => letter.toLowerCase())),
  Strip: (config, { strip = true }) => (strip ? createStripNormalizer(config) : atEnds((text) => text)),
  StripAccents: () => byCluster((text) => text.replace(/\p{M}/gu, "")),
  Prepend: (config, { prefix = true }) => {
    const prepend = prefix ? readString(config, "prepend") : "";
    return atEnds((text) => (text === "" ? "" : prepend + text));
  },
  Replace: createReplaceNormalizer,
  Nmt: () => byCluster(normalizeNmt),
  ByteLevel: () => byCluster(encodeBytes),
  BertNormalizer: (config) => wrapNormalizer(new BertNormalizer({ ...config, type: "BertNormalizer" })),
  Precompiled: (config) => {
    const charsmap = readString(config, "precompiled_charsmap");
    return wrapNormalizer(new PrecompiledNormalizer({ type: "Precompiled", precompiled_charsmap: charsmap }));
  },
};

/** Creates the normalizer that tokenizer.json describes, or null. */
export function createNormalizer(config: unknown, options: NormalizerOptions = {}): Normalizer | null {
  const steps = createNormalizerSteps(config, options);
  return steps && ((text) => runSteps(steps(text)));
}

/** Creates the normalizer that tokenizer.json describes, or null, for texts of any length. */
export function createNormalizerSteps(config: unknown, options: NormalizerOptions = {}): NormalizerSteps | null {
  if (config === null || config === undefined) return null;
  return readPart("A normalizer", config, normalizers)(options);
}

function wrapNormalizer(normalizer: { normalize(text: string): string }): NormalizerSteps {
  return byCluster((text) => normalizer.normalize(text));
}

function createReplaceNormalizer(config: JsonRecord): NormalizerSteps {
  const replace = createReplacer(config);
  const pattern = compilePattern(config.pattern);
  const content = readString(config, "content");
  return function* (text) {
    if (text.length <= WINDOW_LENGTH) return replace(text);
    const replaced: string[] = [];
    let parts: string[] = [];
    let length = 0;
    let last = 0;
    for (const match of findMatches(text, pattern)) {
      if (match === null) {
        yield;
        continue;
      }
      const [start, end] = match;
      parts.push(text.slice(last, start), content);
      length += start - last + content.length;
      checkReplacedLength(length);
      last = end;
      if (parts.length < 4096) continue;
      replaced.push(parts.join(""));
      parts = [];
      yield;
    }
    return replaced.join("") + parts.join("") + text.slice(last);
  };
}

function createStripNormalizer(config: JsonRecord): NormalizerSteps {
  return function* (text) {
    let start = 0;
    let end = text.length;
    if (config.strip_left !== false)
      while (start < end && whitespace.test(text[start])) if (++start % WINDOW_LENGTH === 0) yield;
    if (config.strip_right !== false)
      while (end > start && whitespace.test(text[end - 1])) if (--end % WINDOW_LENGTH === 0) yield;
    return text.slice(start, end);
  };
}

const whitespace = /\p{White_Space}/u;

/** Control characters except whitespace. */
const controlRanges = "\\x01-\\x08\\x0b\\x0e-\\x1f\\x7f\\x8f\\x9f";
const controlPattern = new RegExp(`[${controlRanges}]`, "g");

/** Removes control characters and normalizes spaces, as in machine translation toolkits. */
function normalizeNmt(text: string): string {
  return text.replace(controlPattern, "").replace(/[\t\n\f\r\u1680\u200b-\u200f\u2028\u2029\u2581\ufeff\ufffd]/g, " ");
}
