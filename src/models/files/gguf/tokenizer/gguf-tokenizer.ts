import { LlamaGymError } from "../../../../core/errors.js";
import { corruptFileError } from "../../../../core/files/file-errors.js";
import type { JsonObject } from "../../../../core/json.js";
import { buildByteLevelTokenizer, getPreTokenizer } from "./byte-level-tokenizer.js";
import { GgufFields } from "../gguf-fields.js";
import type { GgufMetadata } from "../gguf-header.js";
import { buildSentencePieceTokenizer } from "./sentencepiece-tokenizer.js";
import { readSpecialTokens, readVocabulary, type GgufSpecialTokens, type GgufVocabulary } from "./vocabulary.js";

/** Contents of a Hugging Face folder's tokenizer files. */
export interface GgufTokenizerFiles {
  /** tokenizer.json */
  readonly tokenizerJson: JsonObject;
  /** tokenizer_config.json */
  readonly tokenizerConfig: JsonObject;
  /** Jinja chat template; several by name with the main one under "default". */
  readonly chatTemplate?: string | Readonly<Record<string, string>>;
}

/**
 * Builds Hugging Face's tokenizer files for a GGUF file. @throws TOKENIZER_UNSUPPORTED for
 * unsupported vocabularies or pre-tokenizers, FILE_CORRUPT.
 */
export function buildGgufTokenizer(path: string, metadata: GgufMetadata): GgufTokenizerFiles {
  const fields = new GgufFields(path, metadata);
  const vocabulary = readVocabulary(fields);
  const model = fields.string("tokenizer.ggml.model");
  const chatTemplate = readChatTemplates(fields);
  const createFiles = (special: GgufSpecialTokens, tokenizerJson: JsonObject): GgufTokenizerFiles => {
    return {
      tokenizerJson,
      tokenizerConfig: buildTokenizerConfig(fields, vocabulary, special, chatTemplate),
      chatTemplate,
    };
  };
  if (model === "gpt2") {
    const pre = getPreTokenizer(fields);
    const special = readSpecialTokens(fields, vocabulary, pre.addsBos);
    return createFiles(special, buildByteLevelTokenizer(fields, vocabulary, special, pre));
  }
  if (model === "llama") {
    const special = applySentencePieceDefaults(readSpecialTokens(fields, vocabulary, true), vocabulary);
    return createFiles(special, buildSentencePieceTokenizer(fields, vocabulary, special));
  }
  if (model === undefined) throw corruptFileError(path, 'its metadata lacks "tokenizer.ggml.model"');
  throw new LlamaGymError(
    "TOKENIZER_UNSUPPORTED",
    `The tokenizer "${model}" (tokenizer.ggml.model) of ${path} is not supported. Supported: gpt2 (byte-level BPE), ` +
      "llama (SentencePiece BPE). Give a folder with the model's tokenizer.json instead.",
  );
}

/** llama.cpp's default ids of SentencePiece vocabularies: those of Llama 1. */
function applySentencePieceDefaults(special: GgufSpecialTokens, { tokens }: GgufVocabulary): GgufSpecialTokens {
  if (tokens.length < 3) return special;
  return { ...special, bos: special.bos ?? 1, eos: special.eos ?? 2, unknown: special.unknown ?? 0 };
}

function buildTokenizerConfig(
  fields: GgufFields,
  { tokens }: GgufVocabulary,
  special: GgufSpecialTokens,
  chatTemplate: GgufTokenizerFiles["chatTemplate"],
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
    ...(typeof chatTemplate === "object"
      ? { chat_template: Object.entries(chatTemplate).map(([name, template]) => ({ name, template })) }
      : {}),
  };
}

/** Reads the main chat template and the named ones. */
function readChatTemplates(fields: GgufFields): GgufTokenizerFiles["chatTemplate"] {
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

function readMaxLength(fields: GgufFields): JsonObject {
  const length = fields.optionalNumber("context_length");
  return length === undefined ? {} : { model_max_length: length };
}
