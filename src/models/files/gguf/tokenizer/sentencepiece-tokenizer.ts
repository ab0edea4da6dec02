import { corruptFileError } from "../../../../core/files/file-errors.js";
import type { JsonObject } from "../../../../core/json.js";
import type { GgufFields } from "../gguf-fields.js";
import {
  createAddedToken,
  createPostProcessor,
  TokenType,
  type GgufSpecialTokens,
  type GgufVocabulary,
} from "./vocabulary.js";

/** SentencePiece's space character. */
const SPACE = "\u2581";

/**
 * Builds the tokenizer.json of a SentencePiece BPE vocabulary (tokenizer.ggml.model "llama").
 * Merges are derived from the pieces; characters without a piece fall back to bytes.
 */
export function buildSentencePieceTokenizer(
  fields: GgufFields,
  vocabulary: GgufVocabulary,
  special: GgufSpecialTokens,
): JsonObject {
  const isGemma = fields.architecture.startsWith("gemma");
  const tokens = isGemma ? vocabulary.tokens.map(escapeSpaces) : vocabulary.tokens;
  const addSpacePrefix = fields.boolean("tokenizer.ggml.add_space_prefix") ?? true;
  const template = createPostProcessor(special, tokens);
  const unknown = special.unknown ?? Array.prototype.indexOf.call(vocabulary.types, TokenType.unknown);
  return {
    version: "1.0",
    truncation: null,
    padding: null,
    added_tokens: listAddedTokens(fields, tokens, vocabulary),
    normalizer: createNormalizer(addSpacePrefix),
    pre_tokenizer: null,
    post_processor: template,
    decoder: createDecoder(addSpacePrefix),
    model: {
      type: "BPE",
      dropout: null,
      unk_token: tokens[unknown] ?? null,
      continuing_subword_prefix: null,
      end_of_word_suffix: null,
      fuse_unk: true,
      byte_fallback: true,
      ignore_merges: false,
      vocab: Object.fromEntries(tokens.map((token, id) => [token, id])),
      merges: deriveMerges(fields, { ...vocabulary, tokens }, isGemma),
    },
  };
}

/**
 * Restores SentencePiece's space character in Gemma's runs of spaces, which GGUF stores as spaces.
 */
function escapeSpaces(token: string): string {
  return /^ +$/u.test(token) ? SPACE.repeat(token.length) : token;
}

function listAddedTokens(fields: GgufFields, tokens: readonly string[], stored: GgufVocabulary): JsonObject[] {
  // Phi-3's special tokens strip following whitespace, except these.
  const keepsTrailingSpace = new Set(["<unk>", "<s>", "<|endoftext|>"]);
  const isPhi3 = fields.architecture === "phi3";
  const added: JsonObject[] = [];
  for (const [id, token] of tokens.entries()) {
    const type = stored.types[id];
    if (type === TokenType.control || type === TokenType.unknown) {
      added.push(createAddedToken(id, token, true, isPhi3 && !keepsTrailingSpace.has(token)));
    } else if (type === TokenType.userDefined && stored.tokens[id] === token) {
      // Runs of spaces, which are stored as such, are merges.
      added.push(createAddedToken(id, token, false, isPhi3));
    }
  }
  return added;
}

function createNormalizer(addSpacePrefix: boolean): JsonObject {
  const replace: JsonObject = { type: "Replace", pattern: { String: " " }, content: SPACE };
  return addSpacePrefix ? { type: "Sequence", normalizers: [{ type: "Prepend", prepend: SPACE }, replace] } : replace;
}

function createDecoder(addSpacePrefix: boolean): JsonObject {
  const steps: JsonObject[] = [
    { type: "Replace", pattern: { String: SPACE }, content: " " },
    { type: "ByteFallback" },
    { type: "Fuse" },
  ];
  if (addSpacePrefix) steps.push({ type: "Strip", content: " ", start: 1, stop: 0 });
  return { type: "Sequence", decoders: steps };
}

/**
 * Returns Gemma's merge priority: runs of whitespace first, then file order, as its scores do not
 * follow the training order.
 */
function getGemmaScore(piece: string, id: number): number {
  return /^(?:\u2581+|\n+|\t+)$/u.test(piece) ? 1 : -id;
}

/** Derives merges from the pieces: every split of a piece into two pieces, by descending score. */
function deriveMerges(
  fields: GgufFields,
  { tokens, types, scores, merges }: GgufVocabulary,
  isGemma: boolean,
): string[][] {
  if (merges !== undefined) {
    return merges.map((merge) => {
      const separator = merge.indexOf(" ", 1);
      return [merge.slice(0, separator), merge.slice(separator + 1)];
    });
  }
  if (scores === undefined && !isGemma)
    throw corruptFileError(fields.path, 'its metadata lacks "tokenizer.ggml.scores"');
  const pieces = new Map<string, number>();
  for (const [id, token] of tokens.entries()) {
    if (types[id] === TokenType.normal || types[id] === TokenType.userDefined) pieces.set(token, id);
  }
  const getScore = ([piece, id]: readonly [string, number]): number =>
    isGemma || scores === undefined ? getGemmaScore(piece, id) : scores[id];
  const sortedPieces = [...pieces]
    .map((piece) => ({ piece, score: getScore(piece) }))
    .sort((a, b) => b.score - a.score);
  const derived: string[][] = [];
  for (let start = 0, end = 0; start < sortedPieces.length; start = end) {
    const tied: TokenSplit[] = [];
    for (; end < sortedPieces.length && sortedPieces[end].score === sortedPieces[start].score; end++)
      tied.push(...listSplits(sortedPieces[end].piece[0], pieces));
    tied.sort((a, b) => b.leftLength - a.leftLength || b.rightLength - a.rightLength || a.leftId - b.leftId);
    for (const { left, right } of tied) derived.push([left, right]);
  }
  return derived;
}

interface TokenSplit {
  readonly left: string;
  readonly right: string;
  readonly leftId: number;
  readonly leftLength: number;
  readonly rightLength: number;
}

function listSplits(piece: string, pieces: ReadonlyMap<string, number>): TokenSplit[] {
  const splits: TokenSplit[] = [];
  for (let index = 1; index < piece.length; index++) {
    const left = piece.slice(0, index);
    const leftId = pieces.get(left);
    if (leftId === undefined) continue;
    const right = piece.slice(index);
    if (!pieces.has(right)) continue;
    splits.push({ left, right, leftId, leftLength: countCharacters(left), rightLength: countCharacters(right) });
  }
  return splits;
}

/** Counts code points. */
function countCharacters(text: string): number {
  let count = text.length;
  for (let i = 0; i < text.length; i++) if ((text.charCodeAt(i) & 0xfc00) === 0xdc00) count -= 1;
  return count;
}
