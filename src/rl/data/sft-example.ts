import { invalidArgument, type LlamaGymError } from "../../core/errors.js";
import { excerpt } from "../../core/format.js";
import { stringifyJson } from "../../core/lossless-json.js";
import type { ChatMessage, Tokenizer, ToolDefinition } from "../../models/text/index.js";
import { type FunctionTool, readToolCallFormat, toTemplateInput } from "../tools/tool-calls.js";

/** Where an example comes from. */
export interface ExampleSource {
  /** File and line, for errors. */
  readonly source?: string;
}

/** What the chat template renders in addition to messages. */
export interface TemplateInputs {
  /** Functions that the chat template lists. */
  readonly tools?: readonly ToolDefinition[];
  /**
   * Whether answers are calls always, as requests with `tool_choice` say. It changes how tools are
   * described as text. Default "auto".
   */
  readonly toolChoice?: "auto" | "required";
  /**
   * Further template variables, such as { enable_thinking: false }: TRL's `chat_template_kwargs`.
   */
  readonly variables?: Readonly<Record<string, unknown>>;
}

/** A conversation; the loss is on the assistant's messages, except those whose `weight` is 0. */
export interface ChatExample extends ExampleSource, TemplateInputs {
  readonly messages: readonly ChatMessage[];
}

/**
 * A prompt and its completion, each as text or messages; the loss is on the completion and its end
 * token.
 */
export interface CompletionExample extends ExampleSource, TemplateInputs {
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

/** How examples are tokenized. */
export interface ExampleOptions {
  /** Whether the loss is on the completions only. Default true. */
  readonly assistantOnlyLoss?: boolean;
  /** Number of tokens of the model, for examples of tokens. */
  readonly vocabSize?: number;
  /**
   * How tools are written where the chat template renders none: not at all ("template", the
   * default, as in TRL), or as text in the manner of `llamagym serve`.
   */
  readonly toolCalls?: "template" | "text";
}

/**
 * Tokenizes an example. The assistant's messages with their end tokens, or the completion, have the
 * loss tokens; without `assistantOnlyLoss` all tokens but those of messages whose weight is 0.
 * `getTokenizer` is called only for text.
 * @throws INVALID_ARGUMENT for a mask of the wrong length, for a token that the model does not have
 * and for an answer that the chat template's text does not show, and the errors of the chat
 * template.
 */
export function encodeExample(
  example: SftExample,
  getTokenizer: () => Tokenizer,
  { assistantOnlyLoss = true, vocabSize, toolCalls }: ExampleOptions = {},
): TokenExample {
  if ("tokens" in example) {
    const checked = checkTokenExample(example, vocabSize);
    return assistantOnlyLoss ? checked : withAllTokens(checked.tokens);
  }
  const tokenizer = getTokenizer();
  const options = { tokenizer, assistantOnlyLoss, toolCalls, ...example };
  if ("messages" in example) return encodeMessages(example.messages, 0, options);
  const { prompt, completion } = example;
  if (typeof prompt === "string" && typeof completion === "string") {
    const encoded = encodeTexts(prompt, completion, tokenizer);
    return assistantOnlyLoss ? encoded : withAllTokens(encoded.tokens);
  }
  const { messages, promptLength } = toMessages(example);
  return encodeMessages(messages, promptLength, options);
}

/** Returns the messages of a prompt and its completion, with the number of the prompt's. */
export function toMessages({ prompt, completion }: Pick<CompletionExample, "prompt" | "completion">) {
  const promptMessages = typeof prompt === "string" ? [{ role: "user", content: prompt }] : prompt;
  const answers = typeof completion === "string" ? [{ role: "assistant", content: completion }] : completion;
  return { messages: [...promptMessages, ...answers], promptLength: promptMessages.length };
}

interface PreparationOptions extends TemplateInputs, Pick<ExampleOptions, "toolCalls"> {
  readonly tokenizer: Tokenizer;
}

interface MessageOptions extends PreparationOptions {
  readonly assistantOnlyLoss: boolean;
}

/** Encodes a conversation; messages before `firstTrained` have no loss tokens. */
function encodeMessages(
  given: readonly ChatMessage[],
  firstGiven: number,
  { assistantOnlyLoss, ...options }: MessageOptions,
): TokenExample {
  const { tokenizer } = options;
  const { messages, inputs } = prepareForTemplate(given.map(withoutWeight), options);
  // The description of tools may be a message more.
  const added = messages.length - given.length;
  const isUnweighted = (index: number) => given[index - added]?.weight === 0;
  const firstTrained = firstGiven === 0 ? 0 : firstGiven + added;
  const { ids, assistantSpans, spanMessages, missingAnswers } = tokenizer.encodeChat(messages, inputs);
  // A template whose {% generation %} blocks have the header of an answer would train it.
  const completionStart =
    firstTrained > 0 && tokenizer.marksGeneration(inputs)
      ? findCompletion(messages.slice(0, firstTrained), ids, { tokenizer, ...inputs })
      : 0;
  const isTrained = (index: number) => index >= firstTrained && !isUnweighted(index);
  const missing = missingAnswers.find(isTrained);
  if (missing !== undefined) throw missingAnswerError(messages[missing], missing);
  const lossMask = new Uint8Array(ids.length).fill(assistantOnlyLoss ? 0 : 1);
  let message = 0;
  assistantSpans.forEach(([start, end], i) => {
    message = spanMessages[i] ?? message;
    if (assistantOnlyLoss && isTrained(message)) lossMask.fill(1, Math.max(start, completionStart), end);
    if (!assistantOnlyLoss && isUnweighted(message)) lossMask.fill(0, start, end);
  });
  return { tokens: ids, lossMask };
}

/**
 * Returns messages in the forms that the chat template prints, and what it is rendered with; with
 * `toolCalls` "text", tools that it does not render are part of the messages.
 */
function prepareForTemplate(
  given: readonly ChatMessage[],
  { tokenizer, toolCalls, tools, toolChoice, variables }: PreparationOptions,
) {
  const messages = tokenizer.prepareMessages(given, { tools });
  const format =
    toolCalls === "text"
      ? readToolCallFormat(tokenizer.getChatTemplate({ tools }), toolChoice === "required")
      : undefined;
  if (format === undefined || format.tools === "template") return { messages, inputs: { tools, variables } };
  const functions = (tools ?? []).map((tool) => (tool.function ?? tool) as unknown as FunctionTool);
  return { messages: toTemplateInput(messages, functions, format).messages, inputs: { variables } };
}

/**
 * Returns where the tokens of a completion begin: after those of the prompt with the header of an
 * answer, as in TRL.
 */
function findCompletion(
  prompt: readonly ChatMessage[],
  ids: readonly number[],
  { tokenizer, ...inputs }: TemplateInputs & { readonly tokenizer: Tokenizer },
): number {
  const rendered = tokenizer.renderChat(prompt, { ...inputs, addGenerationPrompt: true });
  const { ids: promptIds } = tokenizer.encodeWithOffsets(rendered);
  const end = promptIds.findIndex((id, i) => id !== ids[i]);
  return end < 0 ? promptIds.length : end;
}

/**
 * Tokenizes a prompt with its completion, of which every token is in the loss, up to the end of the
 * text that the chat template writes: the sequences of TRL's preference trainers.
 * @throws as `encodeExample`, and INVALID_ARGUMENT for messages with a weight.
 */
export function encodeCompletion(
  example: CompletionExample,
  getTokenizer: () => Tokenizer,
  { toolCalls }: Pick<ExampleOptions, "toolCalls"> = {},
): TokenExample {
  const { prompt, completion } = example;
  const tokenizer = getTokenizer();
  if (typeof prompt === "string" && typeof completion === "string") return encodeTexts(prompt, completion, tokenizer);
  const { messages: given, promptLength } = toMessages(example);
  if (given.some(({ weight }) => weight === 0))
    throw invalidArgument(
      "A message has the weight 0, but preferences are between whole completions. Remove the weight.",
    );
  const { messages, inputs } = prepareForTemplate(given.map(withoutWeight), { tokenizer, toolCalls, ...example });
  const firstTrained = promptLength + messages.length - given.length;
  const { ids, missingAnswers } = tokenizer.encodeChat(messages, inputs);
  const missing = missingAnswers.find((index) => index >= firstTrained);
  if (missing !== undefined) throw missingAnswerError(messages[missing], missing);
  const start = findCompletion(messages.slice(0, firstTrained), ids, { tokenizer, ...inputs });
  return { tokens: ids, lossMask: new Uint8Array(ids.length).fill(1, start) };
}

/**
 * Removes the weight of a message, which is not for the model. @throws INVALID_ARGUMENT for one
 * that is not 0 or 1.
 */
function withoutWeight(weighted: ChatMessage): ChatMessage {
  const { weight, ...message } = weighted;
  if (weight === undefined || weight === null) return weighted;
  if (weight === 0 || weight === 1) return message;
  throw invalidArgument(
    `The weight of a message must be 0, for an answer that is not trained, or 1, got ${JSON.stringify(weight)}.`,
  );
}

function missingAnswerError(answer: ChatMessage, index: number): LlamaGymError {
  return invalidArgument(
    `The assistant's message ${index + 1} (${excerpt(stringifyJson(answer), MAX_ANSWER_LENGTH)}) is not found in the text that ` +
      "the chat template writes, so it cannot be trained. The template may leave it out, or want the content as one string; " +
      'change the message, mark answers in the template with {% generation %} blocks, or, for calls of tools that the template does not write, set toolCalls to "text" (--tool-calls text).',
  );
}

/** Maximum characters of an answer in an error. */
const MAX_ANSWER_LENGTH = 200;

const withAllTokens = (tokens: readonly number[]): TokenExample => ({
  tokens,
  lossMask: new Uint8Array(tokens.length).fill(1),
});

function encodeTexts(prompt: string, completion: string, tokenizer: Tokenizer): TokenExample {
  const promptTokens = tokenizer.encode(prompt);
  const continuation = tokenizer.encodeContinuation(completion, promptTokens.at(-1));
  const endToken = tokenizer.eosTokenId;
  const completionTokens =
    endToken === undefined || continuation.at(-1) === endToken ? continuation : [...continuation, endToken];
  const lossMask = new Uint8Array(promptTokens.length + completionTokens.length);
  return { tokens: [...promptTokens, ...completionTokens], lossMask: lossMask.fill(1, promptTokens.length) };
}

function checkTokenExample(example: TokenExample, vocabSize = Infinity): TokenExample {
  const { tokens, lossMask } = example;
  if (tokens.length !== lossMask.length)
    throw invalidArgument(`\`lossMask\` must have one value per token (${tokens.length}), got ${lossMask.length}.`);
  const invalid = tokens.findIndex((token) => !Number.isSafeInteger(token) || token < 0 || token >= vocabSize);
  if (invalid < 0) return example;
  throw invalidArgument(
    `token ${invalid + 1} is ${tokens[invalid]}, but the model's tokens are 0 to ${vocabSize - 1}. Tokenize the data with this model.`,
  );
}

/** Counts the answers of an example: the runs of loss tokens. */
export function countAnswers({ lossMask }: TokenExample): number {
  let count = 0;
  for (let i = 1; i < lossMask.length; i++) if (lossMask[i] !== 0 && (i === 1 || lossMask[i - 1] === 0)) count++;
  return count;
}

/**
 * Counts the loss tokens of an example. The first token is never one, because nothing predicts it.
 */
export function countLossTokens({ lossMask }: TokenExample): number {
  let count = 0;
  for (let i = 1; i < lossMask.length; i++) if (lossMask[i] !== 0) count++;
  return count;
}
