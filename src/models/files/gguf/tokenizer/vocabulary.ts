import { LlamaGymError } from "../../../../core/errors.js";
import { corruptFileError } from "../../../../core/files/file-errors.js";
import type { JsonObject } from "../../../../core/json.js";
import type { GgufFields } from "../gguf-fields.js";

/** tokenizer.ggml.token_type. */
export const TokenType = { normal: 1, unknown: 2, control: 3, userDefined: 4, unused: 5, byte: 6 } as const;

/** The tokens of a GGUF file. */
export interface GgufVocabulary {
  readonly tokens: readonly string[];
  /** Kind of each token, a `TokenType`. */
  readonly types: ArrayLike<number>;
  /** Log-probability of each piece, if stored. */
  readonly scores?: ArrayLike<number>;
  /** Merges in order, "left right", if stored. */
  readonly merges?: readonly string[];
}

function isStringList(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((item) => typeof item === "string");
}

function readNumberList(fields: GgufFields, key: string, length: number): ArrayLike<number> | undefined {
  const value = fields.raw(key);
  if (value === undefined) return undefined;
  if (typeof value !== "object" || value.length !== length || value.some((item) => typeof item !== "number"))
    throw corruptFileError(fields.path, `its metadata field "${key}" is not a list of ${length} numbers`);
  return value as ArrayLike<number>;
}

/** Reads tokens and merges. @throws FILE_CORRUPT, TOKENIZER_UNSUPPORTED when the file has none. */
export function readVocabulary(fields: GgufFields): GgufVocabulary {
  const tokens = fields.raw("tokenizer.ggml.tokens");
  if (tokens === undefined)
    throw new LlamaGymError(
      "TOKENIZER_UNSUPPORTED",
      `${fields.path} contains no tokenizer. Use a folder with the model's tokenizer.json instead.`,
    );
  if (!isStringList(tokens) || tokens.length === 0)
    throw corruptFileError(fields.path, 'its metadata field "tokenizer.ggml.tokens" is not a list of strings');
  const merges = fields.raw("tokenizer.ggml.merges");
  if (merges !== undefined && !isStringList(merges))
    throw corruptFileError(fields.path, 'its metadata field "tokenizer.ggml.merges" is not a list of strings');
  const types = readNumberList(fields, "tokenizer.ggml.token_type", tokens.length);
  const scores = readNumberList(fields, "tokenizer.ggml.scores", tokens.length);
  return { tokens, types: types ?? new Uint8Array(tokens.length).fill(TokenType.normal), scores, merges };
}

/** Special tokens common to both kinds of tokenizer. */
export interface GgufSpecialTokens {
  readonly bos?: number;
  readonly eos?: number;
  readonly unknown?: number;
  readonly padding?: number;
  readonly addsBos: boolean;
  readonly addsEos: boolean;
}

/** Reads the special tokens; `addsBos` is the default of add_bos_token. @throws FILE_CORRUPT. */
export function readSpecialTokens(fields: GgufFields, vocabulary: GgufVocabulary, addsBos: boolean): GgufSpecialTokens {
  const token = (name: string): number | undefined => {
    const id = fields.index(`tokenizer.ggml.${name}_token_id`);
    if (id !== undefined && id >= vocabulary.tokens.length) {
      // As in llama.cpp; some files use 4294967295 for "none".
      return undefined;
    }
    return id;
  };
  return {
    bos: token("bos"),
    eos: token("eos"),
    unknown: token("unknown"),
    padding: token("padding"),
    addsBos: fields.boolean("tokenizer.ggml.add_bos_token") ?? addsBos,
    addsEos: fields.boolean("tokenizer.ggml.add_eos_token") ?? false,
  };
}

/** Creates an entry of `added_tokens` in tokenizer.json. */
export function createAddedToken(id: number, content: string, special: boolean, stripsRight = false): JsonObject {
  return { id, content, single_word: false, lstrip: false, rstrip: stripsRight, normalized: false, special };
}

/**
 * Creates the `post_processor` that adds beginning-of-text and end-of-text tokens, or null for
 * none.
 */
export function createPostProcessor(special: GgufSpecialTokens, tokens: readonly string[]): JsonObject | null {
  const before = special.addsBos ? special.bos : undefined;
  const after = special.addsEos ? special.eos : undefined;
  if (before === undefined && after === undefined) return null;
  const specialToken = (id: number | undefined, index: number): JsonObject[] =>
    id === undefined ? [] : [{ SpecialToken: { id: tokens[id], type_id: index } }];
  const wrapSequences = (sequences: readonly string[]): JsonObject[] =>
    sequences.flatMap((id, index): JsonObject[] => [
      ...specialToken(before, index),
      { Sequence: { id, type_id: index } },
      ...specialToken(after, index),
    ]);
  const used = [before, after].filter((id) => id !== undefined);
  return {
    type: "TemplateProcessing",
    single: wrapSequences(["A"]),
    pair: wrapSequences(["A", "B"]),
    special_tokens: Object.fromEntries(
      used.map((id) => [tokens[id], { id: tokens[id], ids: [id], tokens: [tokens[id]] }]),
    ),
  };
}
