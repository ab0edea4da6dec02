import { invalidArgument, LlamaGymError } from "../../core/errors.js";
import type { ChatMessage, Tokenizer } from "../../models/text/index.js";
import type { GenerationOptions, ContextOverflow } from "../generation-options.js";

/** A prompt: messages, a text to continue, or token ids. */
export type PromptInput = string | readonly ChatMessage[] | readonly number[] | Int32Array;

/** The tokens of a prompt, and how to truncate it. */
export interface EncodedPrompt {
  readonly tokens: readonly number[];
  /** Whether the completion continues the prompt's text. */
  readonly isContinuation: boolean;
  /** Drops the oldest part; the result may still be longer than `maxTokens`. */
  readonly truncatedTo: (maxTokens: number) => readonly number[];
}

type ChatTemplateOptions = Pick<GenerationOptions, "tools" | "chatTemplate" | "variables" | "splitSpecialTokens">;

/**
 * Encodes a prompt.
 * @throws INVALID_ARGUMENT for an invalid prompt, TEMPLATE_FAILED for messages that the chat template rejects.
 */
export function encodePrompt(
  input: PromptInput,
  { vocabSize, tokenizer, bosTokenId }: PromptEncoder,
  { tools, chatTemplate, variables, splitSpecialTokens }: ChatTemplateOptions,
): EncodedPrompt {
  if (isMessages(input)) {
    const templateOptions = { tools, chatTemplate, variables, splitSpecialTokens };
    const tokens = renderChat(tokenizer(), input, templateOptions);
    return {
      tokens,
      isContinuation: false,
      truncatedTo: (maxTokens) => dropOldestMessages(tokenizer(), input, templateOptions, maxTokens),
    };
  }
  const tokens = typeof input === "string" ? tokenizer().encode(input) : validateTokenIds(input, vocabSize);
  if (tokens.length === 0) throw invalidArgument("The prompt is empty; it must have at least one token.");
  const truncatedTo = (maxTokens: number) =>
    // The BOS token stays.
    tokens[0] === bosTokenId && maxTokens > 1
      ? [tokens[0], ...tokens.slice(tokens.length - maxTokens + 1)]
      : tokens.slice(tokens.length - maxTokens);
  return { tokens, isContinuation: true, truncatedTo };
}

/** Encodes texts that continue a prompt. @throws INVALID_ARGUMENT for an empty one. */
export function encodeContinuations(
  continuations: readonly (string | readonly number[])[],
  prompt: EncodedPrompt,
  tokenizer: () => Tokenizer,
): (readonly number[])[] {
  const previousToken = prompt.tokens.at(-1);
  return continuations.map((continuation, i) => {
    const tokens =
      typeof continuation === "string" ? tokenizer().encodeContinuation(continuation, previousToken) : continuation;
    if (tokens.length > 0) return tokens;
    throw invalidArgument(`Continuation ${i} is empty; it must have at least one token.`);
  });
}

/** The parts of a model that encode prompts. */
export interface PromptEncoder {
  readonly vocabSize: number;
  /** Returns the model's tokenizer, or throws if the model has none. */
  readonly tokenizer: () => Tokenizer;
  readonly bosTokenId: number | undefined;
}

export interface ContextBudget {
  readonly maxPositions: number;
  readonly contextOverflow: ContextOverflow | undefined;
  readonly maxNewTokens: number;
  /** Whether `maxNewTokens` was requested; otherwise a long prompt shortens the completion. */
  readonly isLengthExplicit: boolean;
}

/** Fits a prompt and its completion into the context. @throws CONTEXT_OVERFLOW */
export function fitToContext(
  prompt: EncodedPrompt,
  { maxPositions, contextOverflow = "error", maxNewTokens, isLengthExplicit }: ContextBudget,
): { tokens: readonly number[]; maxNewTokens: number } {
  if (isLengthExplicit && maxNewTokens >= maxPositions)
    throw contextOverflowError(`${maxNewTokens} new tokens`, maxPositions, "Request fewer.");
  const isTruncating = contextOverflow === "drop-oldest";
  // A completion without a requested length takes the rest of the context.
  const reservedTokens = isLengthExplicit ? maxNewTokens : isTruncating ? Math.min(maxNewTokens, maxPositions >> 1) : 1;
  const maxPromptTokens = maxPositions - reservedTokens;
  const tokens =
    isTruncating && prompt.tokens.length > maxPromptTokens ? prompt.truncatedTo(maxPromptTokens) : prompt.tokens;
  if (tokens.length > maxPromptTokens) {
    const advice = isTruncating
      ? "The last message alone is too long."
      : 'Shorten the prompt, or set contextOverflow to "drop-oldest".';
    throw contextOverflowError(
      `The prompt's ${tokens.length} tokens and ${reservedTokens} new ones`,
      maxPositions,
      advice,
    );
  }
  return { tokens, maxNewTokens: Math.min(maxNewTokens, maxPositions - tokens.length) };
}

function renderChat(
  tokenizer: Tokenizer,
  messages: readonly ChatMessage[],
  templateOptions: ChatTemplateOptions,
): number[] {
  const rendered = tokenizer.renderChat(messages, { ...templateOptions, addGenerationPrompt: true });
  return tokenizer.encodeContinuation(rendered, undefined);
}

function dropOldestMessages(
  tokenizer: Tokenizer,
  messages: readonly ChatMessage[],
  templateOptions: ChatTemplateOptions,
  maxTokens: number,
): number[] {
  const first = messages.findIndex(({ role }) => role !== "system");
  const system = messages.slice(0, Math.max(0, first));
  let tokens: number[] = [];
  // Templates require a user's message after the system's.
  const starts = messages.flatMap(({ role }, i) => (role === "user" && i >= first ? [i] : []));
  for (const start of starts) {
    tokens = renderChat(tokenizer, [...system, ...messages.slice(start)], templateOptions);
    if (tokens.length <= maxTokens) break;
  }
  return starts.length === 0 ? renderChat(tokenizer, messages, templateOptions) : tokens;
}

function validateTokenIds(input: readonly number[] | Int32Array, vocabSize: number): number[] {
  const tokens = Array.from(input);
  const invalidId = tokens.find((id) => !Number.isSafeInteger(id) || id < 0 || id >= vocabSize);
  if (invalidId === undefined) return tokens;
  throw invalidArgument(
    `${String(invalidId)} is not a token of this model; token ids are integers from 0 to ${vocabSize - 1}.`,
  );
}

function isMessages(input: PromptInput): input is readonly ChatMessage[] {
  if (typeof input === "string" || input instanceof Int32Array) return false;
  if (!Array.isArray(input)) {
    const inputType = input === null ? "null" : typeof input;
    throw invalidArgument(`A prompt must be a string, a list of messages or a list of token ids, got ${inputType}.`);
  }
  return typeof input[0] === "object";
}

function contextOverflowError(subject: string, maxPositions: number, advice: string): LlamaGymError {
  return new LlamaGymError(
    "CONTEXT_OVERFLOW",
    `${subject} exceed the model's context of ${maxPositions} tokens. ${advice}`,
  );
}
