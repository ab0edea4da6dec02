import * as fc from "fast-check";
import { describe, expect, it } from "vitest";

import { chatTemplates, createTestTokenizer, readTextFixture } from "../../../test/support/text.js";
import { Conversation } from "./conversation.js";
import type { ChatMessage } from "./chat-messages.js";
import type { Tokenizer } from "./tokenizer.js";

const user = (content: string): ChatMessage => ({ role: "user", content });
const plain = (tokenizer: Tokenizer, text: string) => tokenizer.encode(text, { addSpecialTokens: false });

function sampled(tokenizer: Tokenizer, text: string, ended: boolean): number[] {
  return [...plain(tokenizer, text), ...(ended ? [tokenizer.eosTokenId ?? -1] : [])];
}

/** Takes a turn, and returns whether the next prompt begins with the tokens of this one. */
function takesTurn(conversation: Conversation, reply: readonly number[], next: string): boolean {
  const tokens = [...conversation.promptIds(), ...reply];
  conversation.appendCompletion(reply);
  conversation.add(user(next));
  return conversation.promptIds().slice(0, tokens.length).join() === tokens.join();
}

describe("a conversation in an incremental template", () => {
  const tokenizer = createTestTokenizer("gpt2", chatTemplates.chatml);
  // No whitespace at the start: it would merge with the header's newline in one go, and does not
  // when it is sampled.
  const word = fc.string({ unit: "grapheme", maxLength: 12 }).filter((text) => !/^\s|<[rl]>|\p{Surrogate}/u.test(text));

  it("equals the whole conversation rendered and encoded at once", () => {
    const turn = fc.record({ observation: word, reply: word.filter((text) => text !== ""), ended: fc.boolean() });
    fc.assert(
      fc.property(word, fc.array(turn, { minLength: 1, maxLength: 5 }), (rules, turns) => {
        const conversation = new Conversation(tokenizer, { messages: [{ role: "system", content: rules }] });
        let tokens: number[] = [];
        for (const { observation, reply, ended } of turns) {
          conversation.add(user(observation));
          const prompt = [...conversation.promptIds()];
          expect(prompt).toEqual(
            plain(tokenizer, tokenizer.applyChatTemplate(conversation.messages, { addGenerationPrompt: true })),
          );
          expect(prompt.slice(0, tokens.length)).toEqual(tokens);
          tokens = [...prompt, ...sampled(tokenizer, reply, ended)];
          const message = conversation.appendCompletion(sampled(tokenizer, reply, ended));
          expect(message).toEqual({ role: "assistant", content: reply });
        }
      }),
      { numRuns: 50 },
    );
  });

  it("keeps sampled ids that the tokenizer would not have chosen", () => {
    const conversation = new Conversation(tokenizer, { messages: [user("Hit?")] });
    const prompt = [...conversation.promptIds()];
    const letters = Array.from("action").flatMap((letter) => plain(tokenizer, letter));
    expect(letters).not.toEqual(plain(tokenizer, "action"));
    conversation.appendCompletion(letters);
    conversation.add(user("Again?"));
    expect(conversation.promptIds().slice(0, prompt.length + letters.length)).toEqual([...prompt, ...letters]);
    expect(tokenizer.decode(conversation.promptIds())).toBe(
      "<|im_start|>user\nHit?<|im_end|>\n<|im_start|>assistant\naction<|im_end|>\n<|im_start|>user\nAgain?<|im_end|>\n<|im_start|>assistant\n",
    );
  });

  it("keeps a completion truncated in the middle of a character", () => {
    const conversation = new Conversation(tokenizer, { messages: [user("Hit?")] });
    expect(takesTurn(conversation, plain(tokenizer, "🎲").slice(0, -1), "Again?")).toBe(true);
    expect(conversation.messages[1].content).toBe("\ufffd");
  });

  it("writes the end token once, whether sampled or not", () => {
    const count = (ended: boolean) => {
      const conversation = new Conversation(tokenizer, { messages: [user("a")] });
      conversation.appendCompletion(sampled(tokenizer, "b", ended));
      conversation.add(user("c"));
      return [...conversation.promptIds()];
    };
    expect(count(true)).toEqual(count(false));
  });

  it("discards a prompt without a completion", () => {
    const conversation = new Conversation(tokenizer, { messages: [user("a")] });
    conversation.promptIds();
    conversation.add(user("b"));
    expect(tokenizer.decode(conversation.promptIds())).toBe(
      "<|im_start|>user\na<|im_end|>\n<|im_start|>user\nb<|im_end|>\n<|im_start|>assistant\n",
    );
  });

  it("accepts an assistant's message as an example", () => {
    const messages = [user("a"), { role: "assistant", content: "b" }, user("c")];
    const conversation = new Conversation(tokenizer, { messages });
    const whole = tokenizer.applyChatTemplate(messages, { addGenerationPrompt: true });
    expect(conversation.promptIds()).toEqual(plain(tokenizer, whole));
    expect(conversation.visibleTurnCount).toBe(0);
    expect(takesTurn(conversation, sampled(tokenizer, "d", true), "e")).toBe(true);
    expect(conversation.visibleTurnCount).toBe(1);
  });

  it("prefixes every completion", () => {
    const conversation = new Conversation(tokenizer, { messages: [user("a")], completionPrefix: "Action:" });
    for (const reply of [" 1", " 0"]) {
      expect(tokenizer.decode(conversation.promptIds()).endsWith("<|im_start|>assistant\nAction:")).toBe(true);
      expect(takesTurn(conversation, sampled(tokenizer, reply, true), "next")).toBe(true);
      expect(conversation.messages.at(-2)?.content).toBe(`Action:${reply}`);
    }
    conversation.dropOldestTurns();
    expect(tokenizer.decode(conversation.promptIds())).toContain("Action: 0<|im_end|>");
  });

  it("forks into independent conversations", () => {
    const conversation = new Conversation(tokenizer, { messages: [user("a")] });
    const forks = [conversation.fork(), conversation.fork()];
    forks.forEach((fork, i) => fork.appendCompletion(sampled(tokenizer, `reply ${i}`, true)));
    expect(forks.map((fork) => fork.messages.at(-1)?.content)).toEqual(["reply 0", "reply 1"]);
    expect(conversation.messages).toHaveLength(1);
    expect(forks[0].promptIds().slice(0, 5)).toEqual(forks[1].promptIds().slice(0, 5));
  });

  it("drops its oldest turns and keeps the sampled ids of the others", () => {
    const conversation = new Conversation(tokenizer, { messages: [{ role: "system", content: "rules" }] });
    const letters = Array.from("action").flatMap((letter) => plain(tokenizer, letter));
    for (const observation of ["one", "two", "three"]) {
      conversation.add(user(observation));
      conversation.appendCompletion([...letters, tokenizer.eosTokenId ?? -1]);
    }
    conversation.add(user("four"));
    const before = conversation.promptIds().length;
    expect(conversation.dropOldestTurns(2)).toBe(4);
    expect(conversation.messages.map(({ content }) => content)).toEqual(["rules", "three", "action", "four"]);
    const prompt = [...conversation.promptIds()];
    expect(prompt.length).toBeLessThan(before);
    expect(prompt.join().includes(letters.join())).toBe(true);
    expect(tokenizer.decode(prompt)).toBe(
      tokenizer.applyChatTemplate(conversation.messages, { addGenerationPrompt: true }),
    );
    conversation.appendCompletion([...letters]);
    expect(conversation.dropOldestTurns(5)).toBe(2);
    expect(conversation.dropOldestTurns()).toBe(0);
  });

  it("rejects invalid ids", () => {
    const conversation = new Conversation(tokenizer, { messages: [user("a")] });
    expect(() => conversation.appendCompletion([1, Number.NaN])).toThrow(
      expect.objectContaining({ code: "INVALID_ARGUMENT" }),
    );
  });
});

describe("a conversation in a template that rewrites history", () => {
  it("renders again where earlier reasoning is dropped", () => {
    const tokenizer = createTestTokenizer("gpt2", chatTemplates.dropsReasoning);
    const conversation = new Conversation(tokenizer, { messages: [user("a")] });
    expect(takesTurn(conversation, sampled(tokenizer, "<think>why</think>\nb", true), "c")).toBe(false);
    expect(tokenizer.decode(conversation.promptIds())).not.toContain("why");
    expect(takesTurn(conversation, sampled(tokenizer, "d", true), "e")).toBe(true);
  });

  it("renders again only where a completion was trimmed", () => {
    const tokenizer = createTestTokenizer("llama3", chatTemplates.trimming);
    const conversation = new Conversation(tokenizer, { messages: [user("a")] });
    const kept = ["b", "c \n", "d"].map((reply) => takesTurn(conversation, sampled(tokenizer, reply, true), "next"));
    expect(kept).toEqual([true, false, true]);
  });

  it("renders again where the system prompt moves", () => {
    const tokenizer = createTestTokenizer("gpt2", chatTemplates.systemLast);
    const conversation = new Conversation(tokenizer, { messages: [{ role: "system", content: "s" }, user("a")] });
    expect(takesTurn(conversation, sampled(tokenizer, "b", true), "c")).toBe(false);
    expect(tokenizer.decode(conversation.promptIds())).toBe(
      "<|im_start|>user\na<|im_end|>\n<|im_start|>assistant\nb<|im_end|>\ns\n<|im_start|>user\nc<|im_end|>\n<|im_start|>assistant\n",
    );
  });

  it("reports that the template rejects the messages", () => {
    const tokenizer = createTestTokenizer("gpt2", chatTemplates.alternating);
    const conversation = new Conversation(tokenizer, { messages: [user("a"), user("b")] });
    expect(() => conversation.promptIds()).toThrow("Roles must alternate");
    expect(() => new Conversation(tokenizer).promptIds()).toThrow("The conversation is empty");
  });
});

it("keeps earlier turns in all but one of the published formats", () => {
  const published = readTextFixture("published-templates.json") as Record<string, { template: string }>;
  const changing = Object.entries(published).filter(([, { template }]) => {
    const tokenizer = createTestTokenizer("gpt2", template);
    const conversation = new Conversation(tokenizer, { messages: [user("one")] });
    const kept = ["yes", "no"].map((reply) => takesTurn(conversation, plain(tokenizer, reply), "two"));
    return kept.includes(false);
  });
  expect(changing.map(([name]) => name)).toEqual(["llama2"]);
});

describe("a conversation in a SentencePiece vocabulary", () => {
  it("adds no space between turns", () => {
    const template =
      "{{ bos_token }}{% for m in messages %}{{ m.role + ': ' + m.content + eos_token }}{% endfor %}{% if add_generation_prompt %}{{ 'assistant: ' }}{% endif %}";
    for (const kind of ["llama2", "metaspace", "gemma"]) {
      const tokenizer = createTestTokenizer(kind, template);
      const conversation = new Conversation(tokenizer, { messages: [user("The dealer")] });
      const reply = tokenizer.encodeContinuation("hit", conversation.promptIds().at(-1));
      expect(takesTurn(conversation, [...reply, tokenizer.eosTokenId ?? -1], "shows")).toBe(true);
      const whole = tokenizer.applyChatTemplate(conversation.messages, { addGenerationPrompt: true });
      expect(conversation.promptIds().slice(-4)).toEqual(plain(tokenizer, whole).slice(-4));
    }
  });
});
