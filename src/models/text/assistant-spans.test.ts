import { describe, expect, it } from "vitest";

import { chatTemplates, createTestTokenizer } from "../../../test/support/text.js";
import type { ChatMessage } from "./chat-messages.js";

const chat: { role: string; content: string }[] = [
  { role: "user", content: "Hit?" },
  { role: "assistant", content: "Action: 1" },
  { role: "user", content: "Action: 1" },
  { role: "assistant", content: " leading and trailing " },
];

function spoken(kind: string, template: string, messages: ChatMessage[], addGenerationPrompt = false): string[] {
  const tokenizer = createTestTokenizer(kind, template);
  const { ids, assistantSpans, assistantMask } = tokenizer.encodeChat(messages, { addGenerationPrompt });
  expect(assistantMask.reduce((sum, bit) => sum + bit, 0)).toBe(
    assistantSpans.reduce((sum, [start, end]) => sum + end - start, 0),
  );
  return assistantSpans.map(([start, end]) => tokenizer.decodeContinuation(ids.slice(start, end)));
}

describe("the assistant's tokens", () => {
  it.each([true, false])("are its content and end token, not its header (generation prompt: %s)", (prompt) => {
    expect(spoken("gpt2", chatTemplates.chatml, chat, prompt)).toEqual([
      "Action: 1<|im_end|>",
      " leading and trailing <|im_end|>",
    ]);
  });

  it("are the spans that {% generation %} marks", () => {
    const marked =
      "{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' }}{% if m.role == 'assistant' %}{% generation %}{{ m.content }}{% endgeneration %}" +
      "{{ '<|im_end|>' }}{% else %}{{ m.content }}{% endif %}{% endfor %}";
    expect(spoken("gpt2", marked, chat)).toEqual(["Action: 1", " leading and trailing "]);
  });

  it("are found where the template trims, moves or drops messages", () => {
    expect(spoken("llama3", chatTemplates.trimming, chat)).toEqual([
      "Action: 1<|im_end|>",
      "leading and trailing<|im_end|>",
    ]);
    const thinking = chat.map((m) =>
      m.role === "assistant" ? { ...m, content: `<think>x</think>\n${m.content}` } : m,
    );
    expect(spoken("gpt2", chatTemplates.dropsReasoning, thinking)).toEqual([
      "Action: 1<|im_end|>",
      "<think>x</think>\n leading and trailing <|im_end|>",
    ]);
    const ruled = [{ role: "system", content: "Action: 1" }, ...chat];
    expect(spoken("gpt2", chatTemplates.systemLast, ruled)).toHaveLength(2);
  });

  it("start after the closing text of the prompt in templates without a header", () => {
    expect(spoken("gpt2", chatTemplates.alternating, chat)).toEqual([
      " Action: 1 <|im_end|>",
      " leading and trailing <|im_end|>",
    ]);
  });

  it("end with the first end token where the template writes another after the conversation", () => {
    expect(spoken("gpt2", chatTemplates.closing, chat)).toEqual([
      "Action: 1<|im_end|>",
      " leading and trailing <|im_end|>",
    ]);
  });

  it("are the end token alone when the content is empty", () => {
    const empty = [...chat.slice(0, 1), { role: "assistant", content: "" }];
    expect(spoken("gpt2", chatTemplates.chatml, empty)).toEqual(["<|im_end|>"]);
  });

  it("begin with the token that joins the header's newline and the content's", () => {
    // The vocabulary has the two newlines as one token.
    const template = chatTemplates.chatml.replaceAll("<|im_end|>\n", "<|im_end|>");
    const [first] = spoken("merged with previous", template, [chat[0], { role: "assistant", content: "\nnext" }]);
    expect(first.endsWith("next<|im_end|>")).toBe(true);
  });

  it("include special tokens in the content", () => {
    const odd = [chat[0], { role: "assistant", content: "a<|im_start|>b" }];
    expect(spoken("gpt2", chatTemplates.chatml, odd)).toEqual(["a<|im_start|>b<|im_end|>"]);
  });

  it("are found for SentencePiece vocabularies", () => {
    const template =
      "{{ bos_token }}{% for m in messages %}{{ m.role + ': ' + m.content + eos_token + '\n' }}{% endfor %}{{ 'assistant:' if add_generation_prompt }}";
    expect(spoken("llama2", template, chat.slice(0, 2))).toEqual([" Action: 1</s>"]);
  });

  it("are found in messages with parts and with tool calls", () => {
    const template =
      "{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' }}{% if m.content is string %}{{ m.content }}{% else %}{{ m.content | map(attribute='text') | join }}{% endif %}" +
      "{% for c in m.tool_calls %}{{ c | tojson }}{% endfor %}{{ '<|im_end|>\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";
    const parts: ChatMessage[] = [
      { role: "user", content: "u" },
      {
        role: "assistant",
        content: [
          { type: "text", text: "a" },
          { type: "text", text: "b" },
        ],
      },
      { role: "assistant", content: "", tool_calls: [{ name: "hit" }] },
    ];
    expect(spoken("gpt2", template, parts)).toEqual(["ab<|im_end|>", '{"name": "hit"}<|im_end|>']);
  });
});
