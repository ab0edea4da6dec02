import { invalidArgument, LlamaGymError } from "../../core/errors.js";
import type { ChatMessage, Tokenizer } from "../../models/text/index.js";
import type { EncodingOptions } from "../data/encode-dataset.js";
import {
  countLossTokens,
  encodeCompletion,
  type CompletionExample,
  type ExampleSource,
  type TemplateInputs,
  type TokenExample,
} from "../data/sft-example.js";

type TextOrMessages = string | readonly ChatMessage[];

/** A prompt with a completion that is preferred to another one. */
export interface PreferenceExample extends ExampleSource, TemplateInputs {
  readonly prompt: TextOrMessages;
  readonly chosen: TextOrMessages;
  readonly rejected: TextOrMessages;
}

/** A prompt with a completion that is desirable (`label`) or not. */
export interface UnpairedPreferenceExample extends CompletionExample {
  readonly label: boolean;
}

/** A tokenized pair; the loss is on the completions. */
export interface TokenPair {
  readonly chosen: TokenExample;
  readonly rejected: TokenExample;
}

/** A tokenized completion with its label. */
export interface LabeledTokens {
  readonly example: TokenExample;
  /** Number of tokens before the completion. */
  readonly promptLength: number;
  /** The whole completion, even where `example` is truncated. */
  readonly completion: readonly number[];
  readonly label: boolean;
}

/** Tokenized examples of preferences. */
export interface EncodedPreferences<Encoded> {
  readonly examples: readonly Encoded[];
  /** Number of examples of which a sequence was truncated. */
  readonly truncated: number;
  /** Number of skipped examples: too long, or without a token of a completion. */
  readonly skipped: number;
}

type EncodeOptions = Pick<EncodingOptions, "maxLength" | "overlong" | "toolCalls">;

/**
 * Tokenizes pairs. Sequences longer than `maxLength` keep their start; a pair without a token of
 * either completion is skipped.
 * @throws INVALID_ARGUMENT for an invalid example, for a long one if `overlong` is "error", and if
 * none is left.
 */
export function encodePairs(
  examples: readonly PreferenceExample[],
  getTokenizer: () => Tokenizer,
  options: EncodeOptions,
): EncodedPreferences<TokenPair> {
  return encodeAll(examples, options, ({ chosen, rejected, ...example }) => {
    const both = [chosen, rejected].map((completion) =>
      encodeCompletion({ ...example, completion }, getTokenizer, options),
    );
    // Both completions begin behind the tokens that the prompt has in both texts.
    const start = Math.min(...both.map(promptLength));
    const [first, second] = both.map(({ tokens }) => withCompletionAt(tokens, start));
    return { sequences: [first, second], create: ([a, b]) => ({ chosen: a, rejected: b }) };
  });
}

/** Tokenizes labeled completions. @throws as `encodePairs` */
export function encodeLabeled(
  examples: readonly UnpairedPreferenceExample[],
  getTokenizer: () => Tokenizer,
  options: EncodeOptions,
): EncodedPreferences<LabeledTokens> {
  return encodeAll(examples, options, ({ label, ...example }) => {
    const encoded = encodeCompletion(example, getTokenizer, options);
    const start = promptLength(encoded);
    const completion = encoded.tokens.slice(start);
    return { sequences: [encoded], create: ([kept]) => ({ example: kept, promptLength: start, completion, label }) };
  });
}

interface EncodedSequences<Encoded> {
  readonly sequences: readonly TokenExample[];
  /** Creates the encoded example of sequences that may have been truncated. */
  readonly create: (sequences: readonly TokenExample[]) => Encoded;
}

function encodeAll<Example extends ExampleSource, Encoded>(
  examples: readonly Example[],
  { maxLength, overlong }: EncodeOptions,
  encode: (example: Example) => EncodedSequences<Encoded>,
): EncodedPreferences<Encoded> {
  let truncated = 0;
  const kept: Encoded[] = [];
  for (const [i, example] of examples.entries()) {
    const name = example.source ?? `Example ${i + 1}`;
    const { sequences, create } = encodeNamed(name, () => encode(example));
    const longest = Math.max(...sequences.map(({ tokens }) => tokens.length));
    if (longest > maxLength && overlong === "error")
      throw invalidArgument(
        `${name} has ${longest} tokens, more than \`maxLength\` (${maxLength}). Shorten it, or set \`overlong\` to "truncate" or "skip".`,
      );
    if (longest > maxLength && overlong === "skip") continue;
    const fitted = sequences.map((sequence) => truncate(sequence, maxLength));
    if (!fitted.every((sequence) => countLossTokens(sequence) > 0)) continue;
    if (longest > maxLength) truncated++;
    kept.push(create(fitted));
  }
  if (kept.length === 0)
    throw invalidArgument(
      examples.length === 0
        ? "There are no examples."
        : `None of the ${examples.length} examples has tokens of its completions within \`maxLength\` (${maxLength}).`,
    );
  return { examples: kept, truncated, skipped: examples.length - kept.length };
}

function encodeNamed<Result>(name: string, encode: () => Result): Result {
  try {
    return encode();
  } catch (error) {
    if (!(error instanceof LlamaGymError)) throw error;
    throw new LlamaGymError(error.code, `${name} is invalid: ${error.message}`, { cause: error });
  }
}

/** Returns the number of tokens before the first loss token. */
function promptLength({ lossMask }: TokenExample): number {
  const first = Array.from(lossMask).findIndex((bit) => bit !== 0);
  return first < 0 ? lossMask.length : first;
}

const withCompletionAt = (tokens: readonly number[], start: number): TokenExample => ({
  tokens,
  lossMask: new Uint8Array(tokens.length).fill(1, start),
});

function truncate({ tokens, lossMask }: TokenExample, length: number): TokenExample {
  if (tokens.length <= length) return { tokens, lossMask };
  return { tokens: tokens.slice(0, length), lossMask: Array.from(lossMask).slice(0, length) };
}
