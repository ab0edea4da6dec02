import { Unigram } from "@huggingface/tokenizers";

import { byteTokens } from "./bpe.js";
import { type JsonObject, corrupt } from "./json.js";

/** The vocabulary of a Unigram model: a list of tokens with their log-probabilities. */
export function unigramVocabulary(model: JsonObject): Map<string, number> {
  const vocabulary = new Map<string, number>();
  scoredTokens(model).forEach(([token], id) => vocabulary.set(token, id));
  return vocabulary;
}

/**
 * SentencePiece's unigram model (Kudo 2018): a piece becomes the tokens of the highest total log-probability.
 * The best path is found by @huggingface/tokenizers; what it cannot spell becomes bytes or the unknown token here.
 */
export class UnigramModel {
  private readonly lattice: Unigram;
  private readonly unknown: number | undefined;
  private readonly fallback: readonly (number | undefined)[] | null;

  constructor(
    config: JsonObject,
    private readonly vocabulary: ReadonlyMap<string, number>,
  ) {
    const vocab = scoredTokens(config);
    this.unknown = typeof config.unk_id === "number" ? config.unk_id : undefined;
    if (this.unknown !== undefined && !vocab[this.unknown]) {
      throw corrupt(`tokenizer.json: unk_id ${this.unknown} is outside the vocabulary of ${vocab.length} tokens.`);
    }
    // The lattice needs an unknown token for what no token spells; a model without one drops it below.
    this.lattice = new Unigram({ type: "Unigram", vocab, unk_id: this.unknown ?? 0 }, "");
    this.fallback = config.byte_fallback === true ? byteTokens(vocabulary) : null;
  }

  encode(piece: string): readonly number[] {
    const ids: number[] = [];
    let unknownText = "";
    const flush = () => {
      if (unknownText !== "") ids.push(...this.unknownIds(unknownText));
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

  private unknownIds(text: string): number[] {
    if (this.fallback) {
      const bytes = Array.from(new TextEncoder().encode(text), (byte) => this.fallback?.[byte]);
      if (bytes.every((byte) => byte !== undefined)) return bytes;
    }
    return this.unknown === undefined ? [] : [this.unknown];
  }
}

function scoredTokens(model: JsonObject): [string, number][] {
  const { vocab } = model;
  if (!Array.isArray(vocab) || vocab.length === 0)
    throw corrupt("tokenizer.json: the Unigram model has no vocabulary.");
  return vocab.map((entry: unknown, index): [string, number] => {
    if (Array.isArray(entry)) {
      const [token, score]: unknown[] = entry;
      if (typeof token === "string" && typeof score === "number") return [token, score];
    }
    throw corrupt(`tokenizer.json: entry ${index} of the Unigram vocabulary is ${JSON.stringify(entry)}.`);
  });
}
