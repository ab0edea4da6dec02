import { LlamaGymError } from "../../errors.js";
import { corrupt } from "../failure.js";
import type { JsonObject } from "../json.js";
import { byteLevelTokenizer, preTokeniserOf } from "./byte-level.js";
import { GgufFields } from "./fields.js";
import type { GgufMetadata } from "./header.js";
import { sentencePieceTokenizer } from "./sentencepiece.js";
import { readSpecialTokens, readVocabulary, type SpecialTokens, type Vocabulary } from "./vocabulary.js";

/** The tokenizer files of a Hugging Face folder. */
export interface TokenizerFiles {
  /** What `tokenizer.json` holds. */
  readonly tokenizerJson: JsonObject;
  /** What `tokenizer_config.json` holds. */
  readonly tokenizerConfig: JsonObject;
  /** The Jinja text of the chat template, where there is one; several by name, with the main one under "default". */
  readonly chatTemplate?: string | Readonly<Record<string, string>>;
}

/**
 * The tokenizer of a GGUF file in the form of Hugging Face's files.
 * Throws TOKENIZER_UNSUPPORTED for kinds of vocabulary or pre-tokenizers that are not known, FILE_CORRUPT.
 */
export function ggufTokenizer(path: string, metadata: GgufMetadata): TokenizerFiles {
  const fields = new GgufFields(path, metadata);
  const vocabulary = readVocabulary(fields);
  const model = fields.string("tokenizer.ggml.model");
  const chatTemplate = chatTemplates(fields);
  if (model === "gpt2") {
    const pre = preTokeniserOf(fields);
    const special = readSpecialTokens(fields, vocabulary, pre.addsBos);
    const tokenizerJson = byteLevelTokenizer(fields, vocabulary, special, pre);
    return { tokenizerJson, tokenizerConfig: tokenizerConfig(fields, vocabulary, special, chatTemplate), chatTemplate };
  }
  if (model === "llama") {
    const special = withSentencePieceDefaults(readSpecialTokens(fields, vocabulary, true), vocabulary);
    const tokenizerJson = sentencePieceTokenizer(fields, vocabulary, special);
    return { tokenizerJson, tokenizerConfig: tokenizerConfig(fields, vocabulary, special, chatTemplate), chatTemplate };
  }
  if (model === undefined) throw corrupt(path, 'its metadata lacks "tokenizer.ggml.model"');
  throw new LlamaGymError(
    "TOKENIZER_UNSUPPORTED",
    `The tokenizer "${model}" (tokenizer.ggml.model) of ${path} is not supported. Supported: gpt2 (byte-level BPE), ` +
      "llama (SentencePiece BPE). Give a folder with the model's tokenizer.json instead.",
  );
}

/** Where a SentencePiece file does not say, llama.cpp takes the ids of Llama's first vocabulary. */
function withSentencePieceDefaults(special: SpecialTokens, { tokens }: Vocabulary): SpecialTokens {
  if (tokens.length < 3) return special;
  return { ...special, bos: special.bos ?? 1, eos: special.eos ?? 2, unknown: special.unknown ?? 0 };
}

function tokenizerConfig(
  fields: GgufFields,
  { tokens }: Vocabulary,
  special: SpecialTokens,
  chatTemplate: TokenizerFiles["chatTemplate"],
): JsonObject {
  const text = (id: number | undefined): string | null => (id === undefined ? null : tokens[id]);
  return {
    tokenizer_class: "PreTrainedTokenizerFast",
    bos_token: text(special.bos),
    eos_token: text(special.eos),
    unk_token: text(special.unknown),
    pad_token: text(special.padding),
    add_bos_token: special.addsBos,
    add_eos_token: special.addsEos,
    clean_up_tokenization_spaces: false,
    ...maxLength(fields),
    ...(typeof chatTemplate === "string" ? { chat_template: chatTemplate } : {}),
    ...(typeof chatTemplate === "object" ? { chat_template: listed(chatTemplate) } : {}),
  };
}

/** The main chat template, and those that the file names beside it. */
function chatTemplates(fields: GgufFields): TokenizerFiles["chatTemplate"] {
  const main = fields.string("tokenizer.chat_template");
  const names = fields.raw("tokenizer.chat_templates");
  const others = Array.isArray(names) ? names.filter((name): name is string => typeof name === "string") : [];
  const named = others.flatMap((name): [string, string][] => {
    const template = fields.string(`tokenizer.chat_template.${name}`);
    return template === undefined ? [] : [[name, template]];
  });
  if (named.length === 0) return main;
  return Object.fromEntries(main === undefined ? named : [["default", main], ...named]);
}

/** Named templates as tokenizer_config.json has them. */
function listed(templates: Readonly<Record<string, string>>): JsonObject[] {
  return Object.entries(templates).map(([name, template]) => ({ name, template }));
}

function maxLength(fields: GgufFields): JsonObject {
  const length = fields.optional("context_length");
  return length === undefined ? {} : { model_max_length: length };
}
