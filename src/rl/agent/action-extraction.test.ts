import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ppo } from "../algorithms/index.js";
import { playEpisode, ScriptedAgent, captureTrajectories } from "../../../test/support/player.js";
import { TrainableModels } from "../../../test/support/trainable.js";
import type { TextInterface } from "../../envs/text-interface.js";
import { blackjackText } from "../../envs/toy-text/blackjack-text.js";
import type { LanguageModel } from "../../generation/index.js";
import { toExtraction, fromWholeCompletion } from "../rollout/extraction.js";
import { actionExtractors, extractAction } from "./extraction/index.js";
import { computeExtractionShares } from "./extraction/extraction-counter.js";
import type { AgentOptions } from "./agent-options.js";
import { TextAgent } from "./text-agent.js";

const models = new TrainableModels();
let model: LanguageModel & { readonly folder: string };
beforeAll(async () => {
  model = await models.open({ maxPositions: 256, scale: 0.2 });
});
afterAll(() => models.close());

/** The shares that are not 0. */
const present = (metrics: Readonly<Record<string, number>>) =>
  Object.fromEntries(Object.entries(metrics).filter(([, share]) => share > 0));

describe("an unconstrained completion", () => {
  const compass: TextInterface<string, string> = {
    systemPrompt: "Walk.",
    formatObservation: (observation) => observation,
    parseAction: (reply) => ["north", "south"].find((name) => reply === name),
    formatAction: (action) => action,
    choices: ["north", "south", "->"],
  };
  const reader =
    <Observation, Action>(text: TextInterface<Observation, Action>, observation: Observation) =>
    (reply: string) => {
      const { kind, value } = toExtraction(new TextAgent(model, text).extractAction(reply, observation, {}));
      return [kind, value];
    };

  it("is read by the environment's parser, and else as one of its choices", () => {
    const read = reader(compass, "A crossing.");
    expect(read("north")).toEqual(["parser", "north"]);
    expect(read('{"action": "South",}')).toEqual(["json", "south"]);
    expect(read("<action>north</action>")).toEqual(["tag", "north"]);
    expect(read("North!")).toEqual(["choice", "north"]);
    expect(read("I will walk to the south.")).toEqual(["mention", "south"]);
    expect(read("sotuh")).toEqual(["nearest", "south"]);
    expect(read("1")).toEqual(["failure", undefined]);
    expect(read("Hm.")).toEqual(["failure", undefined]);
  });

  it("is read by the parser first, whatever else it may be", () => {
    const read = reader(blackjackText, [12, 5, 0]);
    expect(read("I stand.")).toEqual(["parser", 0]);
    expect(read("sttay")).toEqual(["nearest", 0]);
  });

  it("is read by the parser alone where the environment lists no choices", () => {
    const { choices: _, ...unlisted } = compass;
    const read = reader(unlisted, "A crossing.");
    expect(read("south")).toEqual(["parser", "south"]);
    expect(read("North!")).toEqual(["failure", undefined]);
    expect(reader({ ...compass, choices: ["->", "<-"] }, "A crossing.")("North!")).toEqual(["failure", undefined]);
  });
});

describe("extraction metrics of an update", () => {
  const player = (options: AgentOptions<string, number> = {}) =>
    new ScriptedAgent(model, undefined, {
      generation: { maxNewTokens: 4 },
      algorithm: ppo({ batchSize: 100 }),
      ...options,
    });

  const sharesOf = async (agent: ScriptedAgent, turns: number) => {
    await captureTrajectories(agent);
    await playEpisode(
      agent,
      Array.from({ length: turns }, () => 1),
    );
    return present(await agent.trainBatch());
  };

  it("counts the extraction that extractAction returns, and a bare action as the agent's function", async () => {
    const agent = player();
    let asked = 0;
    const strategies = actionExtractors({ choices: ["a", "b"] }, (text) => ["a", "b"].indexOf(text));
    const replies = ["a", '{"action": "b"}', "I pick b.", "b"];
    agent.read = () => (asked++ < 4 ? extractAction(replies[asked - 1], strategies) : 1);
    expect(await sharesOf(agent, 5)).toEqual({
      "extraction/choice": 0.4,
      "extraction/json": 0.2,
      "extraction/mention": 0.2,
      "extraction/function": 0.2,
    });
  });

  it("counts refused completions, including those sampled again", async () => {
    const agent = player({ invalidAction: { retries: 2, fallback: () => 0 } });
    let asked = 0;
    // Refused, taken; refused three times; taken.
    const isTaken = [false, true, false, false, false, true];
    agent.read = () => (isTaken[asked++] ? 1 : undefined);
    expect(await sharesOf(agent, 3)).toEqual({ "extraction/function": 1 / 3, "extraction/failed": 2 / 3 });
  });

  it("names the reason in the error if a completion must have an action", async () => {
    const agent = player();
    const strategies = actionExtractors({ choices: ["a", "b"] }, (text) => ({ a: 0, b: 1 })[text]);
    agent.read = () => extractAction('{"action": "fly"}', strategies);
    await expect(agent.act("one")).rejects.toMatchObject({
      code: "AGENT_NO_ACTION",
      message: expect.stringMatching(/The completion says "fly" \(json\), which is not an action\. Return/) as string,
    });
  });

  it("does not take an action for an extraction that looks like it", () => {
    const action = { kind: "json", value: 3 } as const;
    expect(toExtraction(action)).toEqual({ kind: "function", value: action });
    expect(toExtraction(fromWholeCompletion(action))).toEqual(action);
    expect(toExtraction(null)).toEqual({ kind: "function", value: null });
  });

  it("is absent if completions are not actions", () => {
    expect(computeExtractionShares([{ attempts: 1 }])).toEqual({});
  });
});
