import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ppo } from "../algorithms/index.js";
import { playEpisode, ScriptedAgent, captureTrajectories } from "../../../test/support/player.js";
import { setTrainedValues, TrainableModels, readTrainedValues } from "../../../test/support/trainable.js";
import type { LanguageModel } from "../../generation/index.js";
import { AutoTokenizer } from "../../models/text/index.js";
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

describe("the loop", () => {
  it("trains when enough turns are gathered, on all of them, and gives the update's metrics", async () => {
    const agent = player({ algorithm: ppo({ batchSize: 5 }) });
    const given = await captureTrajectories(agent);
    await agent.act("one");
    expect(agent.pendingTurns).toBe(1);
    agent.assignReward(1);
    await agent.act("two");
    agent.assignReward(2);
    agent.assignReward(0.5);
    expect(await agent.terminateEpisode()).toBeUndefined();
    await agent.act("three");
    expect(agent.pendingTurns).toBe(3);
    await agent.act("four");
    await agent.act("five");
    expect(given).toEqual([]);
    expect(await agent.terminateEpisode()).toMatchObject({ "extraction/function": 1, "extraction/failed": 0 });
    expect(given.map(({ turns, end }) => [turns.map(({ reward }) => reward), end])).toEqual([
      [[1, 2.5], "terminated"],
      [[0, 0, 0], "terminated"],
    ]);
    expect(agent.pendingTurns).toBe(0);
  });

  it("trains on fewer on request", async () => {
    const agent = player();
    const given = await captureTrajectories(agent);
    await playEpisode(agent, [1]);
    expect(given).toEqual([]);
    await agent.trainBatch();
    expect(given).toHaveLength(1);
    await expect(agent.trainBatch()).rejects.toThrow("nothing to train on");
  });

  it("keeps the hint of a turn for a teacher, from the info or the agent's own method", async () => {
    const agent = player();
    const given = await captureTrajectories(agent);
    await agent.act("one", { hint: "Stay." });
    await agent.act("two", { hint: 3 });
    agent.getTeacherHint = (observation) => `It is ${observation}.`;
    await agent.act("three", { hint: "Stay." });
    await agent.terminateEpisode();
    await agent.trainBatch();
    expect(given[0].turns.map(({ teacherHint }) => teacherHint)).toEqual(["Stay.", undefined, "It is three."]);
    agent.getTeacherHint = () => 4 as never;
    await expect(agent.act("four")).rejects.toThrow(/getTeacherHint must return a string or undefined, got 4/);
  });

  it("leaves an episode out on request", async () => {
    const agent = player();
    await agent.act("one");
    expect(await agent.terminateEpisode({ train: false })).toBeUndefined();
    expect(agent.pendingTurns).toBe(0);
    await expect(agent.trainBatch()).rejects.toThrow("nothing to train on");
  });

  it("bootstraps the return of a truncated episode", async () => {
    const agent = player();
    const given = await captureTrajectories(agent);
    await agent.act("one");
    await agent.terminateEpisode({ finalObservation: "beyond" });
    await agent.trainBatch();
    const [{ end, bootstrapPrompt, turns }] = given;
    expect(end).toBe("truncated");
    expect(bootstrapPrompt!.slice(0, turns[0].prompt.length)).toEqual(turns[0].prompt);
    expect(text(bootstrapPrompt!)).toContain("beyond");
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
    [
      "assignReward before act",
      (agent: ScriptedAgent) => agent.assignReward(1),
      "INVALID_STATE",
      "was called before act()",
    ],
    [
      "terminateEpisode before act",
      (agent: ScriptedAgent) => agent.terminateEpisode(),
      "INVALID_STATE",
      "was called before act()",
    ],
    [
      "a reward that is NaN",
      (agent: ScriptedAgent) => agent.assignReward(Number.NaN),
      "INVALID_ARGUMENT",
      "NaN must be",
    ],
    ["a reward beyond the limit", (agent: ScriptedAgent) => agent.assignReward(1e200), "INVALID_ARGUMENT", "1e+200"],
    [
      "rewards whose sum is beyond the limit",
      async (agent: ScriptedAgent) => {
        await agent.act("one");
        for (let i = 0; i < 2; i++) agent.assignReward(6e5);
      },
      "INVALID_ARGUMENT",
      "The sum 1200000",
    ],
    [
      "a reward that is a text",
      (agent: ScriptedAgent) => agent.assignReward("1" as never),
      "INVALID_ARGUMENT",
      "finite number",
    ],
    [
      "an observation with NaN",
      (agent: ScriptedAgent) => agent.act([1, Number.NaN] as never),
      "ENV_FAILED",
      '[1,"NaN"]',
    ],
  ])("refuses %s", async (_, use, code, message) => {
    const attempt = (async () => use(player()))();
    await expect(attempt).rejects.toMatchObject({ code, message: expect.stringContaining(message) as string });
  });

  it("refuses a reward and an end after an episode has ended", async () => {
    const agent = player();
    await agent.act("one");
    await agent.terminateEpisode();
    expect(() => agent.assignReward(1)).toThrow("was called before act()");
    await expect(agent.terminateEpisode()).rejects.toThrow("was called before act()");
  });

  it("rejects a call before another one has returned", async () => {
    const agent = player();
    const acting = agent.act("one");
    await expect(agent.act("one")).rejects.toThrow("act() was called before act() returned. Await each call");
    await expect(agent.terminateEpisode()).rejects.toThrow("terminateEpisode() was called before act() returned");
    expect(() => agent.assignReward(1)).toThrow("before act() returned");
    await acting;
    agent.assignReward(1);
    const ending = agent.terminateEpisode();
    await expect(agent.act("two")).rejects.toThrow("before terminateEpisode() returned");
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
    expect(agent.pendingTurns).toBe(0);
    expect(agent.train().isTraining).toBe(true);
    await agent.act("same");
    expect(agent.pendingTurns).toBe(1);
  });

  it("changes with the next episode, so that no greedy turn is ever trained", async () => {
    const agent = player().eval();
    const given = await captureTrajectories(agent);
    await agent.act("one");
    agent.train();
    await agent.act("two");
    await agent.terminateEpisode();
    expect(agent.pendingTurns).toBe(0);
    await agent.act("three");
    agent.eval();
    await agent.terminateEpisode();
    expect(agent.pendingTurns).toBe(1);
    await agent.trainBatch();
    expect(text(given[0].turns[0].prompt)).toContain("three");
  });

  it("samples after eval() if a temperature is given", async () => {
    const agent = player({ evalTemperature: 1 }).eval();
    const actions = new Set<number>();
    for (let i = 0; i < 24; i++) {
      actions.add(await agent.act("same"));
      await agent.terminateEpisode();
    }
    expect(actions.size).toBe(2);
  });
});

describe("save and load", () => {
  it("keeps what was trained, as an adapter that names its model", async () => {
    const folder = await mkdtemp(join(tmpdir(), "agent-"));
    const own = await models.reopen(model.folder);
    const agent = new ScriptedAgent(own, await AutoTokenizer.fromPretrained(model.folder));
    await setTrainedValues(own, (i) => Math.sin(i));
    const before = await readTrainedValues(own);
    await agent.save(folder);
    const config = JSON.parse(await readFile(join(folder, "adapter_config.json"), "utf8")) as Record<string, unknown>;
    expect(config.base_model_name_or_path).toBe(model.folder);
    await setTrainedValues(own, () => 0);
    await agent.load(folder);
    expect(await readTrainedValues(own)).toEqual(before);
    await expect(agent.load(join(folder, "nowhere"))).rejects.toMatchObject({ code: "FILE_NOT_FOUND" });
    await rm(folder, { recursive: true });
  });
});
