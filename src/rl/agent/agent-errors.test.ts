import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { ScriptedAgent } from "../../../test/support/player.js";
import { TrainableModels } from "../../../test/support/trainable.js";
import type { LanguageModel } from "../../generation/index.js";
import { grpo, ppo, reinforce, rloo } from "../algorithms/index.js";
import { Agent } from "./agent.js";

const models = new TrainableModels();
let model: LanguageModel;
beforeAll(async () => {
  model = await models.open({ maxPositions: 256, scale: 0.2 });
});
afterAll(() => models.close());

const player = () => new ScriptedAgent(model, undefined, { generation: { maxNewTokens: 4 } });

function bang(): unknown {
  throw new Error("bang");
}

describe("an agent's methods", () => {
  type Method = "getSystemPrompt" | "formatObservation" | "getChoices" | "extractAction";
  const faults: readonly (readonly [Method, () => unknown, RegExp])[] = [
    ["getSystemPrompt", bang, /getSystemPrompt threw: bang/],
    ["formatObservation", bang, /formatObservation threw: bang/],
    ["getChoices", bang, /getChoices threw: bang/],
    ["extractAction", bang, /extractAction threw for the completion "[ab]": bang/],
    ["getSystemPrompt", () => 3, /getSystemPrompt must return a string or undefined, got 3/],
    ["formatObservation", () => undefined, /formatObservation must return a string, got undefined/],
    ["getChoices", () => [], /getChoices must return a non-empty list of non-empty strings/],
    ["getChoices", () => ["a", 1], /getChoices must return a non-empty list of non-empty strings/],
    [
      "getChoices",
      () => ["a", ""],
      /getChoices must return a non-empty list of non-empty strings or undefined, got \["a",""\]/,
    ],
  ];
  it.each(faults)("is named when %s fails", async (method, give, message) => {
    const agent = player();
    Object.assign(agent, { [method]: give });
    await expect(agent.act("one")).rejects.toMatchObject({
      code: "AGENT_FAILED",
      message: expect.stringMatching(message) as string,
    });
  });

  const lostValues: readonly (readonly [Method, string, string])[] = [
    ["formatObservation", "You see [object Object].", "[object Object]"],
    ["formatObservation", "You see [object Promise].", "[object Promise]"],
    ["formatObservation", "You see undefined.", "undefined"],
    ["getSystemPrompt", "You have NaN lives.", "NaN"],
  ];
  it.each(lostValues)("is named once when %s returns %j", async (method, text, value) => {
    const warn = vi.spyOn(console, "warn").mockReturnValue();
    const agent = player();
    Object.assign(agent, { [method]: () => text });
    await agent.act("one");
    await agent.act("two");
    const warnings = warn.mock.calls.map(([message]) => String(message));
    warn.mockRestore();
    expect(warnings).toEqual([expect.stringContaining(`The agent's ${method} returned a text with "${value}": `)]);
  });

  it("may return texts in which such words are parts of others", async () => {
    const warn = vi.spyOn(console, "warn").mockReturnValue();
    const agent = player();
    Object.assign(agent, { formatObservation: () => "NaNny has an object and undefined_values [object]." });
    await agent.act("one");
    expect(warn).not.toHaveBeenCalled();
    warn.mockRestore();
  });

  it("is named if its promise never settles, and the agent may act again", async () => {
    const agent = new ScriptedAgent(model, undefined, { callTimeoutSeconds: 0.02 });
    Object.assign(agent, { extractAction: () => new Promise(() => {}) });
    await expect(agent.act("one")).rejects.toMatchObject({
      code: "AGENT_FAILED",
      message: expect.stringContaining("The agent's `extractAction` did not settle within 0.02 s") as string,
    });
    Object.assign(agent, { extractAction: () => 1 });
    expect(await agent.act("one")).toBe(1);
  });

  it("may extract an action asynchronously", async () => {
    const agent = player();
    Object.assign(agent, { extractAction: async () => Promise.resolve(5) });
    expect(await agent.act("one")).toBe(5);
  });

  it("requires formatObservation or formatPrompt", async () => {
    class Silent extends Agent<string, string> {
      override extractAction(response: string) {
        return response;
      }
    }
    await expect(new Silent(model).act("one")).rejects.toThrow(
      "Silent must implement formatObservation or formatPrompt",
    );
  });
});

/** An object without the known names is assignable to options that are all optional. */
const MISSPELLED: object = { numGeneration: 4 };

describe("options", () => {
  it.each<[string, () => unknown, RegExp]>([
    ["grpo", () => grpo({ numGenerations: 1 }), /`numGenerations` must be an integer >= 2/],
    ["rloo", () => rloo({ batchSize: 9, numGenerations: 4 }), /RLOO's batchSize is 9, which groups of 4/],
    ["reinforce", () => reinforce(MISSPELLED), /Did you mean numGenerations\?/],
    ["ppo", () => ppo({ batchSize: 0 }), /`batchSize` must be an integer/],
  ])("of %s are checked", (_, configure, message) => {
    expect(configure).toThrow(message);
  });

  it.each([
    ["cpu", /must be an object, got "cpu"\. The device is chosen when the model is opened/],
    [{ temperature: 1 }, /An Agent has no option "temperature"/],
    [{ historyTurn: 1 }, /Did you mean historyTurns\?/],
    [{ historyTurns: -1 }, /`historyTurns` must be an integer >= 0/],
    [{ evalTemperature: -1 }, /`evalTemperature` must be 0 or a number >= 0.000001/],
    [{ contextOverflow: "drop" }, /`contextOverflow` must be "error" or "drop-oldest", got "drop"/],
    [{ maxContextLength: 0 }, /`maxContextLength` must be an integer >= 1/],
    [{ seed: 1.5 }, /`seed` must be an integer/],
    [{ invalidAction: { retries: -1 } }, /`invalidAction\.retries` must be an integer >= 0, got -1/],
    [{ invalidAction: { penalty: Number.NaN } }, /`invalidAction\.penalty` must be a number/],
    [{ invalidAction: { fallback: "random" } }, /`invalidAction\.fallback` must be "error" or a function, got random/],
    [{ invalidAction: { retrie: 1 } }, /Did you mean retries\?/],
    [{ generation: { temperature: -1 } }, /`temperature` must be 0 or a number >= 0.000001 and <= 100, got -1/],
    [{ generation: { maxTokens: 1 } }, /Generation has no option "maxTokens"/],
    [{ generation: { maxNewTokens: 256 } }, /no room for a prompt in a context of 256 tokens/],
    [{ generation: { maxNewTokens: 20 }, maxContextLength: 20 }, /no room for a prompt in a context of 20 tokens/],
    [{ ppo: { batchSize: 16 } }, /`ppo` is not an option; write `algorithm: ppo\(\{ \.\.\. \}\)`/],
    [{ "online-dpo": {} }, /`online-dpo` is not an option; write `algorithm: onlineDpo\(\{ \.\.\. \}\)`/],
    [{ onlineDpo: {} }, /is not an option; write `algorithm: onlineDpo\(\{ \.\.\. \}\)`/],
    [{ algorithm: {} }, /must be the result of ppo\(\), grpo\(\), rloo\(\), reinforce\(\), onlineDpo\(\) or/],
    [{ algorithm: "grpo" }, /`algorithm` must be the result of ppo\(\), grpo\(\).*, got "grpo"/],
  ])("refuses %j", (options, message) => {
    expect(() => new ScriptedAgent(model, undefined, options as never)).toThrow(message);
  });
});
