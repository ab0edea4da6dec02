import { type JsonRecord, isObject } from "./tokenizer-json.js";

/** Pre-tokenizers and split behaviors that drop text. */
const DROPPING = /"(Removed|Whitespace|WhitespaceSplit|CharDelimiterSplit|BertPreTokenizer)"/;

/**
 * Returns by how much a tokenizer shortens text at most before its model reads it, apart from its
 * tokens; Infinity where it drops text. Only byte-level models and those with byte fallback read
 * all text.
 */
export function maxShrinkFactor({ model, normalizer, pre_tokenizer: preTokenizer }: JsonRecord): number {
  const pre = JSON.stringify(preTokenizer ?? null);
  const readsAll = pre.includes('"ByteLevel"') || (isObject(model) && model.byte_fallback === true);
  return readsAll && !DROPPING.test(pre) ? normalizerShrinkFactor(normalizer) : Infinity;
}

function normalizerShrinkFactor(normalizer: unknown): number {
  if (normalizer === null || normalizer === undefined) return 1;
  if (!isObject(normalizer)) return Infinity;
  switch (normalizer.type) {
    case "Sequence":
      return Array.isArray(normalizer.normalizers)
        ? normalizer.normalizers.map(normalizerShrinkFactor).reduce((product, factor) => product * factor, 1)
        : Infinity;
    case "Prepend":
    case "ByteLevel":
      return 1;
    case "Replace": {
      const replaced = isObject(normalizer.pattern) ? normalizer.pattern.String : undefined;
      const isLonger =
        typeof replaced === "string" &&
        typeof normalizer.content === "string" &&
        normalizer.content.length >= replaced.length;
      return isLonger ? 1 : Infinity;
    }
    // A composed character has at most four code points, each of one or two UTF-16 units.
    case "NFC":
      return 4;
    default:
      return Infinity;
  }
}

/** Returns the number of UTF-16 units that are not whitespace. */
export function countVisible(text: string): number {
  let count = 0;
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    const isWide = unit === 0x1680 || (unit >= 0x2000 && unit <= 0x206f) || unit === 0x3000 || unit === 0xfeff;
    const isSpace = unit <= 0x20 || unit === 0x85 || unit === 0xa0 || isWide;
    if (!isSpace) count++;
  }
  return count;
}
