import { Unigram } from "@huggingface/tokenizers";

import { byteTokenIds } from "./byte-pair-model.js";
import { type JsonObject, corruptFileError } from "./tokenizer-json.js";

/** Unigram vocabulary: tokens with log-probabilities. */
export function readUnigramVocabulary(model: JsonObject): Map<string, number> {
  const vocabulary = new Map<string, number>();
  readScoredTokens(model).forEach(([token], id) => vocabulary.set(token, id));
  return vocabulary;
}

/**
 * SentencePiece's unigram model (Kudo 2018): encodes a piece as the tokens of highest total
 * log-probability. @huggingface/tokenizers finds the best path; unknown text becomes bytes or the
 * unknown token here.
 */
export class UnigramModel {
  private readonly lattice: Unigram;
  private readonly unknownId: number | undefined;
  private readonly byteFallbackIds: readonly (number | undefined)[] | null;

  constructor(
    config: JsonObject,
    private readonly vocabulary: ReadonlyMap<string, number>,
  ) {
    const vocab = readScoredTokens(config);
    this.unknownId = typeof config.unk_id === "number" ? config.unk_id : undefined;
    if (this.unknownId !== undefined && !vocab[this.unknownId])
      throw corruptFileError(
        `tokenizer.json: unk_id ${this.unknownId} is outside the vocabulary of ${vocab.length} tokens.`,
      );
    // The lattice requires an unknown token, which is dropped below if the model has none.
    this.lattice = new Unigram({ type: "Unigram", vocab, unk_id: this.unknownId ?? 0 }, "");
    this.byteFallbackIds = config.byte_fallback === true ? byteTokenIds(vocabulary) : null;
  }

  encode(piece: string): readonly number[] {
    const ids: number[] = [];
    let unknownText = "";
    const flush = () => {
      if (unknownText !== "") ids.push(...this.encodeUnknown(unknownText));
      unknownText = "";
    };
    for (const token of this.lattice.tokenize(piece)) {
      const id = this.vocabulary.get(token);
      if (id === undefined) {
        unknownText += token;
      } else {
        flush();
        ids.push(id);
      }
    }
    flush();
    return ids;
  }

  private encodeUnknown(text: string): number[] {
    if (this.byteFallbackIds) {
      const bytes = Array.from(new TextEncoder().encode(text), (byte) => this.byteFallbackIds?.[byte]);
      if (bytes.every((byte) => byte !== undefined)) return bytes;
    }
    return this.unknownId === undefined ? [] : [this.unknownId];
  }
}

function readScoredTokens(model: JsonObject): [string, number][] {
  const { vocab } = model;
  if (!Array.isArray(vocab) || vocab.length === 0)
    throw corruptFileError("tokenizer.json: the Unigram model has no vocabulary.");
  return vocab.map((entry: unknown, index): [string, number] => {
    if (Array.isArray(entry)) {
      const [token, score]: unknown[] = entry;
      if (typeof token === "string" && typeof score === "number") return [token, score];
    }
    throw corruptFileError(`tokenizer.json: entry ${index} of the Unigram vocabulary is ${JSON.stringify(entry)}.`);
  });
}
