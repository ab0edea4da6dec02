import { LlamaGymError } from "../../errors.js";
import type { ChatMessage, Tokenizer, ToolDefinition } from "../../text/index.js";

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
  readonly mask: ArrayLike<number>;
}

export type SftExample = ChatExample | CompletionExample | TokenExample;

/**
 * An example's tokens and which of them are learnt: the assistant's messages with their end tokens, or the completion.
 * `findTokenizer` is asked only where text is encoded. Throws INVALID_ARGUMENT for a mask of another length, and what the
 * tokenizer's chat template throws.
 */
export function encodeExample(example: SftExample, findTokenizer: () => Tokenizer): TokenExample {
  if ("tokens" in example) return checked(example);
  const tokenizer = findTokenizer();
  if ("messages" in example) return encodeMessages(example.messages, 0, tokenizer, example.tools);
  const { prompt, completion } = example;
  if (typeof prompt === "string" && typeof completion === "string") return encodeTexts(prompt, completion, tokenizer);
  const before = typeof prompt === "string" ? [{ role: "user", content: prompt }] : prompt;
  const after = typeof completion === "string" ? [{ role: "assistant", content: completion }] : completion;
  return encodeMessages([...before, ...after], before.length, tokenizer);
}

/** Messages before `from` are given, even where the assistant says them. */
function encodeMessages(
  messages: readonly ChatMessage[],
  from: number,
  tokenizer: Tokenizer,
  tools?: readonly ToolDefinition[],
): TokenExample {
  const { ids, assistantSpans } = tokenizer.encodeChat(messages, { tools });
  const given = messages.slice(0, from).filter(({ role }) => role === "assistant").length;
  const mask = new Uint8Array(ids.length);
  for (const [start, end] of assistantSpans.slice(given)) mask.fill(1, start, end);
  return { tokens: ids, mask };
}

function encodeTexts(prompt: string, completion: string, tokenizer: Tokenizer): TokenExample {
  const before = tokenizer.encode(prompt);
  const after = tokenizer.encodeContinuation(completion, before.at(-1));
  const end = tokenizer.eosTokenId;
  const learnt = end === undefined || after.at(-1) === end ? after : [...after, end];
  const mask = new Uint8Array(before.length + learnt.length);
  return { tokens: [...before, ...learnt], mask: mask.fill(1, before.length) };
}

function checked(example: TokenExample): TokenExample {
  const { tokens, mask } = example;
  if (tokens.length === mask.length) return example;
  throw new LlamaGymError(
    "INVALID_ARGUMENT",
    `An example has ${tokens.length} tokens, but a mask of ${mask.length}; give a 0 or 1 for each token.`,
  );
}

/** How many tokens of an example are learnt. The first token is none of them: nothing comes before it. */
export function learntTokens({ mask }: TokenExample): number {
  let count = 0;
  for (let i = 1; i < mask.length; i++) if (mask[i] !== 0) count++;
  return count;
}
