import { LlamaGymError } from "../../core/errors.js";
import type { ChatMessage, Tokenizer } from "../../models/text/index.js";
import type { GenerationOptions, ContextOverflow } from "../generation-options.js";

/** What a reply follows: messages, a text to go on with, or token ids. */
export type PromptInput = string | readonly ChatMessage[] | readonly number[] | Int32Array;

/** A prompt's tokens, and how to leave out its oldest part. */
export interface EncodedPrompt {
  readonly tokens: readonly number[];
  /** Whether the reply goes on with a text of which the prompt is the beginning. */
  readonly isContinuation: boolean;
  /** The tokens without the oldest part; they may still be more than `room`. */
  readonly truncatedTo: (maxTokens: number) => readonly number[];
}

type ChatTemplateOptions = Pick<GenerationOptions, "tools" | "chatTemplate" | "variables">;

/**
 * Reads a prompt. `tokenizer` throws where the model has none.
 * Throws INVALID_ARGUMENT for what is no prompt, TEMPLATE_FAILED for messages that the model's chat template refuses.
 */
export function encodePrompt(
  input: PromptInput,
  { vocabSize, tokenizer, bosTokenId }: PromptEncoder,
  { tools, chatTemplate, variables }: ChatTemplateOptions,
): EncodedPrompt {
  if (isMessages(input)) {
    const templateOptions = { tools, chatTemplate, variables };
    const tokens = renderChat(tokenizer(), input, templateOptions);
    return {
      tokens,
      isContinuation: false,
      truncatedTo: (maxTokens) => dropOldestMessages(tokenizer(), input, templateOptions, maxTokens),
    };
  }
  const tokens = typeof input === "string" ? tokenizer().encode(input) : validateTokenIds(input, vocabSize);
  if (tokens.length === 0) throw invalid("The prompt is empty; give at least one token.");
  const truncatedTo = (maxTokens: number) =>
    // What begins every text of the model stays.
    tokens[0] === bosTokenId && maxTokens > 1
      ? [tokens[0], ...tokens.slice(tokens.length - maxTokens + 1)]
      : tokens.slice(tokens.length - maxTokens);
  return { tokens, isContinuation: true, truncatedTo };
}

/** What a model knows about prompts. */
export interface PromptEncoder {
  readonly vocabSize: number;
  readonly tokenizer: () => Tokenizer;
  readonly bosTokenId: number | undefined;
}

export interface ContextBudget {
  readonly maxPositions: number;
  readonly contextOverflow: ContextOverflow | undefined;
  readonly maxNewTokens: number;
  /** Otherwise a prompt that leaves less room than that makes the reply shorter. */
  readonly isLengthExplicit: boolean;
}

/** The tokens of a prompt that fits the context together with its reply, and the reply's greatest length; throws CONTEXT_OVERFLOW. */
export function fitToContext(
  prompt: EncodedPrompt,
  { maxPositions, contextOverflow = "error", maxNewTokens, isLengthExplicit }: ContextBudget,
): { tokens: readonly number[]; maxNewTokens: number } {
  if (isLengthExplicit && maxNewTokens >= maxPositions)
    throw contextOverflowError(`${maxNewTokens} new tokens`, maxPositions, "Ask for fewer.");
  const isTruncating = contextOverflow === "drop-oldest";
  // A reply whose length nobody asked for takes what the context has left.
  const reservedTokens = isLengthExplicit ? maxNewTokens : isTruncating ? Math.min(maxNewTokens, maxPositions >> 1) : 1;
  const maxPromptTokens = maxPositions - reservedTokens;
  const tokens =
    isTruncating && prompt.tokens.length > maxPromptTokens ? prompt.truncatedTo(maxPromptTokens) : prompt.tokens;
  if (tokens.length > maxPromptTokens) {
    const advice = isTruncating
      ? "Its last message alone is too long."
      : 'Shorten it, or set contextOverflow to "drop-oldest".';
    throw contextOverflowError(
      `A prompt of ${tokens.length} tokens and ${reservedTokens} new ones`,
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
  const text = tokenizer.applyChatTemplate(messages, { ...templateOptions, addGenerationPrompt: true });
  return tokenizer.encode(text, { addSpecialTokens: false });
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
  // Templates want the first message after the system's to be a user's.
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
  throw invalid(
    `${String(invalidId)} is not a token of this model: its ids are whole numbers from 0 to ${vocabSize - 1}.`,
  );
}

function isMessages(input: PromptInput): input is readonly ChatMessage[] {
  if (typeof input === "string" || input instanceof Int32Array) return false;
  if (!Array.isArray(input)) {
    const inputType = input === null ? "null" : typeof input;
    throw invalid(`A prompt is a text, a list of messages or a list of token ids, not ${inputType}.`);
  }
  return typeof input[0] === "object";
}

function contextOverflowError(what: string, maxPositions: number, advice: string): LlamaGymError {
  return new LlamaGymError(
    "CONTEXT_OVERFLOW",
    `${what} need more than the model's context of ${maxPositions}. ${advice}`,
  );
}

function invalid(message: string): LlamaGymError {
  return new LlamaGymError("INVALID_ARGUMENT", message);
}
