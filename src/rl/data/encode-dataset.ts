import { invalidArgument, LlamaGymError } from "../../core/errors.js";
import type { Tokenizer } from "../../models/text/index.js";
import {
  countAnswers,
  countLossTokens,
  encodeExample,
  type ExampleOptions,
  type SftExample,
  type TokenExample,
} from "./sft-example.js";

/** Tokenized examples. */
export interface EncodedDataset {
  readonly examples: readonly TokenExample[];
  /** Number of truncated examples. */
  readonly truncated: number;
  /** Number of skipped examples: too long, or without loss tokens. */
  readonly skipped: number;
  /** Number of loss tokens in all. */
  readonly lossTokens: number;
  /** Number of answers that have loss tokens. */
  readonly answers: number;
}

export interface EncodingOptions extends ExampleOptions {
  /** Treatment of examples longer than `maxLength`. */
  readonly overlong: "truncate" | "skip" | "error";
  /** Maximum number of tokens of an example. */
  readonly maxLength: number;
}

/**
 * Tokenizes examples. `getTokenizer` is called only for examples that contain text.
 *
 * @throws INVALID_ARGUMENT for an invalid example, for one longer than `maxLength` if `overlong` is
 * "error", and if none is left.
 */
export function encodeDataset(
  examples: readonly SftExample[],
  getTokenizer: () => Tokenizer,
  { maxLength, overlong, ...options }: EncodingOptions,
): EncodedDataset {
  let truncated = 0;
  const kept: TokenExample[] = [];
  examples.forEach((example, i) => {
    const encoded = encodeWithIndex(example, i, getTokenizer, options);
    const { length } = encoded.tokens;
    if (length > maxLength) {
      if (overlong === "error")
        throw invalidArgument(
          `${describeSource(example, i)} has ${length} tokens, more than \`maxLength\` (${maxLength}). Shorten it, or set \`overlong\` to "truncate" or "skip".`,
        );
      if (overlong === "skip") return;
      truncated++;
    }
    const fitted = length > maxLength ? truncate(encoded, maxLength) : encoded;
    if (countLossTokens(fitted) > 0) kept.push(fitted);
  });
  if (kept.length === 0)
    throw invalidArgument(
      examples.length === 0
        ? "There are no examples."
        : `None of the ${examples.length} examples has a loss token within \`maxLength\` (${maxLength}). Check that they contain assistant messages.`,
    );
  return {
    examples: kept,
    truncated,
    skipped: examples.length - kept.length,
    lossTokens: sumOf(kept, countLossTokens),
    answers: sumOf(kept, countAnswers),
  };
}

const sumOf = (examples: readonly TokenExample[], count: (example: TokenExample) => number) =>
  examples.reduce((sum, example) => sum + count(example), 0);

function encodeWithIndex(
  example: SftExample,
  index: number,
  getTokenizer: () => Tokenizer,
  options: ExampleOptions,
): TokenExample {
  try {
    return encodeExample(example, getTokenizer, options);
  } catch (error) {
    if (!(error instanceof LlamaGymError)) throw error;
    throw new LlamaGymError(error.code, `${describeSource(example, index)} is invalid: ${error.message}`, {
      cause: error,
    });
  }
}

const describeSource = ({ source }: SftExample, index: number) => source ?? `Example ${index + 1}`;

function truncate({ tokens, lossMask }: TokenExample, length: number): TokenExample {
  return { tokens: tokens.slice(0, length), lossMask: Array.from(lossMask).slice(0, length) };
}
