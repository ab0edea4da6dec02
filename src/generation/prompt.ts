import { LlamaGymError } from "../errors.js";
import type { ChatMessage, Tokenizer } from "../text/index.js";
import type { GenerationOptions, OverflowPolicy } from "./options.js";

/** What a reply follows: messages, a text to go on with, or token ids. */
export type PromptInput = string | readonly ChatMessage[] | readonly number[] | Int32Array;

/** A prompt's tokens, and how to leave out its oldest part. */
export interface Prompt {
  readonly tokens: readonly number[];
  /** Whether the reply goes on with a text of which the prompt is the beginning. */
  readonly continues: boolean;
  /** The tokens without the oldest part; they may still be more than `room`. */
  readonly shortened: (room: number) => readonly number[];
}

type ChatSettings = Pick<GenerationOptions, "tools" | "chatTemplate" | "variables">;

/**
 * Reads a prompt. `tokenizer` throws where the model has none.
 * Throws INVALID_ARGUMENT for what is no prompt, TEMPLATE_FAILED for messages that the model's chat template refuses.
 */
export function readPrompt(
  input: PromptInput,
  { vocabSize, tokenizer, bosTokenId }: PromptReader,
  { tools, chatTemplate, variables }: ChatSettings,
): Prompt {
  if (isMessages(input)) {
    const settings = { tools, chatTemplate, variables };
    const tokens = renderChat(tokenizer(), input, settings);
    return { tokens, continues: false, shortened: (room) => withoutOldest(tokenizer(), input, settings, room) };
  }
  const tokens = typeof input === "string" ? tokenizer().encode(input) : checkedTokens(input, vocabSize);
  if (tokens.length === 0) throw invalid("The prompt is empty; give at least one token.");
  const shortened = (room: number) =>
    // What begins every text of the model stays.
    tokens[0] === bosTokenId && room > 1
      ? [tokens[0], ...tokens.slice(tokens.length - room + 1)]
      : tokens.slice(tokens.length - room);
  return { tokens, continues: true, shortened };
}

/** What a model knows about prompts. */
export interface PromptReader {
  readonly vocabSize: number;
  readonly tokenizer: () => Tokenizer;
  readonly bosTokenId: number | undefined;
}

export interface RoomRequest {
  readonly maxPositions: number;
  readonly overflow: OverflowPolicy | undefined;
  readonly maxNewTokens: number;
  /** Otherwise a prompt that leaves less room than that makes the reply shorter. */
  readonly lengthIsAsked: boolean;
}

/** The tokens of a prompt that fits the context together with its reply, and the reply's greatest length; throws CONTEXT_OVERFLOW. */
export function fitPrompt(
  prompt: Prompt,
  { maxPositions, overflow = "error", maxNewTokens, lengthIsAsked }: RoomRequest,
): { tokens: readonly number[]; maxNewTokens: number } {
  if (lengthIsAsked && maxNewTokens >= maxPositions)
    throw tooLong(`${maxNewTokens} new tokens`, maxPositions, "Ask for fewer.");
  const truncates = overflow === "truncate-left";
  // A reply whose length nobody asked for takes what the context has left.
  const reserved = lengthIsAsked ? maxNewTokens : truncates ? Math.min(maxNewTokens, maxPositions >> 1) : 1;
  const room = maxPositions - reserved;
  const tokens = truncates && prompt.tokens.length > room ? prompt.shortened(room) : prompt.tokens;
  if (tokens.length > room) {
    const advice = truncates
      ? "Its last message alone is too long."
      : 'Shorten it, or set overflow to "truncate-left".';
    throw tooLong(`A prompt of ${tokens.length} tokens and ${reserved} new ones`, maxPositions, advice);
  }
  return { tokens, maxNewTokens: Math.min(maxNewTokens, maxPositions - tokens.length) };
}

function renderChat(tokenizer: Tokenizer, messages: readonly ChatMessage[], settings: ChatSettings): number[] {
  const text = tokenizer.applyChatTemplate(messages, { ...settings, addGenerationPrompt: true });
  return tokenizer.encode(text, { addSpecialTokens: false });
}

function withoutOldest(
  tokenizer: Tokenizer,
  messages: readonly ChatMessage[],
  settings: ChatSettings,
  room: number,
): number[] {
  const first = messages.findIndex(({ role }) => role !== "system");
  const system = messages.slice(0, Math.max(0, first));
  let tokens: number[] = [];
  // Templates want the first message after the system's to be a user's.
  const starts = messages.flatMap(({ role }, i) => (role === "user" && i >= first ? [i] : []));
  for (const start of starts) {
    tokens = renderChat(tokenizer, [...system, ...messages.slice(start)], settings);
    if (tokens.length <= room) break;
  }
  return starts.length === 0 ? renderChat(tokenizer, messages, settings) : tokens;
}

function checkedTokens(input: readonly number[] | Int32Array, vocabSize: number): number[] {
  const tokens = Array.from(input);
  const wrong = tokens.find((id) => !Number.isSafeInteger(id) || id < 0 || id >= vocabSize);
  if (wrong === undefined) return tokens;
  throw invalid(`${String(wrong)} is not a token of this model: its ids are whole numbers from 0 to ${vocabSize - 1}.`);
}

function isMessages(input: PromptInput): input is readonly ChatMessage[] {
  if (typeof input === "string" || input instanceof Int32Array) return false;
  if (!Array.isArray(input)) {
    const found = input === null ? "null" : typeof input;
    throw invalid(`A prompt is a text, a list of messages or a list of token ids, not ${found}.`);
  }
  return typeof input[0] === "object";
}

function tooLong(what: string, maxPositions: number, advice: string): LlamaGymError {
  return new LlamaGymError(
    "CONTEXT_OVERFLOW",
    `${what} need more than the model's context of ${maxPositions}. ${advice}`,
  );
}

function invalid(message: string): LlamaGymError {
  return new LlamaGymError("INVALID_ARGUMENT", message);
}
