import { LlamaGymError } from "../../errors.js";
import type { Tokenizer } from "../../text/index.js";
import type { SftConfig } from "./config.js";
import { encodeExample, learntTokens, type SftExample, type TokenExample } from "./example.js";

/** Examples as tokens, and what could not be used. */
export interface EncodedDataset {
  readonly examples: readonly TokenExample[];
  /** Examples that lost their end. */
  readonly truncated: number;
  /** Examples that were left out: too long, or without a token to learn. */
  readonly skipped: number;
}

export interface EncodingOptions extends Pick<SftConfig, "overlong" | "lossOn"> {
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
  { maxLength, overlong, lossOn }: EncodingOptions,
): EncodedDataset {
  let truncated = 0;
  const kept: TokenExample[] = [];
  examples.forEach((example, i) => {
    const encoded = learning(encodeNumbered(example, i, tokenizer), lossOn);
    const { length } = encoded.tokens;
    if (length > maxLength) {
      if (overlong === "error") {
        throw invalid(
          `Example ${i + 1} has ${length} tokens, more than maxLength ${maxLength}. Shorten it, or set overlong to "truncate" or "skip".`,
        );
      }
      if (overlong === "skip") return;
      truncated++;
    }
    const fitting = length > maxLength ? cut(encoded, maxLength) : encoded;
    if (learntTokens(fitting) > 0) kept.push(fitting);
  });
  if (kept.length === 0) {
    throw invalid(
      examples.length === 0
        ? "There is no example to learn from."
        : `None of the ${examples.length} examples has a token to learn within maxLength ${maxLength}: is there an assistant's message in them?`,
    );
  }
  return { examples: kept, truncated, skipped: examples.length - kept.length };
}

function encodeNumbered(example: SftExample, index: number, tokenizer: () => Tokenizer): TokenExample {
  try {
    return encodeExample(example, tokenizer);
  } catch (error) {
    if (!(error instanceof LlamaGymError)) throw error;
    throw new LlamaGymError(error.code, `Example ${index + 1} cannot be used: ${error.message}`, { cause: error });
  }
}

function learning(example: TokenExample, lossOn: SftConfig["lossOn"]): TokenExample {
  return lossOn === "all" ? { tokens: example.tokens, mask: new Uint8Array(example.tokens.length).fill(1) } : example;
}

function cut({ tokens, mask }: TokenExample, length: number): TokenExample {
  return { tokens: tokens.slice(0, length), mask: Array.from(mask).slice(0, length) };
}

function invalid(message: string): LlamaGymError {
  return new LlamaGymError("INVALID_ARGUMENT", message);
}
