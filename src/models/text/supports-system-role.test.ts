import { expect, it } from "vitest";

import { chatTemplates, createTestTokenizer } from "../../../test/support/text.js";
import { supportsSystemRole } from "./supports-system-role.js";

it("recognizes templates that render, reject or drop system messages", () => {
  const silent = chatTemplates.chatml.replace("for m in messages", "for m in messages if m.role != 'system'");
  const supported = [chatTemplates.chatml, chatTemplates.systemLast, chatTemplates.alternating, silent].map(
    (template) => supportsSystemRole(createTestTokenizer("gpt2", template)),
  );
  expect(supported).toEqual([true, true, false, false]);
});

it("advises when there is no template", () => {
  expect(() => supportsSystemRole(createTestTokenizer("gpt2"))).toThrow(
    "The tokenizer gpt2 has no chat template, so it is a base model's or its files are incomplete. Use an instruct model, or pass a Jinja template as options.chatTemplate.",
  );
});
