import { LlamaGymError } from "../../core/errors.js";
import type { ChatMessage, Tokenizer, ToolDefinition } from "../../models/text/index.js";

/** A conversation; what the assistant says in it is learnt. */
export interface ChatExample {
  readonly messages: readonly ChatMessage[];
  /** Functions that its template lists. */
  readonly tools?: readonly ToolDefinition[];
}

/** A prompt, as text or as messages, and how it goes on; the completion is learnt, with the end token after it. */
export interface CompletionExample {
  readonly prompt: string | readonly ChatMessage[];
  readonly completion: string | readonly ChatMessage[];
}

/** Tokens as they are; those with a 1 in the mask are learnt. */
export interface TokenExample {
  readonly tokens: readonly number[];
  readonly lossMask: ArrayLike<number>;
}

export type SftExample = ChatExample | CompletionExample | TokenExample;

/**
 * An example's tokens and which of them are learnt: the assistant's messages with their end tokens, or the completion.
 * `findTokenizer` is asked only where text is encoded. Throws INVALID_ARGUMENT for a mask of another length, and what the
 * tokenizer's chat template throws.
 */
export function encodeExample(example: SftExample, getTokenizer: () => Tokenizer): TokenExample {
  if ("tokens" in example) return checkTokenExample(example);
  const tokenizer = getTokenizer();
  if ("messages" in example) return encodeMessages(example.messages, 0, tokenizer, example.tools);
  const { prompt, completion } = example;
  if (typeof prompt === "string" && typeof completion === "string") return encodeTexts(prompt, completion, tokenizer);
  const promptMessages = typeof prompt === "string" ? [{ role: "user", content: prompt }] : prompt;
  const completionMessages = typeof completion === "string" ? [{ role: "assistant", content: completion }] : completion;
  return encodeMessages([...promptMessages, ...completionMessages], promptMessages.length, tokenizer);
}

/** Messages before `from` are given, even where the assistant says them. */
function encodeMessages(
  messages: readonly ChatMessage[],
  firstTrained: number,
  tokenizer: Tokenizer,
  tools?: readonly ToolDefinition[],
): TokenExample {
  const { ids, assistantSpans } = tokenizer.encodeChat(messages, { tools });
  const untrainedTurns = messages.slice(0, firstTrained).filter(({ role }) => role === "assistant").length;
  const lossMask = new Uint8Array(ids.length);
  for (const [start, end] of assistantSpans.slice(untrainedTurns)) lossMask.fill(1, start, end);
  return { tokens: ids, lossMask };
}

function encodeTexts(prompt: string, completion: string, tokenizer: Tokenizer): TokenExample {
  const promptTokens = tokenizer.encode(prompt);
  const continuation = tokenizer.encodeContinuation(completion, promptTokens.at(-1));
  const endToken = tokenizer.eosTokenId;
  const completionTokens =
    endToken === undefined || continuation.at(-1) === endToken ? continuation : [...continuation, endToken];
  const lossMask = new Uint8Array(promptTokens.length + completionTokens.length);
  return { tokens: [...promptTokens, ...completionTokens], lossMask: lossMask.fill(1, promptTokens.length) };
}

function checkTokenExample(example: TokenExample): TokenExample {
  const { tokens, lossMask } = example;
  if (tokens.length === lossMask.length) return example;
  throw new LlamaGymError(
    "INVALID_ARGUMENT",
    `An example has ${tokens.length} tokens, but a mask of ${lossMask.length}; give a 0 or 1 for each token.`,
  );
}

/** How many tokens of an example are learnt. The first token is none of them: nothing comes before it. */
export function countLossTokens({ lossMask }: TokenExample): number {
  let count = 0;
  for (let i = 1; i < lossMask.length; i++) if (lossMask[i] !== 0) count++;
  return count;
}
