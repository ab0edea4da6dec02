import { corrupt } from "../failure.js";
import type { JsonObject } from "../json.js";
import type { GgufFields } from "./fields.js";
import { addedToken, postProcessor, TokenType, type SpecialTokens, type Vocabulary } from "./vocabulary.js";

/** What SentencePiece writes for a space. */
const SPACE = "\u2581";

/**
 * The tokenizer.json of a SentencePiece BPE vocabulary (tokenizer.ggml.model "llama"): merges are derived from the
 * pieces, characters without a piece fall back to bytes.
 */
export function sentencePieceTokenizer(fields: GgufFields, vocabulary: Vocabulary, special: SpecialTokens): JsonObject {
  const gemma = fields.architecture.startsWith("gemma");
  const tokens = gemma ? vocabulary.tokens.map(respell) : vocabulary.tokens;
  const prefix = fields.boolean("tokenizer.ggml.add_space_prefix") ?? true;
  const template = postProcessor(special, tokens);
  const unknown = special.unknown ?? Array.prototype.indexOf.call(vocabulary.types, TokenType.unknown);
  return {
    version: "1.0",
    truncation: null,
    padding: null,
    added_tokens: addedTokens(fields, tokens, vocabulary.types),
    normalizer: normaliser(prefix),
    pre_tokenizer: null,
    post_processor: template,
    decoder: decoder(prefix),
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
      merges: mergesOf(fields, { ...vocabulary, tokens }, gemma),
    },
  };
}

/** Gemma's runs of spaces stand in GGUF files as real spaces; the model's own text has them as SentencePiece's. */
function respell(token: string): string {
  return /^ +$/u.test(token) ? SPACE.repeat(token.length) : token;
}

function addedTokens(fields: GgufFields, tokens: readonly string[], types: ArrayLike<number>): JsonObject[] {
  // Phi-3's special tokens swallow the white space that follows them, apart from these.
  const keepsSpace = new Set(["<unk>", "<s>", "<|endoftext|>"]);
  const phi3 = fields.architecture === "phi3";
  const added: JsonObject[] = [];
  for (const [id, token] of tokens.entries()) {
    const type = types[id];
    if (type === TokenType.control || type === TokenType.unknown) {
      added.push(addedToken(id, token, true, phi3 && !keepsSpace.has(token)));
    } else if (type === TokenType.userDefined && !/^\u2581+$/u.test(token)) {
      added.push(addedToken(id, token, false, phi3));
    }
  }
  return added;
}

function normaliser(prefix: boolean): JsonObject {
  const replace: JsonObject = { type: "Replace", pattern: { String: " " }, content: SPACE };
  return prefix ? { type: "Sequence", normalizers: [{ type: "Prepend", prepend: SPACE }, replace] } : replace;
}

function decoder(prefix: boolean): JsonObject {
  const steps: JsonObject[] = [
    { type: "Replace", pattern: { String: SPACE }, content: " " },
    { type: "ByteFallback" },
    { type: "Fuse" },
  ];
  if (prefix) steps.push({ type: "Strip", content: " ", start: 1, stop: 0 });
  return { type: "Sequence", decoders: steps };
}

/**
 * How early Gemma merges a piece: runs of white space first, then the pieces in the order in which they stand in the
 * file (its scores do not follow the order in which they were made).
 */
function gemmaScore(piece: string, id: number): number {
  return /^(?:\u2581+|\n+|\t+)$/u.test(piece) ? 1 : -id;
}

/** The merges that the pieces imply: every cut of a piece into two pieces, those of the piece with the best score first. */
function mergesOf(fields: GgufFields, { tokens, types, scores, merges }: Vocabulary, gemma: boolean): string[][] {
  if (merges !== undefined) {
    return merges.map((merge) => {
      const cut = merge.indexOf(" ", 1);
      return [merge.slice(0, cut), merge.slice(cut + 1)];
    });
  }
  if (scores === undefined && !gemma) throw corrupt(fields.path, 'its metadata lacks "tokenizer.ggml.scores"');
  const pieces = new Map<string, number>();
  for (const [id, token] of tokens.entries()) {
    if (types[id] === TokenType.normal || types[id] === TokenType.userDefined) pieces.set(token, id);
  }
  const scoreOf = ([piece, id]: readonly [string, number]): number =>
    gemma || scores === undefined ? gemmaScore(piece, id) : scores[id];
  const inOrder = [...pieces].map((piece) => ({ piece, score: scoreOf(piece) })).sort((a, b) => b.score - a.score);
  const derived: string[][] = [];
  for (let start = 0, end = 0; start < inOrder.length; start = end) {
    const equals: Cut[] = [];
    for (; end < inOrder.length && inOrder[end].score === inOrder[start].score; end++) {
      equals.push(...cutsOf(inOrder[end].piece[0], pieces));
    }
    equals.sort((a, b) => b.leftLength - a.leftLength || b.rightLength - a.rightLength || a.leftId - b.leftId);
    for (const { left, right } of equals) derived.push([left, right]);
  }
  return derived;
}

interface Cut {
  readonly left: string;
  readonly right: string;
  readonly leftId: number;
  readonly leftLength: number;
  readonly rightLength: number;
}

function cutsOf(piece: string, pieces: ReadonlyMap<string, number>): Cut[] {
  const cuts: Cut[] = [];
  for (let at = 1; at < piece.length; at++) {
    const left = piece.slice(0, at);
    const leftId = pieces.get(left);
    if (leftId === undefined) continue;
    const right = piece.slice(at);
    if (!pieces.has(right)) continue;
    cuts.push({ left, right, leftId, leftLength: characterCount(left), rightLength: characterCount(right) });
  }
  return cuts;
}

/** Characters of a text, with those beyond 16 bits counted once. */
function characterCount(text: string): number {
  let count = text.length;
  for (let i = 0; i < text.length; i++) if ((text.charCodeAt(i) & 0xfc00) === 0xdc00) count -= 1;
  return count;
}
