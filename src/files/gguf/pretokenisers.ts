import type { JsonObject } from "../json.js";

/** How a byte-level vocabulary cuts text before its merges apply, by the name in tokenizer.ggml.pre. */
export interface PreTokeniser {
  readonly normaliser: JsonObject | null;
  /** `pre_tokenizer` of tokenizer.json. */
  readonly steps: JsonObject;
  /** Whether a piece that is a token as a whole is taken without merging. */
  readonly ignoreMerges: boolean;
  /** Whether the beginning-of-text token is added when the file does not say. */
  readonly addsBos: boolean;
}

const contractions = "(?i:'s|'t|'re|'ve|'m|'ll|'d)";
const rest = " ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";
const cased = "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]";
const uncased = "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]";
const casedWords = (suffix: string): string =>
  `[^\\r\\n\\p{L}\\p{N}]?${cased}*${uncased}+${suffix}|[^\\r\\n\\p{L}\\p{N}]?${cased}+${uncased}*${suffix}`;

const llama3Pattern = `${contractions}|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}|${rest}`;
const qwen2Pattern = `${contractions}|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}|${rest}`;
const slashRest = " ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";
const tekkenPattern = `${casedWords("")}|\\p{N}|${slashRest}`;
const gpt4oPattern = `${casedWords(`${contractions}?`)}|\\p{N}{1,3}|${slashRest}`;

function byteLevel(useRegex: boolean): JsonObject {
  return { type: "ByteLevel", add_prefix_space: false, trim_offsets: true, use_regex: useRegex };
}

function isolate(pattern: string): JsonObject {
  return { type: "Split", pattern: { Regex: pattern }, behavior: "Isolated", invert: false };
}

function sequence(...steps: JsonObject[]): JsonObject {
  return { type: "Sequence", pretokenizers: steps };
}

// Of the numbers that are not digits (such as 1/2 as one character), "Digits" means all in Python and none in JavaScript.
const digits = isolate("\\p{N}");
const nfc: JsonObject = { type: "NFC" };

const plain = { normaliser: null, ignoreMerges: false, addsBos: false };
const gpt2: PreTokeniser = { ...plain, steps: byteLevel(true) };
const starcoder: PreTokeniser = { ...plain, steps: sequence(digits, byteLevel(true)) };
const llama3: PreTokeniser = { ...plain, steps: sequence(isolate(llama3Pattern), byteLevel(false)) };
const qwen2: PreTokeniser = { ...plain, steps: sequence(isolate(qwen2Pattern), byteLevel(false)) };
const tekken: PreTokeniser = { ...plain, steps: sequence(isolate(tekkenPattern), byteLevel(false)) };
const deepseekCoder: PreTokeniser = {
  ...plain,
  steps: sequence(
    isolate("[\\r\\n]"),
    isolate("\\s?\\p{L}+"),
    isolate("\\s?\\p{P}+"),
    isolate("[一-龥ࠀ-一가-퟿]+"),
    digits,
    byteLevel(false),
  ),
};

/** The names of tokenizer.ggml.pre, with those that mean the same side by side. */
const groups: readonly (readonly [readonly string[], PreTokeniser])[] = [
  [["gpt-2", "gpt2", "default", "", "phi-2", "olmo", "mpt", "jais", "trillion", "exaone4", "granite-docling"], gpt2],
  [["smollm", "starcoder", "refact", "command-r", "codeshell", "exaone", "minerva-7b"], starcoder],
  [
    ["llama-bpe", "llama3", "llama-v3", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2"],
    { ...llama3, ignoreMerges: true, addsBos: true },
  ],
  [["smaug-bpe", "dbrx", "chatglm-bpe", "glm4"], llama3],
  [["qwen2", "megrez"], { ...qwen2, normaliser: nfc }],
  [["deepseek-r1-qwen", "kormo", "f2llmv2", "stablelm2", "hunyuan", "solar-open"], qwen2],
  [["tekken"], { ...tekken, ignoreMerges: true, addsBos: true }],
  [["gpt-4o", "llama4", "kanana2"], { ...plain, steps: sequence(isolate(gpt4oPattern), byteLevel(false)) }],
  [["deepseek-coder"], deepseekCoder],
];

const byName = new Map(groups.flatMap(([names, pre]) => names.map((name) => [name, pre] as const)));

/** The names of tokenizer.ggml.pre that are known. */
export const preTokeniserNames: readonly string[] = [...byName.keys()].filter((name) => name !== "");

/** The pre-tokeniser of a name in tokenizer.ggml.pre (a missing name counts as "default"), or undefined. */
export function preTokeniser(name: string): PreTokeniser | undefined {
  return byName.get(name);
}
