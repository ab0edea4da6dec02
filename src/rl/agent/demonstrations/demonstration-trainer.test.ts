import { defineAlgorithm, ppo } from "../../algorithms/index.js";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { EvenOddAgent } from "../../../../test/support/counting.js";
import { TrainableModels, readTrainedValues } from "../../../../test/support/trainable.js";
import type { Metrics } from "../../algorithms/learner.js";
import { make } from "../../../envs/registry/make.js";
import { AutoModelForCausalLMWithValueHead } from "../../../generation/index.js";
import type { Turn } from "../../rollout/trajectory.js";
import { RandomStream } from "../../../core/random/random-stream.js";
import type { Agent } from "../agent.js";
import type { AgentOptions } from "../agent-options.js";
import { TextAgent, type TextAgentOptions } from "../text-agent.js";
import type { Demonstration } from "../../data/read-demonstrations.js";
import { ReplayBuffer, toReplayTurn } from "./replay-buffer.js";

const models = new TrainableModels();
let folder: string;
let modelFolder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "demos-"));
  ({ folder: modelFolder } = await models.open({ maxPositions: 256, scale: 0.2 }));
});
afterAll(async () => {
  await models.close();
  await rm(folder, { recursive: true });
});

/** What Follower is to learn: the parity of each number. */
const createDemonstrations = (numbers: readonly number[]): Demonstration[] =>
  numbers.map((number) => ({
    turns: [{ observationText: String(number), completion: number % 2 === 0 ? "even" : "odd" }],
  }));

const PPO = { batchSize: 8, miniBatchSize: 8, initKlCoef: 0, adaptiveKl: false };
const settings: AgentOptions<number, number> = {
  algorithm: ppo(PPO),
  historyTurns: 0,
  sftLearningRate: 1e-2,
  sftSteps: 40,
};

/** A new adapter on the same model each time. */
async function follower(options: AgentOptions<number, number> = {}): Promise<EvenOddAgent> {
  return new EvenOddAgent(await models.reopen(modelFolder), undefined, { ...settings, ...options });
}

/** The turns of an episode in which these observations are shown. */
async function sampleTurns<Observation>(
  agent: Agent<Observation>,
  observations: readonly Observation[],
): Promise<Turn[]> {
  const episode = agent.newEpisode(new RandomStream(4));
  const turns: Turn[] = [];
  for (const observation of observations) {
    episode.observe(observation, {});
    turns.push((await episode.act()).turn);
  }
  return turns;
}

/** An update's turns: episodes of one turn, of which only the last one pays. */
async function playEpisode(agent: EvenOddAgent, turns: number): Promise<Metrics | undefined> {
  let metrics: Metrics | undefined;
  for (let turn = 0; turn < turns; turn++) {
    await agent.act(turn % 10);
    agent.assignReward(turn === turns - 1 ? 1 : 0);
    metrics = await agent.terminateEpisode();
  }
  return metrics;
}

const completion = ({ turns: [{ observationText, completion: reply }] }: Demonstration) => ({
  prompt: observationText,
  completion: reply,
});

async function writeLines(name: string, lines: readonly unknown[]): Promise<string> {
  const path = join(folder, name);
  await writeFile(path, lines.map((line) => (typeof line === "string" ? line : JSON.stringify(line))).join("\n"));
  return path;
}

/** How many of the ten numbers it answers rightly when it is greedy. */
async function score(agent: EvenOddAgent): Promise<number> {
  let right = 0;
  agent.eval();
  for (let number = 0; number < 10; number++) {
    if ((await agent.act(number)) === number % 2) right++;
    await agent.terminateEpisode();
  }
  agent.train();
  return right;
}

describe("demonstrations", () => {
  it.each(["none", "sum", "token", "word"] as const)(
    "are encoded as the turns of a rollout with history and choices, scored by %s",
    async (scoring) => {
      const options = { historyTurns: 2, ...(scoring === "none" ? {} : { actionScoring: scoring }) };
      const turns = await sampleTurns(await follower(options), [3, 4, 5, 6]);
      const demonstration = {
        turns: turns.map(({ text }, i) => ({ observationText: String(3 + i), completion: text })),
      };
      const teacher = await follower({ ...options, sftWarmStart: [demonstration] });
      const { episodes } = await teacher.loadDemonstrations();
      expect(episodes[0].turns).toEqual(turns.map(toReplayTurn));
      expect(Object.keys(episodes[0].turns[0])).toContain(scoring === "none" ? "allowedTokens" : "actionCandidates");
    },
  );

  it("are encoded as the prompts and tokens of a rollout with free completions and their end token", async () => {
    const model = await AutoModelForCausalLMWithValueHead.fromPretrained("embedded", { device: "cpu", threads: 1 });
    models.track(model);
    const { text } = make<number, number>("FrozenLake-v1");
    const lake = (options: TextAgentOptions<number, number> = {}) =>
      new TextAgent(model, text!, { historyTurns: 1, generation: { maxNewTokens: 8 }, ...options });
    const turns = await sampleTurns(lake(), [0, 1, 2, 6]);
    expect(turns.map(({ finishReason }) => finishReason)).toEqual(["stop", "stop", "stop", "stop"]);
    const shown = [0, 1, 2, 6].map((state) => text!.formatObservation(state, {}));
    const demonstration = { turns: turns.map((turn, i) => ({ observationText: shown[i], completion: turn.text })) };
    const { episodes } = await lake({ sftWarmStart: [demonstration] }).loadDemonstrations();
    expect(episodes[0].turns.map(({ prompt }) => prompt)).toEqual(turns.map(({ prompt }) => prompt));
    expect(episodes[0].turns.map(({ tokens }) => tokens)).toEqual(turns.map(({ tokens }) => tokens));
  });

  it("are trained on before the first act", async () => {
    const numbers = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9];
    const taught = await follower({ sftWarmStart: createDemonstrations(numbers) });
    await taught.act(0);
    await taught.terminateEpisode({ train: false });
    expect(await score(taught)).toBe(10);
    expect(taught.replay.size).toBe(10);
    expect(await score(await follower())).toBeLessThan(9);
  });

  it("are not trained on with an algorithm that cannot be created", async () => {
    const create = async () => Promise.reject(new Error("not today"));
    const broken = defineAlgorithm({ name: "broken", settings: {}, create });
    const agent = await follower({ sftWarmStart: createDemonstrations([0, 1]), algorithm: broken({}) });
    const before = await readTrainedValues(agent.model);
    await expect(agent.act(0)).rejects.toThrow("not today");
    await expect(agent.warmStart()).rejects.toThrow("not today");
    expect(await readTrainedValues(agent.model)).toEqual(before);
  });

  it("increase in probability with each update, which leaves the value head unchanged", async () => {
    const agent = await follower({
      sftWarmStart: createDemonstrations([1, 2, 3, 4]),
      sftLearningRate: 1e-3,
      sftSteps: 10,
    });
    await playEpisode(agent, 8);
    const { parameters } = agent.model.causalLM;
    const heads = parameters.names.filter((name) => name.startsWith("v_head"));
    expect(heads.length).toBeGreaterThan(0);
    const before = await Promise.all(heads.map(async (name) => (await parameters.read(name)).slice()));
    const losses: number[] = [];
    await agent.warmStart({ onStep: ({ loss }) => void losses.push(loss) });
    expect(losses).toEqual([]);
    await agent.sftFromJsonl(await writeLines("four.jsonl", createDemonstrations([1, 2, 3, 4]).map(completion)), {
      onStep: ({ loss }) => void losses.push(loss),
    });
    expect(losses).toHaveLength(10);
    expect(losses.at(-1)).toBeLessThan(losses[0]);
    expect(await Promise.all(heads.map((name) => parameters.read(name)))).toEqual(before);
  });

  it("are trained on in an order that depends on the seed", async () => {
    const values = async (seed: number) => {
      const agent = await follower({
        sftWarmStart: createDemonstrations([0, 1, 2, 3, 4, 5, 6, 7]),
        sftSteps: 3,
        sftBatchSize: 3,
        seed,
      });
      await agent.warmStart();
      return readTrainedValues(agent.model);
    };
    const first = await values(1);
    expect(await values(1)).toEqual(first);
    expect(await values(2)).not.toEqual(first);
  });

  it("are read from JSONL under all key names and ranked by their return", async () => {
    const path = await writeLines("names.jsonl", [
      { prompt: "2", completion: "even" },
      { input: "3", output: "odd", return: 2 },
      "",
      {
        messages: [
          { role: "user", content: "4" },
          { role: "assistant", content: "even" },
          { role: "user", content: "5" },
          { role: "assistant", content: "odd" },
        ],
        return: 1,
      },
    ]);
    const agent = await follower({ sftWarmStart: path });
    const { episodes, rejected } = await agent.loadDemonstrations();
    expect(rejected).toEqual([]);
    expect(episodes.map(({ turns, return: value }) => [turns.map(({ text }) => text), value])).toEqual([
      [["even"], null],
      [["odd"], 2],
      [["even", "odd"], 1],
    ]);
    expect(agent.model.tokenizer.decode(episodes[0].turns[0].prompt)).toContain("Say it.");
  });

  it.each(["1e200", "-1e999"])("are rejected with a return of %s, or skipped", async (value) => {
    const lines = [{ prompt: "2", completion: "even" }, `{"prompt":"2","completion":"even","return":${value}}`];
    const path = await writeLines("returns.jsonl", lines);
    await expect((await follower({ sftWarmStart: path })).loadDemonstrations()).rejects.toMatchObject({
      code: "DEMONSTRATION_REJECTED",
      message: expect.stringMatching(/returns\.jsonl, line 2: the return .* is invalid/) as string,
    });
    const lenient = await follower({ sftWarmStart: path, onInvalidLine: "skip" });
    expect((await lenient.loadDemonstrations()).episodes).toHaveLength(1);
  });

  it("are rejected with their line, or skipped, if a completion is invalid", async () => {
    const path = await writeLines("rejected.jsonl", [
      { prompt: "2", completion: "even" },
      { prompt: "3", completion: "perhaps" },
      "{",
      { prompt: "3" },
    ]);
    const strict = await follower({
      sftWarmStart: await writeLines("one.jsonl", [{ prompt: "3", completion: "perhaps" }]),
    });
    await expect(strict.loadDemonstrations()).rejects.toThrow(/one\.jsonl, line 1.*"perhaps".*none of the choices/);
    await expect((await follower({ sftWarmStart: path })).loadDemonstrations()).rejects.toThrow(/line 3: invalid JSON/);
    const { episodes, rejected } = await (
      await follower({ sftWarmStart: path, onInvalidLine: "skip" })
    ).loadDemonstrations();
    expect(episodes).toHaveLength(1);
    expect(rejected.map((reason) => /line (\d)/.exec(reason)![1])).toEqual(["3", "4", "2"]);
    const none = await follower({ onInvalidLine: "skip" });
    await expect(none.sftFromJsonl(await writeLines("none.jsonl", [{ prompt: "3", completion: "?" }]))).rejects.toThrow(
      "All 1 demonstrations",
    );
  });

  it("are rejected if the agent's parser finds no action", async () => {
    class Picky extends EvenOddAgent {
      override getChoices() {
        return undefined as unknown as string[];
      }
      override extractAction(response: string) {
        return ["even", "odd"].includes(response) ? 0 : (undefined as unknown as 0);
      }
    }
    const agent = new Picky(await models.reopen(modelFolder), undefined, settings);
    const path = await writeLines("picky.jsonl", [
      { prompt: "1", completion: "odd" },
      { prompt: "1", completion: "one" },
    ]);
    await expect(agent.sftFromJsonl(path)).rejects.toMatchObject({ code: "DEMONSTRATION_REJECTED" });
    await expect(agent.sftFromJsonl(path)).rejects.toThrow(/line 2.*contains no action/);
  });
});

describe("online SFT", () => {
  it("trains on successes, logs metrics, and can be disabled and enabled", async () => {
    const agent = await follower({
      onlineSft: true,
      onlineSftWeight: 1,
      algorithm: ppo({ ...PPO, learningRate: 0 }),
    });
    const first = await playEpisode(agent, 8);
    expect(first).toMatchObject({ "replay/size": 1, "replay/return_max": 1, "sft/learning_rate": 1e-2 });
    const second = await playEpisode(agent, 8);
    expect(second!["sft/loss"]).toBeLessThan(first!["sft/loss"]);
    const before = await readTrainedValues(agent.model);
    agent.disableOnlineSft();
    const third = await playEpisode(agent, 8);
    expect(third).not.toHaveProperty("sft/loss");
    expect(third).toHaveProperty("replay/size");
    expect(await readTrainedValues(agent.model)).toEqual(before);
    expect(agent.enableOnlineSft().onlineSft).toBe(true);
    expect(await playEpisode(agent, 8)).toHaveProperty("sft/loss");
  });

  it("records and logs nothing if it was never enabled", async () => {
    const agent = await follower();
    const metrics = await playEpisode(agent, 8);
    expect(Object.keys(metrics!).filter((name) => /^(replay|sft)\//.test(name))).toEqual([]);
    expect(agent.replay.size).toBe(0);
  });

  it("changes nothing with a weight of 0", async () => {
    const algorithm = ppo({ ...PPO, learningRate: 0 });
    const agent = await follower({ onlineSft: true, onlineSftWeight: 0, algorithm });
    const before = await readTrainedValues(agent.model);
    expect(await playEpisode(agent, 8)).toHaveProperty("sft/loss");
    expect(await readTrainedValues(agent.model)).toEqual(before);
  });

  it("uses a given replay buffer", async () => {
    const replay = new ReplayBuffer({ capacity: 2 });
    const agent = await follower({ onlineSft: true, replay });
    await playEpisode(agent, 8);
    expect(replay.size).toBe(1);
  });
});
