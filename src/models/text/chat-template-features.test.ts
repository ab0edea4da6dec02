import { expect, it } from "vitest";

import { chatTemplates, createTestTokenizer, readTextFixture } from "../../../test/support/text.js";
import { probeChatTemplate } from "./chat-template-features.js";

const traits = (template: string) => probeChatTemplate(createTestTokenizer("gpt2", template));

it("determines how a template treats earlier turns", () => {
  expect(traits(chatTemplates.chatml)).toEqual({
    isIncremental: true,
    keepsWhitespace: true,
    keepsReasoning: true,
    supportsSystemRole: true,
    supportsConsecutiveUserMessages: true,
    hasGenerationPrompt: true,
  });
  expect(traits(chatTemplates.trimming)).toMatchObject({
    isIncremental: true,
    keepsWhitespace: false,
    keepsReasoning: true,
  });
  expect(traits(chatTemplates.dropsReasoning)).toMatchObject({ isIncremental: true, keepsReasoning: false });
  expect(traits(chatTemplates.systemLast)).toMatchObject({ isIncremental: false, supportsSystemRole: true });
  expect(traits(chatTemplates.alternating)).toMatchObject({
    isIncremental: false,
    supportsSystemRole: false,
    supportsConsecutiveUserMessages: false,
    hasGenerationPrompt: false,
  });
  expect(traits(chatTemplates.closing)).toMatchObject({ isIncremental: true });
});

it("treats a silently dropped system message as unsupported", () => {
  const silent = chatTemplates.chatml.replace("for m in messages", "for m in messages if m.role != 'system'");
  expect(traits(silent)).toMatchObject({ isIncremental: true, supportsSystemRole: false });
});

it("determines which published formats are incremental", () => {
  const published = readTextFixture("published-templates.json") as Record<string, { template: string }>;
  const isIncremental = Object.entries(published).map(([name, { template }]) => [
    name,
    probeChatTemplate(createTestTokenizer("gpt2", template)).isIncremental,
  ]);
  expect(Object.fromEntries(isIncremental)).toEqual({
    llama2: false,
    llama3: true,
    chatml: true,
    "qwen2.5": true,
    phi3: true,
    gemma: true,
    gemma3: true,
    zephyr: true,
  });
});

it("advises when there is no template", () => {
  expect(() => probeChatTemplate(createTestTokenizer("gpt2"))).toThrow(
    "The tokenizer gpt2 has no chat template, so it is a base model's or its files are incomplete. Use an instruct model, or pass a Jinja template as options.chatTemplate.",
  );
});
