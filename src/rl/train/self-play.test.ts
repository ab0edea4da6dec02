import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { grpo, ppo, reinforce, rloo } from "../algorithms/index.js";
import { recordRun } from "../../../test/support/counting-runs.js";
import { TrainableModels } from "../../../test/support/trainable.js";
import { openEnv } from "../../envs/registry/open-env.js";
import type { Env } from "../../envs/env.js";
import { VALUE_HEAD_DEFAULTS } from "../../engine/nn/value-head.js";
import { TextAgent } from "../agent/text-agent.js";
import type { AgentOptions } from "../agent/agent-options.js";
import type { AlgorithmOptions } from "../algorithms/algorithms.js";
import { InProcessTransport } from "../rollout/rollout-job.js";
import { GamePlayers } from "./self-play.js";
import { Trainer, type TrainerOptions } from "./trainer.js";

const models = new TrainableModels();
let modelFolder: string;
let otherFolder: string;
let folder: string;
beforeAll(async () => {
  ({ folder: modelFolder } = await models.open({ maxPositions: 512, scale: 0.2 }));
  ({ folder: otherFolder } = await models.open({ maxPositions: 512, scale: 0.3 }));
  folder = await mkdtemp(join(tmpdir(), "self-play-"));
});
afterAll(async () => {
  await models.close();
  await rm(folder, { recursive: true });
});

/** The reference of every second optimizer step. */
const SYNCED = { syncRefModel: true, refModelMixupAlpha: 0.6, refModelSyncSteps: 2 } as const;
const ALGORITHMS: Readonly<Record<string, AlgorithmOptions>> = {
  ppo: { algorithm: ppo({ batchSize: 12, miniBatchSize: 6, numPpoEpochs: 2, learningRate: 0.01 }) },
  grpo: { algorithm: grpo({ batchSize: 8, numGenerations: 4, learningRate: 0.01 }) },
  rloo: { algorithm: rloo({ batchSize: 8, numGenerations: 4, learningRate: 0.01, normalizeAdvantages: true }) },
  reinforce: { algorithm: reinforce({ batchSize: 8, baseline: "seat", learningRate: 0.01 }) },
  "ppo with a reference that follows": {
    algorithm: ppo({ batchSize: 12, miniBatchSize: 6, numPpoEpochs: 2, learningRate: 0.01, ...SYNCED }),
  },
  "reinforce with a reference that follows": {
    algorithm: reinforce({ batchSize: 8, learningRate: 0.01, klCoef: 0.1, ...SYNCED }),
  },
};

const LEAGUE = {
  selfPlay: true,
  opponents: "self:0.4,past:0.3,random:0.2,minimax:0.1",
  snapshotSteps: 1,
  leagueSize: 2,
  pastSelection: "hardest",
} as const;

async function setUp(options: Partial<TrainerOptions> = {}, agentOptions: AgentOptions = ALGORITHMS.ppo) {
  const hasCritic = agentOptions.algorithm?.hasCritic === true;
  const model = await models.reopen(modelFolder, {
    r: 4,
    seed: 1,
    valueHead: hasCritic ? { ...VALUE_HEAD_DEFAULTS, dropout: 0 } : undefined,
  });
  const env = () => openEnv("Nim-v0", { piles: [2, 3] });
  const { text } = await env();
  const agent = new TextAgent(model, text!, { actionMode: "scored", historyTurns: 0, seed: 3, ...agentOptions });
  const trainer = new Trainer({ agent, env, numEnvs: 4, episodes: 40, seed: 11, ...LEAGUE, ...options });
  return { model, agent, trainer, env };
}

describe("self-play", () => {
  it.each(Object.keys(ALGORITHMS))("with %s resumes with the numbers of an uninterrupted run", async (name) => {
    const whole = await recordRun(await setUp({}, ALGORITHMS[name]));
    expect(whole.logs.length).toBeGreaterThan(3);
    const checkpointDir = await mkdtemp(join(folder, "run-"));
    const logs = [];
    let values = new Float32Array();
    for (let part = 0; part < whole.logs.length; part++) {
      const again = await setUp({ checkpointDir, saveSteps: 1 }, ALGORITHMS[name]);
      expect(await again.trainer.resume()).toBe(part);
      const result = await recordRun(again, { updates: 1 });
      logs.push(...result.logs);
      ({ values } = result as { values: Float32Array<ArrayBuffer> });
    }
    expect(logs).toEqual(whole.logs);
    expect(values).toEqual(whole.values);
  });

  it("penalizes the KL to a reference that follows the policy, if syncRefModel is on", async () => {
    const klOf = async (options: { syncRefModel: boolean; refModelSyncSteps: number }) => {
      const { batchSize, learningRate } = { batchSize: 12, learningRate: 0.01 };
      const algorithm = ppo({ batchSize, miniBatchSize: 12, learningRate, refModelMixupAlpha: 1, ...options });
      const { logs } = await recordRun(await setUp({}, { algorithm }));
      return logs.map((metrics) => Math.abs(metrics["objective/kl"]));
    };
    const followed = await klOf({ syncRefModel: true, refModelSyncSteps: 1 });
    const left = await klOf({ syncRefModel: true, refModelSyncSteps: 1000 });
    expect(Math.max(...followed)).toBeLessThan(1e-6);
    expect(left[0]).toBeLessThan(1e-6);
    expect(Math.min(...left.slice(1))).toBeGreaterThan(1e-4);
  });

  it("plays against all opponents of the league, and counts their games apart", async () => {
    const { logs } = await recordRun(await setUp({ episodes: 200 }));
    const names = new Set(logs.flatMap((metrics) => Object.keys(metrics)));
    for (const name of ["first_seat_return", "score_against_past", "score_against_random", "score_against_minimax"])
      expect(names).toContain(`self_play/${name}`);
    for (const metrics of logs) expect(metrics["rollout/invalid_action_ratio"]).toBe(0);
  });

  it("gives the same run in jobs as in this process", async () => {
    const direct = await recordRun(await setUp({}, ALGORITHMS.grpo));
    const parts = await setUp({}, ALGORITHMS.grpo);
    const transport = new InProcessTransport({
      model: parts.model.causalLM,
      newEpisode: (random) => parts.agent.newEpisode(random),
      players: new GamePlayers(parts.agent),
      createEnv: parts.env,
      settings: parts.agent.settings,
      onWarning: () => {},
    });
    const trainer = new Trainer({
      agent: parts.agent,
      env: parts.env,
      numEnvs: 4,
      episodes: 40,
      seed: 11,
      ...LEAGUE,
      transport,
      maxStaleness: 0,
      envsPerJob: 4,
    });
    const jobs = await recordRun({ trainer, model: parts.model });
    await transport.close();
    expect(jobs.logs).toEqual(direct.logs);
    expect(jobs.values).toEqual(direct.values);
  });

  describe("against adapters of other runs", () => {
    const saveAdapter = async (name: string, { r = 4, base = modelFolder } = {}) => {
      const model = await models.reopen(base, { r, seed: 8, valueHead: undefined });
      const path = join(folder, name);
      await model.savePretrained(path);
      return path;
    };

    it("plays and resumes with the same numbers, and counts their games apart", async () => {
      // Of an algorithm without a value head; the run trains one.
      const path = await saveAdapter("other-run/adapter");
      const options = { opponents: `self:0.5,past:0.2,${path.replace("/adapter", "")}:0.3` };
      const whole = await recordRun(await setUp(options));
      const names = whole.logs.flatMap((metrics) => Object.keys(metrics));
      expect(names).toContain("self_play/score_against_adapter");
      expect(names).toContain("self_play/score_against_past");
      const checkpointDir = await mkdtemp(join(folder, "run-"));
      const logs = [];
      for (let part = 0; part < whole.logs.length; part++) {
        const again = await setUp({ ...options, checkpointDir, saveSteps: 1 });
        await again.trainer.resume();
        logs.push(...(await recordRun(again, { updates: 1 })).logs);
      }
      expect(logs).toEqual(whole.logs);
    });

    it.each<[string, () => Promise<string>, RegExp]>([
      ["of another base model", async () => saveAdapter("other-base", { base: otherFolder }), /base model/],
      ["of another rank", async () => saveAdapter("other-rank", { r: 2 }), /"r":2.*"r":4/],
      ["that does not exist", async () => Promise.resolve("./no/such/run"), /no\/such\/run/],
    ])("refuses one %s", async (_, prepare, message) => {
      const path = await prepare();
      const { trainer, agent } = await setUp({ opponents: `self:0.5,${path}:0.5` });
      const warmStart = vi.spyOn(agent, "warmStart");
      await expect(trainer.train()).rejects.toMatchObject({
        code: "INVALID_ARGUMENT",
        message: expect.stringMatching(message) as string,
      });
      expect(warmStart).not.toHaveBeenCalled();
    });
  });

  it("computes exact values in evaluations", async () => {
    const { logs } = await recordRun(await setUp({ evalSteps: 100, evalEpisodes: 2, evalExact: true }));
    const metrics = logs.at(-1)!;
    // In Nim the seat that plays second against minimax has no chance, and a best response wins at
    // least the value of the game.
    expect(metrics["eval/loss_against_minimax_seat_1"]).toBeCloseTo(1, 12);
    expect(metrics["eval/nash_conv"]).toBeGreaterThan(0);
    expect(metrics["eval/win_against_random_seat_0"] + metrics["eval/loss_against_random_seat_0"]).toBeCloseTo(1, 9);
  });

  it("computes exact values without playing episodes", async () => {
    const { logs } = await recordRun(await setUp({ evalSteps: 100, evalEpisodes: 0, evalExact: true }));
    expect(logs.at(-1)).toHaveProperty(["eval/nash_conv"]);
    expect(logs.at(-1)).not.toHaveProperty(["eval/mean_return"]);
  });

  it.each<[string, Partial<TrainerOptions>, string]>([
    ["of an unknown opponent", { opponents: "self,stockfish:1" }, 'unknown opponent "stockfish"'],
    ["without any weight", { opponents: "self:0,past:0" }, "no weight above 0"],
    ["of a weight below 0", { opponents: "self:-1" }, "weight of at least 0"],
    ["of a weight that is no number", { opponents: "self:much" }, "weight of at least 0"],
    ["with an opponent twice", { opponents: "self:1,self:2" }, "self twice"],
    ["in an environment with one player", { env: "FrozenLake-v1" }, "one player"],
    ["with minimax in poker", { env: "KuhnPoker-v0", opponents: "minimax" }, "no minimax player"],
    [
      "with exact values in Pig",
      { env: "Pig-v0", evalExact: true, evalSteps: 1, opponents: "self" },
      "chance during play",
    ],
    ["with exact values without evaluations", { evalExact: true }, "evalSteps"],
    ["without self-play", { selfPlay: false }, "`opponents` is for games in self-play"],
    [
      "of snapshots without self-play",
      { selfPlay: false, opponents: undefined, pastSelection: undefined, leagueSize: undefined },
      "`snapshotSteps` is for games in self-play",
    ],
    [
      "with a best model by exact values alone",
      { evalExact: true, evalSteps: 1, evalEpisodes: 0, loadBestModelAtEnd: true },
      "evalEpisodes",
    ],
  ])("refuses a league %s before training", async (_, options, message) => {
    const train = async () => {
      const { trainer } = await setUp(options);
      await trainer.train();
    };
    await expect(train()).rejects.toThrow(message);
  });

  it("refuses exact values of completions that are not constrained, and of prompts with earlier turns", async () => {
    const options = { evalExact: true, evalSteps: 1 };
    const free = await setUp(options, { ...ALGORITHMS.ppo, actionMode: "free" } as AgentOptions);
    await expect(free.trainer.train()).rejects.toThrow("actionMode");
    const history = await setUp(options, { ...ALGORITHMS.ppo, historyTurns: 2 });
    await expect(history.trainer.train()).rejects.toThrow("historyTurns");
  });

  it("ends an opponent that hangs by the time limit", async () => {
    const { agent } = await setUp({}, { ...ALGORITHMS.ppo, callTimeoutSeconds: 0.05 });
    const env = await openEnv("Nim-v0", { piles: [2, 3] });
    const { game } = env.unwrapped as Env & { game: { listActions: () => unknown; step: unknown } };
    // A game may be asynchronous.
    game.step = () => new Promise(() => {});
    const trainer = new Trainer({ agent, env: () => env, numEnvs: 1, episodes: 4, ...LEAGUE });
    await expect(trainer.train()).rejects.toThrow("did not settle within 0.05 s");
  });
});
