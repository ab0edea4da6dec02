import { BytePairModel } from "./byte-pair-model.js";
import { type JsonRecord, corruptFileError, isObject, unsupportedTypeError } from "./tokenizer-json.js";
import { UnigramModel, readUnigramVocabulary } from "./unigram-model.js";

/** Converts a pre-tokenized piece to token ids. */
export interface TokenModel {
  encode(piece: string): readonly number[];
}

const supported = ["BPE", "Unigram", "WordLevel"];

/** Reads the model's vocabulary: id by token, without added tokens. */
export function readVocabulary(model: JsonRecord): Map<string, number> {
  if (Array.isArray(model.vocab)) return readUnigramVocabulary(model);
  if (!isObject(model.vocab)) throw corruptFileError('tokenizer.json: the model has no "vocab".');
  const vocabulary = new Map<string, number>();
  for (const [token, id] of Object.entries(model.vocab)) {
    if (typeof id !== "number" || !Number.isSafeInteger(id) || id < 0 || id > 0x7fffffff)
      throw corruptFileError(
        `tokenizer.json: the id of token ${JSON.stringify(token)} is ${JSON.stringify(id)}, not an index.`,
      );
    vocabulary.set(token, id);
  }
  return vocabulary;
}

/**
 * Creates the model that tokenizer.json describes. As in SentencePiece, text never becomes a token
 * for which `isControl` is true, even if the vocabulary contains it.
 */
export function createModel(
  model: JsonRecord,
  vocabulary: ReadonlyMap<string, number>,
  isControl: (id: number) => boolean = () => false,
): TokenModel {
  const type = model.type ?? inferType(model);
  switch (type) {
    case "BPE":
      return new BytePairModel(model, vocabulary, isControl);
    case "Unigram":
      return new UnigramModel(model, vocabulary, isControl);
    case "WordLevel": {
      const unknownId = typeof model.unk_token === "string" ? vocabulary.get(model.unk_token) : undefined;
      return {
        encode: (piece) => {
          const id = vocabulary.get(piece);
          const known = id === undefined || isControl(id) ? unknownId : id;
          return known === undefined ? [] : [known];
        },
      };
    }
    default:
      throw unsupportedTypeError("A model", type, supported);
  }
}

/** Older files omit the model's type. */
function inferType(model: JsonRecord): string | undefined {
  if (Array.isArray(model.vocab)) return "Unigram";
  return Array.isArray(model.merges) ? "BPE" : undefined;
}
