import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { grpo, ppo } from "../../rl/algorithms/index.js";
import { openTrainable } from "../../generation/auto-model.js";
import type { LanguageModel } from "../../generation/language-model.js";
import { readJson } from "../../core/files/json-file.js";
import type { MetricRecord } from "../../rl/tracking/index.js";
import { createGateway, GatewayTrainer, type GatewayTrainerOptions } from "./gateway-trainer.js";
import type { AgentEpisode } from "./session-source.js";

const folders: string[] = [];
afterAll(async () => {
  for (const folder of folders) await rm(folder, { recursive: true });
});

async function withModel<Result>(
  use: (model: LanguageModel) => Promise<Result>,
  valueHead: Parameters<typeof openTrainable>[1]["valueHead"] = null,
): Promise<Result> {
  const model = await openTrainable("embedded", { peftConfig: { r: 4, seed: 1 }, valueHead });
  try {
    return await use(model);
  } finally {
    await model.close();
  }
}

async function postJson(url: string, body: object): Promise<Record<string, unknown>> {
  const headers = { "content-type": "application/json" };
  const response = await fetch(url, { method: "POST", headers, body: JSON.stringify(body) });
  if (!response.ok) throw new Error(await response.text());
  return (await response.json()) as Record<string, unknown>;
}

/** Asks once or twice, and is paid for the answer "hit". */
async function ask({ baseURL, task, reward }: Pick<AgentEpisode<number>, "baseURL" | "task" | "reward">) {
  for (let turn = 0; turn <= task % 2; turn++) {
    const messages = [{ role: "user", content: `Total ${task}. hit or stay?` }];
    const { choices } = await postJson(`${baseURL}/chat/completions`, { model: "any", messages });
    const [{ message }] = choices as [{ message: { content: string } }];
    reward(message.content === "hit" ? 1 : 0);
  }
}

const settings = {
  tasks: [12, 13, 14],
  agent: ask,
  numSessions: 4,
  maxCompletionLength: 4,
  seed: 5,
  algorithm: grpo({ batchSize: 8, numGenerations: 4, learningRate: 1e-2, filterGroups: false }),
} as const satisfies Partial<GatewayTrainerOptions<number>>;

describe("GatewayTrainer", () => {
  it("warns after the first sessions if all have the same reward", async () => {
    const warnings: string[] = [];
    await withModel(async (model) => {
      const agent = (episode: AgentEpisode<number>) => ask({ ...episode, reward: () => {} });
      const onWarning = (message: string) => warnings.push(message);
      const algorithm = grpo({ batchSize: 64, numGenerations: 4, numIterations: 1, filterGroups: false });
      const trainer = new GatewayTrainer({
        ...settings,
        model,
        tasks: [12],
        agent,
        algorithm,
        episodes: 64,
        onWarning,
      });
      await trainer.train();
      await trainer.close();
    });
    expect(warnings.filter((message) => message.startsWith("All 64 rewards of the first update are 0"))).toHaveLength(
      1,
    );
    expect(warnings.join()).toContain("the task is beyond this model");
  });

  it("trains the sessions of an agent's function, and a resumed run equals an uninterrupted one", async () => {
    // One session at a time: which requests share a batch changes the last digits.
    const folder = await mkdtemp(join(tmpdir(), "gateway-"));
    folders.push(folder);
    const run = async (checkpointDir?: string, lastStep = Infinity) =>
      withModel(async (model) => {
        const trainer = new GatewayTrainer({ model, ...settings, numSessions: 1, episodes: 32, checkpointDir });
        await trainer.resume();
        const metrics: MetricRecord[] = [];
        const stop = new AbortController();
        const log = (step: number, record: MetricRecord) => {
          metrics.push(record);
          if (step === lastStep) stop.abort();
        };
        const { state } = await trainer.train({ tracker: { log }, signal: stop.signal });
        return { state, metrics };
      });
    const whole = await run();
    expect(whole.state).toMatchObject({ updates: 4, episodes: 32 });
    expect(whole.metrics[0]).toMatchObject({ "gateway/staleness_max": 0, "rollout/truncated_ratio": 0 });
    await run(folder, 2);
    const resumed = await run(folder);
    const values = ({ "rollout/ep_rew_mean": reward, loss, grad_norm: norm }: MetricRecord) => [reward, loss, norm];
    expect(resumed.metrics.map(values)).toEqual(whole.metrics.slice(2).map(values));
    const saved = (await readJson(join(folder, "000004", "state.json"))) as { task: object };
    expect(saved.task).toMatchObject({ nextTask: 8, sessions: 32, updates: 4 });
  });

  it("evaluates an agent greedily, without training", async () => {
    await withModel(async (model) => {
      const trainer = new GatewayTrainer({ model, ...settings, episodes: 8 });
      const first = await trainer.evaluate({ episodes: 9, seed: 2 });
      expect(first).toMatchObject({ episodes: 9, meanReturn: expect.any(Number) as number });
      expect(await trainer.evaluate({ episodes: 9, seed: 2 })).toEqual(first);
      expect(trainer.updates).toBe(0);
    });
  });

  it("evaluates the first sessions that other processes open, and trains none of them", async () => {
    await withModel(async (model) => {
      const trainer = new GatewayTrainer({ model, ...settings, agent: undefined, episodes: 8 });
      const url = await trainer.listen();
      const post = async (path: string, body: object) => {
        const headers = { "content-type": "application/json" };
        const response = await fetch(`${url}${path}`, { method: "POST", headers, body: JSON.stringify(body) });
        return (await response.json()) as { id: string };
      };
      const messages = [{ role: "user", content: "hi" }];
      const complete = (id: string) => post(`/sessions/${id}/v1/chat/completions`, { model: "any", messages });
      const evaluation = trainer.evaluate({ episodes: 3 });
      const [first, second, third, late] = [
        await post("/sessions", {}),
        await post("/sessions", {}),
        await post("/sessions", {}),
        await post("/sessions", {}),
      ];
      for (const { id } of [late, second, first]) await complete(id);
      await post(`/sessions/${late.id}/end`, { reward: 100 });
      await post(`/sessions/${second.id}/end`, { reward: 1 });
      await post(`/sessions/${third.id}/end`, {}); // without a completion
      await post(`/sessions/${first.id}/end`, { reward: 0 });
      expect(await evaluation).toMatchObject({ episodes: 2, meanReturn: 0.5 });
      const stop = new AbortController();
      const aborted = trainer.evaluate({ episodes: 1, signal: stop.signal });
      stop.abort(new Error("stopped"));
      await expect(aborted).rejects.toThrow("stopped");
      await expect(trainer.evaluate({ episodes: 0 })).rejects.toThrow("`episodes` must be an integer >= 1, got 0.");
      await trainer.close();
    });
  });

  it("ends with the error of an agent that throws, or requests nothing", async () => {
    await withModel(async (model) => {
      const train = async (agent: () => unknown) =>
        new GatewayTrainer({ model, ...settings, episodes: 8, agent }).train();
      await expect(
        train(() => {
          throw new Error("out of cards");
        }),
      ).rejects.toMatchObject({ code: "AGENT_FAILED", message: "The agent threw: out of cards" });
      await expect(train(() => undefined)).rejects.toThrow(/must use the `baseURL`/);
    });
  });

  it("rejects options that are unknown, out of range or missing", async () => {
    await withModel(async (model) => {
      expect(() => new GatewayTrainer({ model })).toThrow(/set `episodes` or `turns`/);
      expect(() => new GatewayTrainer({ model, episodes: 0 })).toThrow(/`episodes` must be an integer >= 1/);
      expect(() => new GatewayTrainer({ model, episode: 1 } as never)).toThrow(/no option "episode"/);
      await expect(createGateway({ model, episodes: 1, host: "0.0.0.0" })).rejects.toThrow(/needs an API key/);
    });
  });
});

describe("createGateway", () => {
  it("trains by PPO on sessions of other processes, which continue after updates", async () => {
    await withModel(
      async (model) => {
        const algorithm = ppo({ batchSize: 8, miniBatchSize: 8, numPpoEpochs: 1 });
        const gateway = await createGateway({ model, turns: 24, algorithm, maxCompletionLength: 4 });
        const metrics: MetricRecord[] = [];
        const training = gateway.train({ tracker: { log: (_step, record) => void metrics.push(record) } });
        const { url } = gateway;
        const play = async (task: number): Promise<void> => {
          const { id, baseURL } = (await postJson(`${url}/sessions`, {})) as { id: string; baseURL: string };
          let total = 0;
          await ask({ baseURL, task, reward: (reward) => (total += reward) });
          await postJson(`${url}/sessions/${id}/end`, { reward: total });
        };
        const done = new AbortController();
        const workers = [0, 1, 2].map(async (worker) => {
          while (!done.signal.aborted) await play(worker).catch(() => undefined);
        });
        const { state } = await training.finally(() => done.abort());
        await Promise.all(workers);
        expect(state.turns).toBeGreaterThanOrEqual(24);
        expect(metrics.every((record) => record["gateway/staleness_max"] <= 1)).toBe(true);
      },
      { kind: "linear" },
    );
  });

  it("groups the sessions of a task, and returns what it has when it is aborted", async () => {
    await withModel(async (model) => {
      const algorithm = grpo({ batchSize: 4, numGenerations: 4, filterGroups: false });
      const gateway = await createGateway({ model, episodes: 100, algorithm, maxCompletionLength: 4 });
      const controller = new AbortController();
      const training = gateway.train({ signal: controller.signal });
      for (const task of ["a", "b", "a", "a", "a"]) {
        const { id, baseURL } = (await postJson(`${gateway.url}/sessions`, { task })) as {
          id: string;
          baseURL: string;
        };
        await ask({ baseURL, task: 12, reward: () => undefined });
        await postJson(`${gateway.url}/sessions/${id}/end`, { reward: 1 });
      }
      await expect.poll(() => gateway.updates, { timeout: 30_000 }).toBe(1);
      controller.abort();
      const { state, isInterrupted } = await training;
      expect([state.updates, state.episodes, isInterrupted]).toEqual([1, 4, true]);
    });
  });
});
