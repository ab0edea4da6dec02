import { LlamaGymError } from "../../../core/errors.js";
import { buildGgufTokenizer } from "../../files/gguf/tokenizer/gguf-tokenizer.js";
import { distinctPreTokenizers } from "../../files/gguf/tokenizer/pre-tokenizers.js";
import { TokenType } from "../../files/gguf/tokenizer/vocabulary.js";
import type { GgufValue } from "../../files/gguf/header-cursor.js";
import { Tokenizer } from "../../text/tokenizer.js";
import { type JsonRecord } from "../../text/tokenization/tokenizer-json.js";
import type { GgufFieldValue } from "./write-gguf.js";

type Fields = Readonly<Record<string, GgufFieldValue>>;

/**
 * Text whose encoding tells pre-tokenizers apart: words, contractions, case, digits, runs of
 * spaces, line ends and punctuation, accents in both normal forms, other scripts, emoji.
 */
const PROBE = [
  "Hello, World! hello world's We'LL they're I'm  you'd don't (it isn't) HTTPServer camelCaseWord x=1;y=22, 333 4444",
  "\n\n\n  \t two  spaces   three\r\n\r\nline\n \n  end ...!!!??? -- == // ''' \"quoted\" $12.50 10% #tag @user a_b_c",
  "café cafe\u0301 naïve ÄÖÜß ½ ² Ⅷ 12½ нова модель 你好，世界 日本語 한국어 नमस्ते สวัสดี مرحبا 🎉🎉 👩‍🔬 é",
  "\u00a0nbsp\u3000wide ▁▁piece <s> </s> <|x|> \u{1d400} 0x1F 1e-5 v1.2.3 http://a.b/c?d=e&f=g",
].join(" ");

/** Encoding 2,000 tokens' texts takes milliseconds. */
const MAX_SAMPLED_TOKENS = 2000;

/** A byte-level token of a space and one punctuation mark. */
const SPACED_MARK = /^\u0120[\p{P}\p{S}]$/u;

/** What the vocabulary of a GGUF file is made from. */
export interface GgufVocabularySource {
  readonly tokenizer: Tokenizer;
  /** Rows of the model's embedding. */
  readonly vocabSize: number;
  /** Ends of completions in addition to the tokenizer's. */
  readonly eosTokenIds: readonly number[];
  /** general.architecture. */
  readonly architecture: string;
  /** Receives what the exported tokenizer does differently. */
  readonly onWarning?: (message: string) => void;
}

/**
 * Describes a tokenizer in llama.cpp's metadata, such that it encodes a text of many scripts as the
 * tokenizer does.
 * @throws TOKENIZER_UNSUPPORTED.
 */
export function describeGgufVocabulary(source: GgufVocabularySource): Fields {
  const { tokenizer } = source;
  const json = tokenizer.files.tokenizerJson as JsonRecord;
  const model = json.model as JsonRecord;
  if (model.type !== "BPE")
    throw unsupportedError(tokenizer, `its model is ${JSON.stringify(model.type)}, and only BPE is written to GGUF`);
  const isByteLevel = model.byte_fallback !== true;
  const merges = readMerges(model);
  const completed = model.ignore_merges === true ? completeMerges(model, merges) : merges;
  const common = { ...listTokens(source, isByteLevel), ...describeSpecialTokens(source) };
  const candidates: Fields[] = isByteLevel
    ? [...new Set([merges, completed])].flatMap((list) =>
        distinctPreTokenizers.map((pre) => ({
          "tokenizer.ggml.model": "gpt2",
          "tokenizer.ggml.pre": pre,
          ...common,
          "tokenizer.ggml.merges": list.map((pair) => pair.join(" ")),
        })),
      )
    : [true, false].map((addSpacePrefix) => ({
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.pre": "default",
        ...common,
        "tokenizer.ggml.scores": scorePieces(common["tokenizer.ggml.tokens"], merges),
        "tokenizer.ggml.add_space_prefix": addSpacePrefix,
      }));
  const probe = `${PROBE} ${sampleVocabulary(tokenizer)}`;
  const exact = findCandidate(source, candidates, probe);
  if (exact !== undefined) return exact;
  const close = findCandidate(source, candidates, probe.replace(/\s+/gu, " "));
  if (close !== undefined) {
    source.onWarning?.(
      "llama.cpp has no pre-tokenizer that splits runs of white space as this model's tokenizer does: it encodes other text equally, but several spaces or line ends in a row differently.",
    );
    return close;
  }
  throw unsupportedError(
    tokenizer,
    isByteLevel
      ? "none of llama.cpp's pre-tokenizers splits text as it does"
      : "llama.cpp's SentencePiece algorithm encodes text differently",
  );
}

function unsupportedError({ name }: Tokenizer, problem: string): LlamaGymError {
  return new LlamaGymError(
    "TOKENIZER_UNSUPPORTED",
    `The tokenizer of ${name} cannot be exported to GGUF: ${problem}. Use --format onnx or merged.`,
  );
}

/** Finds the description from which a tokenizer with the same encoding of a text is built. */
function findCandidate(
  { tokenizer, architecture }: GgufVocabularySource,
  candidates: readonly Fields[],
  text: string,
): Fields | undefined {
  const encode = (by: Tokenizer) => by.encode(text, { addSpecialTokens: false }).join();
  const expected = encode(tokenizer);
  return candidates.find((fields) => {
    const metadata = new Map<string, GgufValue>([["general.architecture", architecture]]);
    for (const [key, value] of Object.entries(fields)) metadata.set(key, value as GgufValue);
    return encode(new Tokenizer(buildGgufTokenizer("", metadata))) === expected;
  });
}

/** Returns the texts of tokens throughout the vocabulary, so that most merges are also compared. */
function sampleVocabulary(tokenizer: Tokenizer): string {
  const stride = Math.ceil(tokenizer.vocabSize / MAX_SAMPLED_TOKENS);
  const count = Math.floor(tokenizer.vocabSize / stride);
  const ids = Array.from({ length: count }, (_, i) => i * stride).filter((id) => !tokenizer.isSpecial(id));
  return ids.map((id) => tokenizer.decode([id])).join(" ");
}

function readMerges(model: JsonRecord): [string, string][] {
  const merges = Array.isArray(model.merges) ? (model.merges as readonly (string | [string, string])[]) : [];
  return merges.map((merge) => {
    if (typeof merge !== "string") return merge;
    const separator = merge.indexOf(" ", 1);
    return [merge.slice(0, separator), merge.slice(separator + 1)];
  });
}

/**
 * Appends a merge for each token of a space and a punctuation mark that has none. A tokenizer that
 * ignores merges finds it as a whole; llama.cpp's pre-tokenizers leave further marks behind it.
 */
function completeMerges(model: JsonRecord, merges: readonly [string, string][]): [string, string][] {
  const known = new Set(merges.map((pair) => pair.join("")));
  const tokens = Object.keys(model.vocab as object).filter((token) => SPACED_MARK.test(token) && !known.has(token));
  return [...merges, ...tokens.map((token): [string, string] => [token[0], token[1]])];
}

/**
 * Lists tokens and their kinds; rows of the embedding without a token get a name that text cannot
 * contain.
 */
function listTokens({ tokenizer, vocabSize, onWarning }: GgufVocabularySource, isByteLevel: boolean) {
  const json = tokenizer.files.tokenizerJson as JsonRecord;
  const model = json.model as JsonRecord;
  const tokens = Array.from({ length: vocabSize }, (_, id) => `[PAD${id}]`);
  const types = new Int32Array(vocabSize).fill(TokenType.unused);
  const setToken = (id: number, token: string, type: number) => {
    if (id >= vocabSize)
      throw unsupportedError(tokenizer, `token ${id} is beyond the ${vocabSize} rows of the model's embedding`);
    tokens[id] = token;
    types[id] = type;
  };
  for (const [token, id] of Object.entries(model.vocab as Readonly<Record<string, number>>)) {
    const isByte = !isByteLevel && /^<0x[0-9A-F]{2}>$/u.test(token);
    const isUnknown = !isByteLevel && token === model.unk_token;
    setToken(id, token, isByte ? TokenType.byte : isUnknown ? TokenType.unknown : TokenType.normal);
  }
  for (const added of tokenizer.addedTokens) {
    // Gemma 3's text models share a tokenizer with those of images, whose token has no row.
    if (added.id >= vocabSize) {
      onWarning?.(`The token ${added.content} is left out: the model's embedding has no row for it.`);
      continue;
    }
    if (types[added.id] === TokenType.unknown) continue;
    setToken(added.id, added.content, added.special ? TokenType.control : TokenType.userDefined);
  }
  return { "tokenizer.ggml.tokens": tokens, "tokenizer.ggml.token_type": types };
}

function describeSpecialTokens({ tokenizer, eosTokenIds }: GgufVocabularySource): Fields {
  const [first] = tokenizer.encode("a");
  const getId = (token: string | undefined) => (token === undefined ? undefined : tokenizer.tokenToId(token));
  const eos = tokenizer.eosTokenId ?? eosTokenIds.at(0);
  const ids = {
    bos: tokenizer.bosTokenId,
    eos,
    // The end of a turn, where it differs from the end of the text.
    eot: [...tokenizer.eosTokenIds, ...eosTokenIds].find((id) => id !== eos),
    unknown: getId(tokenizer.specialTokens.get("unk_token")),
    padding: getId(tokenizer.specialTokens.get("pad_token")),
  };
  const fields: Record<string, GgufFieldValue> = {
    "tokenizer.ggml.add_bos_token": first !== undefined && first === tokenizer.bosTokenId,
    "tokenizer.ggml.add_eos_token": false,
  };
  for (const [role, id] of Object.entries(ids)) if (id !== undefined) fields[`tokenizer.ggml.${role}_token_id`] = id;
  const template = tokenizer.chatTemplates.get("default");
  if (template !== undefined) fields["tokenizer.chat_template"] = removeGenerationMarks(template);
  return fields;
}

/**
 * Replaces Transformers' tag around what the assistant generates, which Jinja lacks; whitespace
 * control is kept.
 */
function removeGenerationMarks(template: string): string {
  return template
    .replace(/\{%([-+]?)\s*generation\s*([-+]?)%\}/gu, "{%$1 if true $2%}")
    .replace(/\{%([-+]?)\s*endgeneration\s*([-+]?)%\}/gu, "{%$1 endif $2%}");
}

/**
 * Returns scores that order merges of pieces as the tokenizer does: the rank of a piece's first
 * merge, negated.
 */
function scorePieces(tokens: readonly string[], merges: readonly (readonly [string, string])[]): Float32Array {
  const ranks = new Map<string, number>();
  for (const [rank, [left, right]] of merges.entries()) {
    if (!ranks.has(left + right)) ranks.set(left + right, rank);
  }
  return Float32Array.from(tokens, (token) => -(ranks.get(token) ?? merges.length));
}
