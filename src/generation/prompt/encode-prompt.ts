import { invalidArgument, LlamaGymError } from "../../core/errors.js";
import { describeValue } from "../../core/format.js";
import type { Steps } from "../../core/steps.js";
import type { ChatMessage, RenderedText, RenderOptions, Tokenizer } from "../../models/text/index.js";
import type { GenerationOptions, ContextOverflow } from "../generation-options.js";

/** A prompt: messages, a text to continue, or token ids. */
export type PromptInput = string | readonly ChatMessage[] | readonly number[] | Int32Array;

/** The tokens of a prompt, and how to truncate it. */
export interface EncodedPrompt {
  /** A prompt beyond `maxTokens` may be encoded in part. */
  readonly tokens: readonly number[];
  /** Whether the completion continues the prompt's text. */
  readonly isContinuation: boolean;
  /** Drops the oldest part; the result may still be longer than `maxTokens`. */
  readonly truncatedTo: (maxTokens: number) => Steps<readonly number[]>;
}

/** How messages are rendered. */
export interface ChatPromptOptions extends Pick<
  GenerationOptions,
  "tools" | "chatTemplate" | "variables" | "splitSpecialTokens"
> {
  /** Whether the completion continues the last message instead of being a new one. */
  readonly continueFinalMessage?: boolean;
  /**
   * Whether the prompt ends with the header of the assistant's message. Default true, unless the
   * last message is continued.
   */
  readonly addGenerationPrompt?: boolean;
}

/**
 * Encodes a prompt, in steps. A prompt that certainly has more than `maxTokens` is refused before
 * it is tokenized.
 * @throws INVALID_ARGUMENT for an invalid prompt, TEMPLATE_FAILED for messages that the chat
 * template rejects, CONTEXT_OVERFLOW for more than `maxTokens`.
 */
export function* encodePrompt(
  input: PromptInput,
  { vocabSize, tokenizer, bosTokenId }: PromptEncoder,
  { tools, chatTemplate, variables, splitSpecialTokens, ...ending }: ChatPromptOptions,
  maxTokens = Infinity,
): Steps<EncodedPrompt> {
  const checkLength = (text: string) => {
    const count = maxTokens < Infinity ? tokenizer().minTokenCount(text) : 0;
    if (count <= maxTokens) return;
    throw contextOverflowError(`The prompt's at least ${count} tokens`, maxTokens, SHORTEN_ADVICE);
  };
  const limit = maxEncoded(maxTokens);
  if (isMessages(input)) {
    const { continueFinalMessage = false, addGenerationPrompt = !continueFinalMessage } = ending;
    const templateOptions = {
      tools,
      chatTemplate,
      variables,
      splitSpecialTokens,
      continueFinalMessage,
      addGenerationPrompt,
    };
    const messages = tokenizer().prepareMessages(input, templateOptions);
    const rendered = yield* tokenizer().renderChatSteps(messages, templateOptions);
    checkLength(rendered.text);
    yield;
    const tokens = yield* tokenizer().encodeContinuationSteps(rendered, undefined, {}, limit);
    return {
      tokens,
      isContinuation: continueFinalMessage,
      truncatedTo: (length) => dropOldestMessages(tokenizer(), messages, templateOptions, length),
    };
  }
  const chatOption = Object.entries({ tools, chatTemplate, variables }).find(([, value]) => value !== undefined)?.[0];
  if (chatOption !== undefined)
    throw invalidArgument(`\`${chatOption}\` is for messages, but the prompt has none. Pass messages, or remove it.`);
  if (typeof input === "string") checkLength(input);
  const tokens =
    typeof input === "string" ? yield* tokenizer().encodeSteps(input, {}, limit) : validateTokenIds(input, vocabSize);
  if (tokens.length === 0) throw invalidArgument("The prompt is empty; it must have at least one token.");
  // eslint-disable-next-line require-yield
  const truncatedTo = function* (length: number): Steps<readonly number[]> {
    // The BOS token stays.
    return tokens[0] === bosTokenId && length > 1
      ? [tokens[0], ...tokens.slice(tokens.length - length + 1)]
      : tokens.slice(tokens.length - length);
  };
  return { tokens, isContinuation: true, truncatedTo };
}

/**
 * Encodes texts that continue a prompt, in steps. @throws INVALID_ARGUMENT for an empty one, and
 * what is neither a text nor token ids.
 */
export function* encodeContinuations(
  continuations: readonly (string | readonly number[])[],
  prompt: EncodedPrompt,
  { tokenizer, vocabSize }: Pick<PromptEncoder, "tokenizer" | "vocabSize">,
): Steps<(readonly number[])[]> {
  const isContinuation = (each: unknown) =>
    typeof each === "string" || Array.isArray(each) || each instanceof Int32Array;
  if (!Array.isArray(continuations) || !continuations.every(isContinuation))
    throw invalidArgument(
      `Continuations must be a list of texts or lists of token ids, got ${describeValue(continuations)}.`,
    );
  const previousToken = prompt.tokens.at(-1);
  const encoded: (readonly number[])[] = [];
  for (const [i, continuation] of continuations.entries()) {
    const tokens =
      typeof continuation === "string"
        ? yield* tokenizer().encodeContinuationSteps(continuation, previousToken)
        : validateTokenIds(continuation, vocabSize);
    if (tokens.length === 0) throw invalidArgument(`Continuation ${i} is empty; it must have at least one token.`);
    encoded.push(tokens);
  }
  return encoded;
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

/** Fits a prompt and its completion into the context, in steps. @throws CONTEXT_OVERFLOW */
export function* fitToContext(
  prompt: EncodedPrompt,
  { maxPositions, contextOverflow = "error", maxNewTokens, isLengthExplicit }: ContextBudget,
): Steps<{ tokens: readonly number[]; maxNewTokens: number }> {
  if (isLengthExplicit && maxNewTokens >= maxPositions)
    throw contextOverflowError(`${maxNewTokens} new tokens`, maxPositions, "Request fewer.");
  const isTruncating = contextOverflow === "drop-oldest";
  // A completion without a requested length takes the rest of the context.
  const reservedTokens = isLengthExplicit ? maxNewTokens : isTruncating ? Math.min(maxNewTokens, maxPositions >> 1) : 1;
  const maxPromptTokens = maxPositions - reservedTokens;
  const tokens =
    isTruncating && prompt.tokens.length > maxPromptTokens ? yield* prompt.truncatedTo(maxPromptTokens) : prompt.tokens;
  if (tokens.length > maxPromptTokens) {
    const advice = isTruncating ? "The last message alone is too long." : SHORTEN_ADVICE;
    const count = `${tokens.length > maxEncoded(maxPositions) ? "at least " : ""}${tokens.length}`;
    throw contextOverflowError(`The prompt's ${count} tokens and ${reservedTokens} new ones`, maxPositions, advice);
  }
  return { tokens, maxNewTokens: Math.min(maxNewTokens, maxPositions - tokens.length) };
}

/**
 * Returns how many tokens of a prompt are encoded at least: an error has the exact length of one
 * that is not much too long.
 */
const maxEncoded = (maxTokens: number) => 2 * maxTokens;

/** What a program can do about a long prompt, and a request cannot. */
export const DROP_OLDEST_ADVICE = ', or set contextOverflow to "drop-oldest"';
const SHORTEN_ADVICE = `Shorten the prompt${DROP_OLDEST_ADVICE}.`;

function* dropOldestMessages(
  tokenizer: Tokenizer,
  messages: readonly ChatMessage[],
  templateOptions: RenderOptions,
  maxTokens: number,
): Steps<number[]> {
  const first = messages.findIndex(({ role }) => role !== "system");
  const system = messages.slice(0, Math.max(0, first));
  let rendered: RenderedText | undefined;
  // Templates require a user's message after the system's.
  const starts = messages.flatMap(({ role }, i) => (role === "user" && i >= first ? [i] : []));
  for (const start of starts) {
    rendered = yield* tokenizer.renderChatSteps([...system, ...messages.slice(start)], templateOptions);
    if (tokenizer.minTokenCount(rendered.text) > maxTokens) continue;
    const tokens = yield* tokenizer.encodeContinuationSteps(rendered, undefined, {}, maxTokens);
    if (tokens.length <= maxTokens) return tokens;
  }
  rendered ??= yield* tokenizer.renderChatSteps(messages, templateOptions);
  return yield* tokenizer.encodeContinuationSteps(rendered, undefined, {}, maxEncoded(maxTokens));
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
