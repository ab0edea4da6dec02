import { LlamaGymError } from "../../core/errors.js";
import type { Tokenizer } from "../../models/text/index.js";
import type { SftConfig } from "../algorithms/sft/settings.js";
import { encodeExample, countLossTokens, type SftExample, type TokenExample } from "./sft-example.js";

/** Examples as tokens, and what could not be used. */
export interface EncodedDataset {
  readonly examples: readonly TokenExample[];
  /** Examples that lost their end. */
  readonly truncated: number;
  /** Examples that were left out: too long, or without a token to learn. */
  readonly skipped: number;
}

export interface EncodingOptions extends Pick<SftConfig, "overlong" | "assistantOnlyLoss"> {
  /** Tokens of an example at most. */
  readonly maxLength: number;
}

/**
 * Encodes examples. Throws INVALID_ARGUMENT for one that cannot be, by its number; for one that is too long where `overlong`
 * is "error"; and when none is left. `tokenizer` is asked only where text is encoded.
 */
export function encodeDataset(
  examples: readonly SftExample[],
  tokenizer: () => Tokenizer,
  { maxLength, overlong, assistantOnlyLoss }: EncodingOptions,
): EncodedDataset {
  let truncated = 0;
  const kept: TokenExample[] = [];
  examples.forEach((example, i) => {
    const encoded = withLossMask(encodeWithIndex(example, i, tokenizer), assistantOnlyLoss);
    const { length } = encoded.tokens;
    if (length > maxLength) {
      if (overlong === "error") {
        throw invalidArgument(
          `Example ${i + 1} has ${length} tokens, more than maxLength ${maxLength}. Shorten it, or set overlong to "truncate" or "skip".`,
        );
      }
      if (overlong === "skip") return;
      truncated++;
    }
    const fitted = length > maxLength ? truncate(encoded, maxLength) : encoded;
    if (countLossTokens(fitted) > 0) kept.push(fitted);
  });
  if (kept.length === 0) {
    throw invalidArgument(
      examples.length === 0
        ? "There is no example to learn from."
        : `None of the ${examples.length} examples has a token to learn within maxLength ${maxLength}: is there an assistant's message in them?`,
    );
  }
  return { examples: kept, truncated, skipped: examples.length - kept.length };
}

function encodeWithIndex(example: SftExample, index: number, tokenizer: () => Tokenizer): TokenExample {
  try {
    return encodeExample(example, tokenizer);
  } catch (error) {
    if (!(error instanceof LlamaGymError)) throw error;
    throw new LlamaGymError(error.code, `Example ${index + 1} cannot be used: ${error.message}`, { cause: error });
  }
}

function withLossMask(example: TokenExample, assistantOnlyLoss: boolean): TokenExample {
  return assistantOnlyLoss
    ? example
    : { tokens: example.tokens, lossMask: new Uint8Array(example.tokens.length).fill(1) };
}

function truncate({ tokens, lossMask }: TokenExample, length: number): TokenExample {
  return { tokens: tokens.slice(0, length), lossMask: Array.from(lossMask).slice(0, length) };
}

function invalidArgument(message: string): LlamaGymError {
  return new LlamaGymError("INVALID_ARGUMENT", message);
}
