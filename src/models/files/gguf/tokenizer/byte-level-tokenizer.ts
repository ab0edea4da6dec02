import { LlamaGymError } from "../../../../core/errors.js";
import { corruptFileError } from "../../../../core/files/file-errors.js";
import type { JsonObject } from "../../../../core/json.js";
import type { GgufFields } from "../gguf-fields.js";
import { findPreTokenizer, preTokenizerNames, type GgufPreTokenizer } from "./pre-tokenizers.js";
import {
  createAddedToken,
  createPostProcessor,
  TokenType,
  type GgufSpecialTokens,
  type GgufVocabulary,
} from "./vocabulary.js";

/**
 * Creates the characters of the 256 bytes in a byte-level vocabulary; printable bytes map to
 * themselves.
 */
function createByteAlphabet(): string[] {
  let others = 0;
  return Array.from({ length: 256 }, (_, byte) => {
    const printable = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
    return String.fromCharCode(printable ? byte : 256 + others++);
  });
}

/** Returns the pre-tokenizer that the file names. @throws TOKENIZER_UNSUPPORTED. */
export function getPreTokenizer(fields: GgufFields): GgufPreTokenizer {
  const name = fields.string("tokenizer.ggml.pre") ?? "default";
  const found = findPreTokenizer(name);
  if (found !== undefined) return found;
  throw new LlamaGymError(
    "TOKENIZER_UNSUPPORTED",
    `The pre-tokenizer "${name}" (tokenizer.ggml.pre) of ${fields.path} is not supported. ` +
      `Supported: ${preTokenizerNames.join(", ")}. Give a folder with the model's tokenizer.json instead.`,
  );
}

/** Builds the tokenizer.json of a byte-level BPE vocabulary (tokenizer.ggml.model "gpt2"). */
export function buildByteLevelTokenizer(
  fields: GgufFields,
  { tokens, types, merges }: GgufVocabulary,
  special: GgufSpecialTokens,
  pre: GgufPreTokenizer,
): JsonObject {
  if (merges === undefined) throw corruptFileError(fields.path, 'its metadata lacks "tokenizer.ggml.merges"');
  const alphabet = createByteAlphabet();
  const alphabetSet = new Set(alphabet);
  const vocabulary: [string, number][] = [];
  const added: JsonObject[] = [];
  for (const [id, token] of tokens.entries()) {
    const type = types[id];
    if (type === TokenType.control || type === TokenType.userDefined) {
      added.push(createAddedToken(id, token, type === TokenType.control));
      vocabulary.push([token, id]);
    } else {
      vocabulary.push([toByteLevel(token, alphabetSet, alphabet), id]);
    }
  }
  const template = createPostProcessor(special, tokens);
  const byteLevelProcessor: JsonObject = {
    type: "ByteLevel",
    add_prefix_space: true,
    trim_offsets: false,
    use_regex: true,
  };
  return {
    version: "1.0",
    truncation: null,
    padding: null,
    added_tokens: added,
    normalizer: pre.normalizer,
    pre_tokenizer: pre.steps,
    post_processor:
      template === null ? byteLevelProcessor : { type: "Sequence", processors: [byteLevelProcessor, template] },
    decoder: { type: "ByteLevel", add_prefix_space: true, trim_offsets: true, use_regex: true },
    model: {
      type: "BPE",
      dropout: null,
      unk_token: null,
      continuing_subword_prefix: null,
      end_of_word_suffix: null,
      fuse_unk: false,
      byte_fallback: false,
      ignore_merges: pre.ignoreMerges,
      vocab: Object.fromEntries(vocabulary),
      merges: [...merges],
    },
  };
}

/** Converts a token to byte-level characters; some converters wrote plain text. */
function toByteLevel(token: string, alphabetSet: ReadonlySet<string>, alphabet: readonly string[]): string {
  for (const character of token) {
    if (!alphabetSet.has(character))
      return Array.from(new TextEncoder().encode(token), (byte) => alphabet[byte]).join("");
  }
  return token;
}
