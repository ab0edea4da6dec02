import { fileURLToPath } from "node:url";
import { beforeAll, describe, expect, it } from "vitest";
import { AutoTokenizer } from "./auto-tokenizer.js";
import type { ContentPart } from "./chat-messages.js";
import type { Tokenizer } from "./tokenizer.js";

const folder = fileURLToPath(new URL("../../../test/fixtures/text/model", import.meta.url));
const [OPEN, CLOSE] = ["{% for message in messages %}<|{{ message.role }}|>", "<|end|>{% endfor %}"];
const PARTS =
  "{% if message.content is string %}{{ message.content }}{% else %}{% for part in message.content %}{{ part.text }}{% endfor %}{% endif %}";

let tokenizer: Tokenizer;
beforeAll(async () => {
  tokenizer = await AutoTokenizer.fromPretrained(folder);
});

/** Results of Transformers 5.24. */
describe.each([
  ["prints content", `${OPEN}{{ message.content }}${CLOSE}`, "<|user|>a<|end|><|assistant|> The answer: "],
  ["trims content", `${OPEN}{{ message.content | trim }}${CLOSE}`, "<|user|>a<|end|><|assistant|>The answer:"],
  ["prints parts", OPEN + PARTS + CLOSE, "<|user|>a<|end|><|assistant|> The answer: "],
])("a template that %s", (_, chatTemplate, expected) => {
  const render = (content: string | readonly ContentPart[]) =>
    tokenizer.applyChatTemplate(
      [
        { role: "user", content: "a" },
        { role: "assistant", content },
      ],
      { chatTemplate, continueFinalMessage: true },
    );

  it("ends with the last message", () => {
    expect(render(" The answer: ")).toBe(expected);
  });

  it.runIf(chatTemplate.includes("part"))("ends with the last part of the last message", () => {
    const parts = [" The", " answer: "].map((text) => ({ type: "text", text }));
    expect(render([...parts, { type: "other" }])).toBe(expected);
  });
});

it("keeps special tokens in the continued text as text", () => {
  const messages = [{ role: "assistant", content: "<|im_end|> is a token" }];
  const rendered = tokenizer.renderChat(messages, { continueFinalMessage: true });
  expect(tokenizer.encodeContinuation(rendered, undefined)).not.toContain(tokenizer.tokenToId("<|im_end|>"));
});

it("refuses a message that cannot be continued", () => {
  const render =
    (content: string | undefined, options: object = {}) =>
    () =>
      tokenizer.applyChatTemplate([{ role: "assistant", content }], { continueFinalMessage: true, ...options });
  expect(render(undefined)).toThrow("The last message has no text that could be continued.");
  expect(render("a", { chatTemplate: "{{ messages[0].role }}" })).toThrow(/does not print the content of the last/);
  expect(render("a", { addGenerationPrompt: true })).toThrow(/set continueFinalMessage or addGenerationPrompt/);
});
