import { invalidArgument, LlamaGymError } from "../../core/errors.js";
import { excerpt } from "../../core/format.js";
import type { ChatMessage, Tokenizer, ToolDefinition } from "../../models/text/index.js";

/** Where an example comes from. */
interface ExampleSource {
  /** File and line, for errors. */
  readonly source?: string;
}

/** A conversation; the loss is on the assistant's messages. */
export interface ChatExample extends ExampleSource {
  readonly messages: readonly ChatMessage[];
  /** Functions that the chat template lists. */
  readonly tools?: readonly ToolDefinition[];
}

/** A prompt and its completion, each as text or messages; the loss is on the completion and its end token. */
export interface CompletionExample extends ExampleSource {
  readonly prompt: string | readonly ChatMessage[];
  readonly completion: string | readonly ChatMessage[];
}

/** Token ids and a mask that is nonzero for loss tokens. */
export interface TokenExample extends ExampleSource {
  readonly tokens: readonly number[];
  readonly lossMask: ArrayLike<number>;
}

/** Conversation, or prompt and completion, to train on. */
export type SftExample = ChatExample | CompletionExample | TokenExample;

/**
 * Tokenizes an example. Loss tokens are those of the assistant's messages with their end tokens, or of the completion.
 * `getTokenizer` is called only for text.
 * @throws INVALID_ARGUMENT for a mask of the wrong length and for an answer that the chat template's text does not show, and
 * the errors of the chat template.
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

/** Encodes a conversation; messages before `firstTrained` have no loss tokens. */
function encodeMessages(
  messages: readonly ChatMessage[],
  firstTrained: number,
  tokenizer: Tokenizer,
  tools?: readonly ToolDefinition[],
): TokenExample {
  const { ids, assistantSpans, spanMessages, missingAnswers } = tokenizer.encodeChat(messages, { tools });
  const missing = missingAnswers.find((index) => index >= firstTrained);
  if (missing !== undefined) throw missingAnswerError(messages[missing], missing);
  const lossMask = new Uint8Array(ids.length);
  let message = 0;
  assistantSpans.forEach(([start, end], i) => {
    message = spanMessages[i] ?? message;
    if (message >= firstTrained) lossMask.fill(1, start, end);
  });
  return { tokens: ids, lossMask };
}

function missingAnswerError(answer: ChatMessage, index: number): LlamaGymError {
  return invalidArgument(
    `The assistant's message ${index + 1} (${excerpt(JSON.stringify(answer), MAX_ANSWER_LENGTH)}) is not found in the text that ` +
      "the chat template writes, so it cannot be trained. The template may leave it out, or want the content as one string; " +
      "change the message, or mark answers in the template with {% generation %} blocks.",
  );
}

/** Maximum characters of an answer in an error. */
const MAX_ANSWER_LENGTH = 200;

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
    `\`lossMask\` must have one value per token (${tokens.length}), got ${lossMask.length}.`,
  );
}

/** Counts the answers of an example: the runs of loss tokens. */
export function countAnswers({ lossMask }: TokenExample): number {
  let count = 0;
  for (let i = 1; i < lossMask.length; i++) if (lossMask[i] !== 0 && (i === 1 || lossMask[i - 1] === 0)) count++;
  return count;
}

/** Counts the loss tokens of an example. The first token is never one, because nothing predicts it. */
export function countLossTokens({ lossMask }: TokenExample): number {
  let count = 0;
  for (let i = 1; i < lossMask.length; i++) if (lossMask[i] !== 0) count++;
  return count;
}
