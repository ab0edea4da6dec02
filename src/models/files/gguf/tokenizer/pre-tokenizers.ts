import type { JsonObject } from "../../../../core/json.js";

/** Pre-tokenization of a byte-level vocabulary, by tokenizer.ggml.pre. */
export interface GgufPreTokenizer {
  readonly normalizer: JsonObject | null;
  /** `pre_tokenizer` of tokenizer.json. */
  readonly steps: JsonObject;
  /** Whether a piece that is a token is not split by merges. */
  readonly ignoreMerges: boolean;
  /** Default of tokenizer.ggml.add_bos_token. */
  readonly addsBos: boolean;
}

const contractionPattern = "(?i:'s|'t|'re|'ve|'m|'ll|'d)";
const otherPattern = " ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";
const cased = "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]";
const uncased = "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]";
const createCasedWordPattern = (suffix: string): string =>
  `[^\\r\\n\\p{L}\\p{N}]?${cased}*${uncased}+${suffix}|[^\\r\\n\\p{L}\\p{N}]?${cased}+${uncased}*${suffix}`;

const llama3Pattern = `${contractionPattern}|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}|${otherPattern}`;
const qwen2Pattern = `${contractionPattern}|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}|${otherPattern}`;
const slashOtherPattern = " ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";
const tekkenPattern = `${createCasedWordPattern("")}|\\p{N}|${slashOtherPattern}`;
const gpt4oPattern = `${createCasedWordPattern(`${contractionPattern}?`)}|\\p{N}{1,3}|${slashOtherPattern}`;

function createByteLevel(useRegex: boolean): JsonObject {
  return { type: "ByteLevel", add_prefix_space: false, trim_offsets: true, use_regex: useRegex };
}

function createSplit(pattern: string): JsonObject {
  return { type: "Split", pattern: { Regex: pattern }, behavior: "Isolated", invert: false };
}

function createSequence(...steps: JsonObject[]): JsonObject {
  return { type: "Sequence", pretokenizers: steps };
}

// "Digits" includes non-digit numbers (such as "½") in Python but not in JavaScript.
const digits = createSplit("\\p{N}");
const nfc: JsonObject = { type: "NFC" };

const defaults = { normalizer: null, ignoreMerges: false, addsBos: false };
const gpt2: GgufPreTokenizer = { ...defaults, steps: createByteLevel(true) };
const starcoder: GgufPreTokenizer = { ...defaults, steps: createSequence(digits, createByteLevel(true)) };
const llama3: GgufPreTokenizer = {
  ...defaults,
  steps: createSequence(createSplit(llama3Pattern), createByteLevel(false)),
};
const qwen2: GgufPreTokenizer = {
  ...defaults,
  steps: createSequence(createSplit(qwen2Pattern), createByteLevel(false)),
};
const tekken: GgufPreTokenizer = {
  ...defaults,
  steps: createSequence(createSplit(tekkenPattern), createByteLevel(false)),
};
const deepseekCoder: GgufPreTokenizer = {
  ...defaults,
  steps: createSequence(
    createSplit("[\\r\\n]"),
    createSplit("\\s?\\p{L}+"),
    createSplit("\\s?\\p{P}+"),
    createSplit("[一-龥ࠀ-一가-퟿]+"),
    digits,
    createByteLevel(false),
  ),
};

/** Values of tokenizer.ggml.pre, grouped by equivalent pre-tokenizers. */
const preTokenizerGroups: readonly (readonly [readonly string[], GgufPreTokenizer])[] = [
  [["gpt-2", "gpt2", "default", "", "phi-2", "olmo", "mpt", "jais", "trillion", "exaone4", "granite-docling"], gpt2],
  [["smollm", "starcoder", "refact", "command-r", "codeshell", "exaone", "minerva-7b"], starcoder],
  [
    ["llama-bpe", "llama3", "llama-v3", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2"],
    { ...llama3, ignoreMerges: true, addsBos: true },
  ],
  [["smaug-bpe", "dbrx", "chatglm-bpe", "glm4"], llama3],
  [["qwen2", "megrez"], { ...qwen2, normalizer: nfc }],
  [["deepseek-r1-qwen", "kormo", "f2llmv2", "stablelm2", "hunyuan", "solar-open"], qwen2],
  [["tekken"], { ...tekken, ignoreMerges: true, addsBos: true }],
  [
    ["gpt-4o", "llama4", "kanana2"],
    { ...defaults, steps: createSequence(createSplit(gpt4oPattern), createByteLevel(false)) },
  ],
  [["deepseek-coder"], deepseekCoder],
];

const byName = new Map(preTokenizerGroups.flatMap(([names, pre]) => names.map((name) => [name, pre] as const)));

/** Supported values of tokenizer.ggml.pre. */
export const preTokenizerNames: readonly string[] = [...byName.keys()].filter((name) => name !== "");

/** A name for each pre-tokenizer. */
export const distinctPreTokenizers: readonly string[] = preTokenizerGroups.map(([[name]]) => name);

export function findPreTokenizer(name: string): GgufPreTokenizer | undefined {
  return byName.get(name);
}
