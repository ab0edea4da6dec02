import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { ppo } from "../algorithms/index.js";
import { playEpisode, ScriptedAgent, captureTrajectories } from "../../../test/support/player.js";
import { chatTemplates, createTestTokenizer } from "../../../test/support/text.js";
import { TrainableModels } from "../../../test/support/trainable.js";
import type { LanguageModel } from "../../generation/index.js";
import { RandomStream } from "../../core/random/random-stream.js";
import type { AgentOptions } from "./agent-options.js";

const models = new TrainableModels();
let model: LanguageModel & { readonly folder: string };
beforeAll(async () => {
  model = await models.open({ maxPositions: 256, scale: 0.2 });
});
afterAll(() => models.close());

const player = (options: AgentOptions<string, number> = {}) =>
  new ScriptedAgent(model, undefined, {
    historyTurns: Infinity,
    generation: { maxNewTokens: 4 },
    algorithm: ppo({ batchSize: 100 }),
    ...options,
  });

const text = (prompt: readonly number[]) => model.tokenizer.decode(prompt, { skipSpecialTokens: true });

describe("a completion without an action", () => {
  it("is an error that quotes it, after which the agent may be asked again", async () => {
    const agent = player();
    const given = await captureTrajectories(agent);
    agent.read = () => undefined;
    await expect(agent.act("one")).rejects.toMatchObject({
      code: "AGENT_NO_ACTION",
      message: expect.stringMatching(/no action in the completion "[ab]".*invalidAction/) as string,
    });
    agent.read = () => 7;
    expect(await agent.act("one")).toBe(7);
    await agent.terminateEpisode();
    await agent.trainBatch();
    const [{ turns }] = given;
    expect(turns).toHaveLength(1);
    expect(text(turns[0].prompt).match(/one/g)).toHaveLength(1);
  });

  it("is drawn again as often as is allowed, to the same prompt; only the last one is trained", async () => {
    const agent = player({ invalidAction: { retries: 3 } });
    const given = await captureTrajectories(agent);
    let asked = 0;
    agent.read = () => (++asked < 3 ? undefined : 1);
    await agent.act("one");
    await agent.act("two");
    await agent.terminateEpisode();
    await agent.trainBatch();
    expect(given[0].turns.map(({ attempts, isValid }) => [attempts, isValid])).toEqual([
      [3, true],
      [1, true],
    ]);
    asked = 0;
    agent.read = () => {
      asked++;
      return undefined;
    };
    await expect(agent.act("one")).rejects.toThrow("no action");
    expect(asked).toBe(4);
  });

  it("gets a substitute action, and the penalty is assigned to its turn", async () => {
    const fallback = vi.fn<(observation: string) => number>(() => 9);
    const agent = player({ invalidAction: { retries: 1, penalty: 0.25, fallback } });
    const given = await captureTrajectories(agent);
    agent.read = () => undefined;
    expect(await agent.act("one")).toBe(9);
    agent.assignReward(1);
    agent.read = () => 1;
    await agent.act("two");
    agent.assignReward(2);
    await agent.terminateEpisode();
    await agent.trainBatch();
    expect(fallback.mock.calls.map(([observation]) => observation)).toEqual(["one"]);
    const facts = given[0].turns.map(({ reward, penalty, isValid, attempts }) => ({
      reward,
      penalty,
      isValid,
      attempts,
    }));
    expect(facts).toEqual([
      { reward: 0.75, penalty: 0.25, isValid: false, attempts: 2 },
      { reward: 2, penalty: 0, isValid: true, attempts: 1 },
    ]);
  });
});

describe("a reward that comes at the end", () => {
  const rewardsOf = async (options: AgentOptions<string, number>, rewards: readonly number[]) => {
    const agent = player(options);
    const given = await captureTrajectories(agent);
    await playEpisode(agent, rewards);
    await agent.trainBatch();
    return given[0].turns.map(({ reward }) => reward);
  };

  it("is not shared by default", async () => {
    expect(await rewardsOf({}, [0, 0, 3])).toEqual([0, 0, 3]);
    expect(await rewardsOf({ spreadSparseRewards: true }, [0, 0, 3])).toEqual([1, 1, 1]);
    expect(await rewardsOf({ spreadSparseRewards: true }, [0, 1, 3])).toEqual([0, 1, 3]);
    expect(await rewardsOf({ spreadSparseRewards: true }, [4])).toEqual([4]);
  });

  it("is shared if a completion without an action was penalized", async () => {
    const agent = player({ spreadSparseRewards: true, invalidAction: { penalty: 0.5, fallback: () => 0 } });
    const given = await captureTrajectories(agent);
    agent.read = () => undefined;
    await agent.act("one");
    agent.read = () => 1;
    await agent.act("two");
    agent.assignReward(2);
    await agent.terminateEpisode();
    await agent.trainBatch();
    expect(given[0].turns.map(({ reward }) => reward)).toEqual([0.5, 1]);
  });
});

describe("the history in the prompt", () => {
  const promptsOf = async (agent: ScriptedAgent, turns: number) => {
    const given = await captureTrajectories(agent);
    for (let turn = 1; turn <= turns; turn++) await agent.act(`State ${turn}.`);
    await agent.terminateEpisode();
    await agent.trainBatch();
    return given[0].turns.map(({ prompt }) => text(prompt));
  };

  it("is the whole episode, or as many turns as asked for", async () => {
    const states = (prompt: string) => [...prompt.matchAll(/State (\d)/g)].map(([, number]) => Number(number));
    expect((await promptsOf(player(), 3)).map(states)).toEqual([[1], [1, 2], [1, 2, 3]]);
    expect((await promptsOf(player({ historyTurns: 1 }), 3)).map(states)).toEqual([[1], [1, 2], [2, 3]]);
    expect((await promptsOf(player({ historyTurns: 0 }), 3)).map(states)).toEqual([[1], [2], [3]]);
  });

  it("has the oldest turns left out when the context is full, or is an error", async () => {
    const prompts = await promptsOf(player({ maxContextLength: 80 }), 20);
    expect(prompts.at(-1)).toContain("Rules.");
    expect(prompts.at(-1)).toContain("State 20.");
    expect(prompts.at(-1)).not.toContain("State 1.");
    await expect(promptsOf(player({ maxContextLength: 80, contextOverflow: "error" }), 20)).rejects.toMatchObject({
      code: "CONTEXT_OVERFLOW",
    });
  });

  it("is one message alone with formatPrompt", async () => {
    class Single extends ScriptedAgent {
      override formatPrompt(observation: string) {
        return `All of it: ${observation}`;
      }
    }
    const agent = new Single(model, undefined, { algorithm: ppo({ batchSize: 100 }) });
    const prompts = await promptsOf(agent, 2);
    expect(prompts).toEqual(["user\nAll of it: State 1.\nassistant\n", "user\nAll of it: State 2.\nassistant\n"]);
  });

  it.each([
    ["has no system message", chatTemplates.alternating, /^\[INST\] Rules\.\n\nState 1\. \[\/INST\]/],
    ["is missing", undefined, /^Rules\.\n\nState 1\.\n\n>$/],
  ])("is the rules too where a chat template %s", async (_, template, expected) => {
    const tokenizer = createTestTokenizer("gpt2", template);
    const play = new ScriptedAgent(model, tokenizer).newEpisode(new RandomStream(0));
    play.observe("State 1.", {});
    expect(tokenizer.decode(play.buildPrompt(), { skipSpecialTokens: true })).toMatch(expected);
  });
});
