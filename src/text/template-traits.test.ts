import { expect, it } from "vitest";

import { chatTemplates, testTokenizer, textFixture } from "../../test/support/text.js";
import { inspectTemplate, templateIsIncremental } from "./template-traits.js";

const traits = (template: string) => inspectTemplate(testTokenizer("gpt2", template));

it("finds what a template does to earlier turns", () => {
  expect(traits(chatTemplates.chatml)).toEqual({
    incremental: true,
    keepsWhitespace: true,
    keepsReasoning: true,
    takesSystem: true,
    takesRepeatedUser: true,
    hasGenerationPrompt: true,
  });
  expect(traits(chatTemplates.trimming)).toMatchObject({
    incremental: true,
    keepsWhitespace: false,
    keepsReasoning: true,
  });
  expect(traits(chatTemplates.forgetful)).toMatchObject({ incremental: true, keepsReasoning: false });
  expect(traits(chatTemplates.systemLast)).toMatchObject({ incremental: false, takesSystem: true });
  expect(traits(chatTemplates.alternating)).toMatchObject({
    incremental: false,
    takesSystem: false,
    takesRepeatedUser: false,
    hasGenerationPrompt: false,
  });
  expect(traits(chatTemplates.closing)).toMatchObject({ incremental: true });
});

it("takes a system message that is left out without a word for one that is not taken", () => {
  const silent = chatTemplates.chatml.replace("for m in messages", "for m in messages if m.role != 'system'");
  expect(traits(silent)).toMatchObject({ incremental: true, takesSystem: false });
});

it("knows which published formats are incremental", () => {
  const published = textFixture("published-templates.json") as Record<string, { template: string }>;
  const incremental = Object.entries(published).map(([name, { template }]) => [
    name,
    templateIsIncremental(testTokenizer("gpt2", template)),
  ]);
  expect(Object.fromEntries(incremental)).toEqual({
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

it("says what to do without a template", () => {
  expect(() => templateIsIncremental(testTokenizer("gpt2"))).toThrow(
    "The tokenizer gpt2 has no chat template, so it is a base model's or its files are incomplete. Use an instruct model, or pass a Jinja template as options.chatTemplate.",
  );
});
