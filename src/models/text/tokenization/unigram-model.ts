import { byteTokenIds } from "./byte-pair-model.js";
import { characterLength } from "./text-windows.js";
import { type JsonRecord, corruptFileError } from "./tokenizer-json.js";

/** Unigram vocabulary: tokens with log-probabilities. */
export function readUnigramVocabulary(model: JsonRecord): Map<string, number> {
  const vocabulary = new Map<string, number>();
  readScoredTokens(model).forEach(([token], id) => vocabulary.set(token, id));
  return vocabulary;
}

/** A node of the trie of tokens, by code point. */
interface TrieNode {
  readonly children: Map<number, TrieNode>;
  /** The token that ends here. */
  id: number | undefined;
}

const createNode = (): TrieNode => ({ children: new Map(), id: undefined });

/**
 * How much less likely than the least likely token an unknown character is, as in SentencePiece.
 */
const UNKNOWN_PENALTY = 10;

/**
 * SentencePiece's unigram model (Kudo 2018): encodes a piece as the tokens of highest total
 * log-probability, found by Viterbi's algorithm. Unknown text becomes bytes or the unknown token.
 */
export class UnigramModel {
  private readonly root = createNode();
  private readonly scores: Float64Array;
  private readonly unknownScore: number;
  private readonly unknownId: number | undefined;
  private readonly byteFallbackIds: readonly (number | undefined)[] | null;

  /** @param isControl whether text never becomes the token */
  constructor(config: JsonRecord, vocabulary: ReadonlyMap<string, number>, isControl: (id: number) => boolean) {
    const vocab = readScoredTokens(config);
    this.unknownId = typeof config.unk_id === "number" ? config.unk_id : undefined;
    if (this.unknownId !== undefined && !vocab[this.unknownId])
      throw corruptFileError(
        `tokenizer.json: unk_id ${this.unknownId} is outside the vocabulary of ${vocab.length} tokens.`,
      );
    this.scores = Float64Array.from(vocab, ([, score]) => score);
    this.unknownScore = this.scores.reduce((min, score) => Math.min(min, score), Infinity) - UNKNOWN_PENALTY;
    if (this.unknownId !== undefined) this.scores[this.unknownId] = this.unknownScore;
    for (const [token, id] of vocabulary) if (token !== "" && !isControl(id)) this.addToken(token, id);
    this.byteFallbackIds = config.byte_fallback === true ? byteTokenIds(vocabulary) : null;
  }

  encode(piece: string): readonly number[] {
    const { starts, tokens } = this.findBestPath(piece);
    const path: (readonly [start: number, end: number])[] = [];
    for (let end = piece.length; end > 0; end = starts[end]) path.push([starts[end], end]);
    const ids: number[] = [];
    let unknownStart = -1;
    for (const [start, end] of path.toReversed()) {
      const id = tokens[end];
      if (id < 0) {
        if (unknownStart < 0) unknownStart = start;
        continue;
      }
      if (unknownStart >= 0) ids.push(...this.encodeUnknown(piece.slice(unknownStart, start)));
      unknownStart = -1;
      ids.push(id);
    }
    if (unknownStart >= 0) ids.push(...this.encodeUnknown(piece.slice(unknownStart)));
    return ids;
  }

  private addToken(token: string, id: number): void {
    let node = this.root;
    for (const character of token) {
      const code = character.codePointAt(0)!;
      let child = node.children.get(code);
      if (child === undefined) node.children.set(code, (child = createNode()));
      node = child;
    }
    node.id = id;
  }

  /**
   * Returns, for each end, the start and the id of the last token of the best path to it; -1 is an
   * unknown character.
   */
  private findBestPath(piece: string): { starts: Int32Array; tokens: Int32Array } {
    const totals = new Float64Array(piece.length + 1).fill(-Infinity);
    const starts = new Int32Array(piece.length + 1);
    const tokens = new Int32Array(piece.length + 1).fill(-1);
    totals[0] = 0;
    const extend = (start: number, end: number, id: number, score: number) => {
      const total = totals[start] + score;
      // Of equally likely paths, the one with the longest last token stays.
      if (total <= totals[end]) return;
      totals[end] = total;
      starts[end] = start;
      tokens[end] = id;
    };
    for (let start = 0; start < piece.length; start += characterLength(piece, start)) {
      const characterEnd = start + characterLength(piece, start);
      let isKnown = false;
      let node: TrieNode | undefined = this.root;
      for (let end = start; end < piece.length;) {
        node = node.children.get(piece.codePointAt(end)!);
        if (node === undefined) break;
        end += characterLength(piece, end);
        if (node.id === undefined) continue;
        extend(start, end, node.id, this.scores[node.id]);
        isKnown ||= end === characterEnd;
      }
      if (!isKnown) extend(start, characterEnd, -1, this.unknownScore);
    }
    return { starts, tokens };
  }

  private encodeUnknown(text: string): number[] {
    if (this.byteFallbackIds) {
      const bytes = Array.from(new TextEncoder().encode(text), (byte) => this.byteFallbackIds?.[byte]);
      if (bytes.every((byte) => byte !== undefined)) return bytes;
    }
    return this.unknownId === undefined ? [] : [this.unknownId];
  }
}

function readScoredTokens(model: JsonRecord): [string, number][] {
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
