import type { ChatMessage, Tokenizer } from "../../text/index.js";

/** A conversation; what the assistant says is learnt. */
export interface ChatExample {
  readonly messages: readonly ChatMessage[];
}

/** A text and how it goes on; the completion is learnt, and the end token after it. */
export interface CompletionExample {
  readonly prompt: string;
  readonly completion: string;
}

/** Tokens as they are; those with a 1 in the mask are learnt. */
export interface TokenExample {
  readonly tokens: readonly number[];
  readonly mask: ArrayLike<number>;
}

export type SftExample = ChatExample | CompletionExample | TokenExample;

/** An example's tokens and which of them are learnt. Throws what the tokenizer's chat template throws. */
export function encodeExample(example: SftExample, tokenizer: () => Tokenizer): TokenExample {
  if ("tokens" in example) return example;
  if ("messages" in example) {
    const { ids, assistantMask } = tokenizer().encodeChat(example.messages);
    return { tokens: ids, mask: assistantMask };
  }
  const { prompt, completion } = example;
  const before = tokenizer().encode(prompt);
  const after = tokenizer().encodeContinuation(completion, before.at(-1));
  const end = tokenizer().eosTokenId;
  const learnt = end === undefined || after.at(-1) === end ? after : [...after, end];
  return { tokens: [...before, ...learnt], mask: Uint8Array.from([...before.map(() => 0), ...learnt.map(() => 1)]) };
}
