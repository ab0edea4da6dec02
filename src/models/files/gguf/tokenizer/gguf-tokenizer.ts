import { LlamaGymError } from "../../../../core/errors.js";
import { corruptFileError } from "../../file-errors.js";
import type { JsonObject } from "../../json-file.js";
import { buildByteLevelTokenizer, getPreTokenizer } from "./byte-level-tokenizer.js";
import { GgufFields } from "../gguf-fields.js";
import type { GgufMetadata } from "../gguf-header.js";
import { buildSentencePieceTokenizer } from "./sentencepiece-tokenizer.js";
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
export function buildGgufTokenizer(path: string, metadata: GgufMetadata): TokenizerFiles {
  const fields = new GgufFields(path, metadata);
  const vocabulary = readVocabulary(fields);
  const model = fields.string("tokenizer.ggml.model");
  const chatTemplate = readChatTemplates(fields);
  if (model === "gpt2") {
    const pre = getPreTokenizer(fields);
    const special = readSpecialTokens(fields, vocabulary, pre.addsBos);
    const tokenizerJson = buildByteLevelTokenizer(fields, vocabulary, special, pre);
    return {
      tokenizerJson,
      tokenizerConfig: buildTokenizerConfig(fields, vocabulary, special, chatTemplate),
      chatTemplate,
    };
  }
  if (model === "llama") {
    const special = applySentencePieceDefaults(readSpecialTokens(fields, vocabulary, true), vocabulary);
    const tokenizerJson = buildSentencePieceTokenizer(fields, vocabulary, special);
    return {
      tokenizerJson,
      tokenizerConfig: buildTokenizerConfig(fields, vocabulary, special, chatTemplate),
      chatTemplate,
    };
  }
  if (model === undefined) throw corruptFileError(path, 'its metadata lacks "tokenizer.ggml.model"');
  throw new LlamaGymError(
    "TOKENIZER_UNSUPPORTED",
    `The tokenizer "${model}" (tokenizer.ggml.model) of ${path} is not supported. Supported: gpt2 (byte-level BPE), ` +
      "llama (SentencePiece BPE). Give a folder with the model's tokenizer.json instead.",
  );
}

/** Where a SentencePiece file does not say, llama.cpp takes the ids of Llama's first vocabulary. */
function applySentencePieceDefaults(special: SpecialTokens, { tokens }: Vocabulary): SpecialTokens {
  if (tokens.length < 3) return special;
  return { ...special, bos: special.bos ?? 1, eos: special.eos ?? 2, unknown: special.unknown ?? 0 };
}

function buildTokenizerConfig(
  fields: GgufFields,
  { tokens }: Vocabulary,
  special: SpecialTokens,
  chatTemplate: TokenizerFiles["chatTemplate"],
): JsonObject {
  const getToken = (id: number | undefined): string | null => (id === undefined ? null : tokens[id]);
  return {
    tokenizer_class: "PreTrainedTokenizerFast",
    bos_token: getToken(special.bos),
    eos_token: getToken(special.eos),
    unk_token: getToken(special.unknown),
    pad_token: getToken(special.padding),
    add_bos_token: special.addsBos,
    add_eos_token: special.addsEos,
    clean_up_tokenization_spaces: false,
    ...readMaxLength(fields),
    ...(typeof chatTemplate === "string" ? { chat_template: chatTemplate } : {}),
    ...(typeof chatTemplate === "object" ? { chat_template: listTemplates(chatTemplate) } : {}),
  };
}

/** The main chat template, and those that the file names beside it. */
function readChatTemplates(fields: GgufFields): TokenizerFiles["chatTemplate"] {
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
function listTemplates(templates: Readonly<Record<string, string>>): JsonObject[] {
  return Object.entries(templates).map(([name, template]) => ({ name, template }));
}

function readMaxLength(fields: GgufFields): JsonObject {
  const length = fields.optionalNumber("context_length");
  return length === undefined ? {} : { model_max_length: length };
}
