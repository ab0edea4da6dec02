import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { TrainableModels } from "../../../test/support/trainable.js";
import type { LanguageModel } from "../../generation/index.js";
import { loadPromptDataset, type DatasetPrompt } from "./prompt-dataset.js";

const models = new TrainableModels();
let model: LanguageModel;
beforeAll(async () => {
  model = await models.open();
});
afterAll(() => models.close());

const load = async (prompt: unknown, columns: object = {}) => {
  const [{ row, tokens }] = await loadPromptDataset([{ ...columns, prompt: prompt as DatasetPrompt }], model, 4);
  return { prompt: row.prompt, text: model.tokenizer.decode(tokens) };
};
const user = { role: "user", content: "a" };
const render = (...args: Parameters<LanguageModel["tokenizer"]["applyChatTemplate"]>) =>
  model.tokenizer.applyChatTemplate(...args);

describe("prompts of a dataset", () => {
  it.each([
    ["messages", [user]],
    ["messages as the text of a CSV file", JSON.stringify([user])],
    ["ShareGPT's turns", [{ from: "human", value: "a" }]],
    ["ShareGPT's names of roles", [{ role: "human", content: "a" }]],
  ])("are rendered by the chat template: %s", async (_, prompt) => {
    expect(await load(prompt)).toEqual({ prompt: [user], text: render([user], { addGenerationPrompt: true }) });
  });

  it("are continued where they end with a message of the assistant", async () => {
    const messages = [user, { role: "assistant", content: "Let me see." }];
    const { text } = await load(messages);
    expect(text).toBe(render(messages, { continueFinalMessage: true }));
    expect(text).toMatch(/Let me see\.$/);
  });

  it.each([
    [[{ role: "User", content: "a" }], /row 0 of trainDataset: .*message 1 has the role "User"; write "user"/],
    [[{ role: "user" }], /message 1 has no content/],
    [[{ role: "user", content: [{ type: "image_url", image_url: "x" }] }], /part of type "image_url"/],
    [[], /must be a non-empty text or array of messages/],
    ["", /must be a non-empty text/],
    [5, /"prompt" must be .*got 5/],
  ])("are refused with the reason: %j", async (prompt, message) => {
    await expect(load(prompt)).rejects.toThrow(message);
  });

  it("are not trained without their images", async () => {
    await expect(load("a", { image: "x.png" })).rejects.toThrow(/"image" is not supported/);
  });
});
