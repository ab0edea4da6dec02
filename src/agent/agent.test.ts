import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { setTrainedValues, TrainableModels, trainedValues } from "../../test/support/trainable.js";
import { chatTemplates, testTokenizer } from "../../test/support/text.js";
import type { LanguageModel } from "../generation/index.js";
import type { Segment } from "../rollout/turn.js";
import { RandomStream } from "../tensor/random.js";
import { AutoTokenizer } from "../text/index.js";
import { Agent } from "./agent.js";
import type { AgentOptions } from "./options.js";

const models = new TrainableModels();
let model: LanguageModel & { readonly folder: string };
beforeAll(async () => {
  model = await models.open({ maxPositions: 256, scale: 0.2 });
});
afterAll(() => models.close());

/** Says "a" or "b"; what counts as an action is up to the test. */
class Player extends Agent<string, number> {
  choices: readonly string[] | undefined = ["a", "b"];
  read: (response: string) => number | undefined = (response) => ["a", "b"].indexOf(response);

  override getSystemPrompt() {
    return "Rules.";
  }

  override formatObservation(observation: string) {
    return observation;
  }

  override getChoices() {
    return this.choices;
  }

  override extractAction(response: string) {
    return this.read(response);
  }
}

const player = (options: AgentOptions<string, number> = {}) =>
  new Player(model, undefined, { generation: { maxNewTokens: 4 }, ppo: { batchSize: 100 }, ...options });

/** What the agent's learner is given in place of training on it. */
async function trainedOn(agent: Player): Promise<Segment[]> {
  const given: Segment[] = [];
  vi.spyOn(await agent.learner(), "update").mockImplementation(async (segments) => {
    given.push(...segments);
    return {};
  });
  return given;
}

async function playEpisode(agent: Player, rewards: readonly number[]): Promise<void> {
  for (const [i, reward] of rewards.entries()) {
    await agent.act(`Step ${i}`);
    agent.assignReward(reward);
  }
  await agent.terminateEpisode();
}

const text = (prompt: readonly number[]) => model.tokenizer.decode(prompt, { skipSpecialTokens: true });

describe("the loop", () => {
  it("trains when enough turns are gathered, on all of them, and gives the update's metrics", async () => {
    const agent = player({ ppo: { batchSize: 5 } });
    const given = await trainedOn(agent);
    await agent.act("one");
    expect(agent.waitingTurns).toBe(1);
    agent.assignReward(1);
    await agent.act("two");
    agent.assignReward(2);
    agent.assignReward(0.5);
    expect(await agent.terminateEpisode()).toBeUndefined();
    await agent.act("three");
    expect(agent.waitingTurns).toBe(3);
    await agent.act("four");
    await agent.act("five");
    expect(given).toEqual([]);
    expect(await agent.terminateEpisode()).toEqual({});
    expect(given.map(({ turns, end }) => [turns.map(({ reward }) => reward), end])).toEqual([
      [[1, 2.5], "terminated"],
      [[0, 0, 0], "terminated"],
    ]);
    expect(agent.waitingTurns).toBe(0);
  });

  it("trains on fewer when it is told to", async () => {
    const agent = player();
    const given = await trainedOn(agent);
    await playEpisode(agent, [1]);
    expect(given).toEqual([]);
    await agent.trainBatch();
    expect(given).toHaveLength(1);
    await expect(agent.trainBatch()).rejects.toThrow("nothing to train on");
  });

  it("leaves an episode out where it is told to", async () => {
    const agent = player();
    await agent.act("one");
    expect(await agent.terminateEpisode({ train: false })).toBeUndefined();
    expect(agent.waitingTurns).toBe(0);
    await expect(agent.trainBatch()).rejects.toThrow("nothing to train on");
  });

  it("keeps what would have come where an episode was cut off", async () => {
    const agent = player();
    const given = await trainedOn(agent);
    await agent.act("one");
    await agent.terminateEpisode({ truncatedAt: "beyond" });
    await agent.trainBatch();
    const [{ end, nextPrompt, turns }] = given;
    expect(end).toBe("truncated");
    expect(nextPrompt!.slice(0, turns[0].prompt.length)).toEqual(turns[0].prompt);
    expect(text(nextPrompt!)).toContain("beyond");
  });

  it("plays the same with the same seed, and otherwise with another", async () => {
    const actions = async (seed: number) => {
      const agent = player({ seed });
      const taken: number[] = [];
      for (let i = 0; i < 24; i++) {
        taken.push(await agent.act(`Step ${i}`));
        if (i % 4 === 3) await agent.terminateEpisode();
      }
      return taken;
    };
    const [first, second, other] = [await actions(1), await actions(1), await actions(2)];
    expect(second).toEqual(first);
    expect(other).not.toEqual(first);
  });

  it.each([
    ["assignReward before act", (agent: Player) => agent.assignReward(1), "INVALID_STATE", "belongs after act"],
    ["terminateEpisode before act", (agent: Player) => agent.terminateEpisode(), "INVALID_STATE", "belongs after act"],
    ["a reward that is NaN", (agent: Player) => agent.assignReward(Number.NaN), "INVALID_ARGUMENT", "not NaN"],
    [
      "a reward that is a text",
      (agent: Player) => agent.assignReward("1" as never),
      "INVALID_ARGUMENT",
      "finite number",
    ],
    ["an observation with NaN", (agent: Player) => agent.act([1, Number.NaN] as never), "ENV_FAILED", '[1,"NaN"]'],
  ])("refuses %s", async (_, use, code, message) => {
    const attempt = (async () => use(player()))();
    await expect(attempt).rejects.toMatchObject({ code, message: expect.stringContaining(message) as string });
  });

  it("refuses a reward and an end after an episode has ended", async () => {
    const agent = player();
    await agent.act("one");
    await agent.terminateEpisode();
    expect(() => agent.assignReward(1)).toThrow("belongs after act");
    await expect(agent.terminateEpisode()).rejects.toThrow("no turn of this episode was played");
  });

  it("refuses a call while another one is under way", async () => {
    const agent = player();
    const acting = agent.act("one");
    await expect(agent.act("one")).rejects.toThrow("act was called while act is under way; await each call");
    await expect(agent.terminateEpisode()).rejects.toThrow("terminateEpisode was called while act is under way");
    expect(() => agent.assignReward(1)).toThrow("while act is under way");
    await acting;
    agent.assignReward(1);
    const ending = agent.terminateEpisode();
    await expect(agent.act("two")).rejects.toThrow("while terminateEpisode is under way");
    await ending;
    await agent.act("two");
  });
});

describe("train and eval", () => {
  it("plays greedily and records nothing after eval", async () => {
    const agent = player().eval();
    expect(agent.isTraining).toBe(false);
    const actions = new Set<number>();
    for (let i = 0; i < 8; i++) {
      actions.add(await agent.act("same"));
      agent.assignReward(1);
      await agent.terminateEpisode();
    }
    expect(actions.size).toBe(1);
    expect(agent.waitingTurns).toBe(0);
    expect(agent.train().isTraining).toBe(true);
    await agent.act("same");
    expect(agent.waitingTurns).toBe(1);
  });

  it("changes with the next episode, so that no greedy turn is ever trained", async () => {
    const agent = player().eval();
    const given = await trainedOn(agent);
    await agent.act("one");
    agent.train();
    await agent.act("two");
    await agent.terminateEpisode();
    expect(agent.waitingTurns).toBe(0);
    await agent.act("three");
    agent.eval();
    await agent.terminateEpisode();
    expect(agent.waitingTurns).toBe(1);
    await agent.trainBatch();
    expect(text(given[0].turns[0].prompt)).toContain("three");
  });

  it("draws after eval too where a temperature is asked for", async () => {
    const agent = player({ evalTemperature: 1 }).eval();
    const actions = new Set<number>();
    for (let i = 0; i < 24; i++) {
      actions.add(await agent.act("same"));
      await agent.terminateEpisode();
    }
    expect(actions.size).toBe(2);
  });
});

describe("a reply without an action", () => {
  it("is an error that quotes it, after which the agent may be asked again", async () => {
    const agent = player();
    const given = await trainedOn(agent);
    agent.read = () => undefined;
    await expect(agent.act("one")).rejects.toMatchObject({
      code: "AGENT_NO_ACTION",
      message: expect.stringMatching(/no action in the reply "[ab]".*invalidReply/) as string,
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
    const agent = player({ invalidReply: { retries: 3 } });
    const given = await trainedOn(agent);
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

  it("gets the action that is chosen for it, and the penalty stays with its turn", async () => {
    const fallback = vi.fn<(observation: string) => number>(() => 9);
    const agent = player({ invalidReply: { retries: 1, penalty: 0.25, fallback } });
    const given = await trainedOn(agent);
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
    const given = await trainedOn(agent);
    await playEpisode(agent, rewards);
    await agent.trainBatch();
    return given[0].turns.map(({ reward }) => reward);
  };

  it("stays where it is unless sharing is asked for", async () => {
    expect(await rewardsOf({}, [0, 0, 3])).toEqual([0, 0, 3]);
    expect(await rewardsOf({ shareSparseRewards: true }, [0, 0, 3])).toEqual([1, 1, 1]);
    expect(await rewardsOf({ shareSparseRewards: true }, [0, 1, 3])).toEqual([0, 1, 3]);
    expect(await rewardsOf({ shareSparseRewards: true }, [4])).toEqual([4]);
  });

  it("is shared also where a reply without an action cost something", async () => {
    const agent = player({ shareSparseRewards: true, invalidReply: { penalty: 0.5, fallback: () => 0 } });
    const given = await trainedOn(agent);
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

describe("what the model is shown", () => {
  const promptsOf = async (agent: Player, turns: number) => {
    const given = await trainedOn(agent);
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
    const prompts = await promptsOf(player({ maxContext: 80 }), 20);
    expect(prompts.at(-1)).toContain("Rules.");
    expect(prompts.at(-1)).toContain("State 20.");
    expect(prompts.at(-1)).not.toContain("State 1.");
    await expect(promptsOf(player({ maxContext: 80, contextPolicy: "error" }), 20)).rejects.toMatchObject({
      code: "CONTEXT_OVERFLOW",
    });
  });

  it("is one message alone with formatPrompt", async () => {
    class Single extends Player {
      override formatPrompt(observation: string) {
        return `All of it: ${observation}`;
      }
    }
    const agent = new Single(model, undefined, { ppo: { batchSize: 100 } });
    const prompts = await promptsOf(agent, 2);
    expect(prompts).toEqual(["user\nAll of it: State 1.\nassistant\n", "user\nAll of it: State 2.\nassistant\n"]);
  });

  it.each([
    ["has no system message", chatTemplates.alternating, /^\[INST\] Rules\.\n\nState 1\. \[\/INST\]/],
    ["is missing", undefined, /^Rules\.\n\nState 1\.\n\n>$/],
  ])("is the rules too where a chat template %s", async (_, template, expected) => {
    const tokenizer = testTokenizer("gpt2", template);
    const play = new Player(model, tokenizer).playthrough(new RandomStream(0));
    play.observe("State 1.", {});
    expect(tokenizer.decode(play.prompt(), { skipSpecialTokens: true })).toMatch(expected);
  });
});

function bang(): unknown {
  throw new Error("bang");
}

describe("the user's own code", () => {
  type Method = "getSystemPrompt" | "formatObservation" | "getChoices" | "extractAction";
  const faults: readonly (readonly [Method, () => unknown, RegExp])[] = [
    ["getSystemPrompt", bang, /getSystemPrompt threw: bang/],
    ["formatObservation", bang, /formatObservation threw: bang/],
    ["getChoices", bang, /getChoices threw: bang/],
    ["extractAction", bang, /extractAction threw on the reply "[ab]": bang/],
    ["getSystemPrompt", () => 3, /getSystemPrompt must give a text, not 3/],
    ["formatObservation", () => undefined, /formatObservation must give a text, not undefined/],
    ["getChoices", () => [], /getChoices must give a list of texts that is not empty/],
    ["getChoices", () => ["a", 1], /getChoices must give a list of texts/],
  ];
  it.each(faults)("is named when %s fails", async (method, give, message) => {
    const agent = player();
    Object.assign(agent, { [method]: give });
    await expect(agent.act("one")).rejects.toMatchObject({
      code: "AGENT_FAILED",
      message: expect.stringMatching(message) as string,
    });
  });

  it("may take its time to read a reply", async () => {
    const agent = player();
    Object.assign(agent, { extractAction: async () => Promise.resolve(5) });
    expect(await agent.act("one")).toBe(5);
  });

  it("must say how an observation reads", async () => {
    class Silent extends Agent<string, string> {
      override extractAction(response: string) {
        return response;
      }
    }
    await expect(new Silent(model).act("one")).rejects.toThrow("Silent must say how an observation reads");
  });
});

describe("options", () => {
  it.each([
    [{ temperature: 1 }, /There is no agent option "temperature"/],
    [{ historyTurn: 1 }, /Did you mean historyTurns\?/],
    [{ historyTurns: -1 }, /historyTurns must be a whole number of at least 0/],
    [{ evalTemperature: -1 }, /evalTemperature must be a number of at least 0/],
    [{ contextPolicy: "drop" }, /contextPolicy must be "drop-oldest" or "error", not "drop"/],
    [{ maxContext: 0 }, /maxContext must be a whole number of at least 1/],
    [{ seed: 1.5 }, /seed must be a whole number/],
    [{ invalidReply: { retries: -1 } }, /invalidReply\.retries must be/],
    [{ invalidReply: { penalty: Number.NaN } }, /invalidReply\.penalty must be a number/],
    [{ invalidReply: { fallback: "random" } }, /invalidReply\.fallback must be "error"/],
    [{ invalidReply: { retrie: 1 } }, /Did you mean retries\?/],
    [{ generation: { temperature: -1 } }, /temperature must be/],
    [{ generation: { maxTokens: 1 } }, /no generation option "maxTokens"/],
  ])("refuses %j", (options, message) => {
    expect(() => new Player(model, undefined, options as never)).toThrow(message);
  });
});

describe("save and load", () => {
  it("keeps what was trained, as an adapter that names its model", async () => {
    const folder = await mkdtemp(join(tmpdir(), "agent-"));
    const own = await models.reopen(model.folder);
    const agent = new Player(own, await AutoTokenizer.fromPretrained(model.folder));
    await setTrainedValues(own, (i) => Math.sin(i));
    const before = await trainedValues(own);
    await agent.save(folder);
    const config = JSON.parse(await readFile(join(folder, "adapter_config.json"), "utf8")) as Record<string, unknown>;
    expect(config.base_model_name_or_path).toBe(model.folder);
    await setTrainedValues(own, () => 0);
    await agent.load(folder);
    expect(await trainedValues(own)).toEqual(before);
    await expect(agent.load(join(folder, "nowhere"))).rejects.toMatchObject({ code: "FILE_NOT_FOUND" });
    await rm(folder, { recursive: true });
  });
});
