import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { CountingEnv, EvenOddAgent, type CountingOptions } from "../../../test/support/counting.js";
import { TrainableModels, readTrainedValues } from "../../../test/support/trainable.js";
import type { PeftOptions } from "../../models/adapters/get-peft-model.js";
import type { AgentOptions } from "../agent/agent-options.js";
import type { Metrics } from "../algorithms/learner.js";
import type { LanguageModel } from "../../generation/index.js";
import type { CompletionRow } from "../tracking/index.js";
import type { TrainProgress } from "./train-loop.js";
import { Trainer, type TrainerOptions, type TrainCallbacks } from "./trainer.js";

const models = new TrainableModels();
let modelFolder: string;
let folder: string;
beforeAll(async () => {
  modelFolder = (await models.open({ maxPositions: 512, scale: 0.2 })).folder;
  folder = await mkdtemp(join(tmpdir(), "trainer-"));
});
afterAll(async () => {
  await models.close();
  await rm(folder, { recursive: true });
});

const agentOptions: AgentOptions<number, number> = {
  ppo: { batchSize: 12, miniBatchSize: 6, numPpoEpochs: 2, learningRate: 0.01, lrSchedulerType: "linear" },
  seed: 3,
};

interface Variant {
  readonly env?: CountingOptions;
  readonly agent?: AgentOptions<number, number>;
  readonly peft?: PeftOptions;
}

/** A run of twelve turns an update over four environments, whose episodes of five turns never end with an update. */
async function setUp(options: Partial<TrainerOptions> = {}, { env = {}, agent: more = {}, peft = {} }: Variant = {}) {
  // Dropout draws its own random numbers, which must resume too.
  const model = await models.reopen(modelFolder, { r: 4, loraDropout: 0.1, seed: 1, ...peft });
  const envs: CountingEnv[] = [];
  const agent = new EvenOddAgent(model, undefined, { ...agentOptions, ...more });
  const trainer = new Trainer({
    agent,
    env: () => {
      const made = new CountingEnv({ length: 5, ...env });
      envs.push(made);
      return made;
    },
    numEnvs: 4,
    turns: 48,
    seed: 11,
    ...options,
  });
  return { model, agent, trainer, envs };
}

interface Recorded {
  readonly logs: Metrics[];
  readonly values: Float32Array;
}

const TIMES = /^time\/|_time$|per_second$/;
const withoutTimes = (metrics: Metrics) =>
  Object.fromEntries(Object.entries(metrics).filter(([name]) => !TIMES.test(name)));

/** Trains to the end, or for so many updates; gives what was logged and the trained values. */
async function run(
  { trainer, model }: { trainer: Trainer; model: LanguageModel },
  { updates = Infinity, ...watch }: TrainCallbacks & { updates?: number } = {},
): Promise<Recorded & { isInterrupted: boolean }> {
  const logs: Metrics[] = [];
  const stop = new AbortController();
  const tracker = {
    log: (_step: number, metrics: Metrics) => {
      logs.push(withoutTimes(metrics));
      if (logs.length >= updates) stop.abort();
    },
  };
  const { isInterrupted } = await trainer.train({ tracker, signal: stop.signal, ...watch });
  const values = await readTrainedValues(model);
  return { logs, values, isInterrupted };
}

const fresh = () => mkdtemp(join(folder, "run-"));

/** An uninterrupted run with the default settings. */
let whole: Recorded;
beforeAll(async () => {
  whole = await run(await setUp());
});

describe("Trainer", () => {
  it("gives equal runs for equal seeds only", async () => {
    const second = await run(await setUp());
    const other = await run(await setUp({ seed: 12 }));
    expect(whole.logs).toHaveLength(4);
    expect(second).toEqual(whole);
    expect(other.values).not.toEqual(whole.values);
  });

  it("learns the rewarded action", async () => {
    const setup = await setUp(
      { turns: 400, numEnvs: 8 },
      {
        env: { reward: (_step, action) => action },
        agent: {
          historyTurns: 0,
          ppo: { batchSize: 40, learningRate: 0.005, initKlCoef: 0, advantageLevel: "turn", gamma: 0 },
        },
      },
    );
    const { logs } = await run(setup);
    expect(logs[0]["rollout/ep_rew_mean"]).toBeLessThan(4);
    expect(logs.at(-1)!["rollout/ep_rew_mean"]).toBeGreaterThan(4);
  });

  it.each<[string, Variant]>([
    ["with unfinished episodes", {}],
    ["with an adaptive KL coefficient", { agent: { ppo: { ...agentOptions.ppo, klTarget: 0.01, klHorizon: 50 } } }],
    ["with prompts of one turn", { agent: { historyTurns: 0 } }],
    ["with kept states of frozen layers", { agent: { historyTurns: 0 }, peft: { layersToTransform: [1] } }],
  ])("resumes with the numbers of an uninterrupted run, %s", async (_, more) => {
    const expected = Object.keys(more).length === 0 ? whole : await run(await setUp({}, more));
    const checkpoints = await fresh();
    const first = await run(await setUp({ checkpointDir: checkpoints }, more), { updates: 2 });
    expect(first.isInterrupted).toBe(true);
    const files = await readdir(join(checkpoints, "000002"));
    expect(files.includes("frozen_states.safetensors")).toBe(more.peft !== undefined);
    const again = await setUp({ checkpointDir: checkpoints }, more);
    expect(await again.trainer.resume()).toBe(2);
    const rest = await run(again);
    expect(rest.isInterrupted).toBe(false);
    expect([...first.logs, ...rest.logs]).toEqual(expected.logs);
    expect(rest.values).toEqual(expected.values);
  });

  it("resumes more than once, and from intermediate checkpoints", async () => {
    const checkpoints = await fresh();
    const logs: Metrics[] = [];
    for (let start = 0; start < 4; start += 2) {
      const part = await setUp({ checkpointDir: checkpoints, saveSteps: 1 });
      expect(await part.trainer.resume()).toBe(start);
      logs.push(...(await run(part, { updates: 2 })).logs);
    }
    expect(logs).toEqual(whole.logs);
    expect((await readdir(checkpoints)).sort()).toEqual(["000003", "000004"]);
  });

  it("continues with new episodes, and warns, if environments cannot save their state", async () => {
    const checkpoints = await fresh();
    const env = { isSaved: false };
    await run(await setUp({ checkpointDir: checkpoints }, { env }), { updates: 2 });
    const onWarning = vi.fn<(message: string) => void>();
    const again = await setUp({ checkpointDir: checkpoints, onWarning }, { env });
    expect(await again.trainer.resume()).toBe(2);
    const { logs } = await run(again);
    expect(onWarning.mock.calls).toEqual([[expect.stringContaining("continues with new episodes")]]);
    expect(logs.at(-1)!.num_turns).toBe(48);
  });

  it("ignores and removes the partial checkpoint of a killed process", async () => {
    const checkpoints = await fresh();
    await run(await setUp({ checkpointDir: checkpoints }), { updates: 2 });
    const unfinished = join(checkpoints, "000003.partial");
    await mkdir(unfinished);
    await writeFile(join(unfinished, "state.json"), "{");
    const again = await setUp({ checkpointDir: checkpoints });
    expect(await again.trainer.resume()).toBe(2);
    await run(again);
    expect((await readdir(checkpoints)).sort()).toEqual(["000002", "000004"]);
  });

  it("does not mix its checkpoints with those of another run", async () => {
    const checkpoints = await fresh();
    await run(await setUp({ checkpointDir: checkpoints }), { updates: 1 });
    const other = await setUp({ checkpointDir: checkpoints });
    await expect(other.trainer.train()).rejects.toMatchObject({
      code: "INVALID_STATE",
      message: expect.stringContaining("Call resume() before train()") as string,
    });
  });

  it("rejects a checkpoint of another version, adapter or number of environments", async () => {
    const checkpoints = await fresh();
    await run(await setUp({ checkpointDir: checkpoints }), { updates: 1 });
    const crowd = await setUp({ checkpointDir: checkpoints, numEnvs: 8 });
    await expect(crowd.trainer.resume()).rejects.toThrow("has 4 environments, this run has 8");

    const wide = await models.reopen(modelFolder);
    const trainer = new Trainer({
      agent: new EvenOddAgent(wide),
      env: () => new CountingEnv(),
      turns: 1,
      checkpointDir: checkpoints,
    });
    await expect(trainer.resume()).rejects.toMatchObject({ code: "WEIGHTS_MISMATCH" });

    const stateFile = join(checkpoints, "000001", "state.json");
    const { version, ...rest } = JSON.parse(await readFile(stateFile, "utf8")) as { readonly version: number };
    for (const other of [undefined, version - 1, version + 1]) {
      await writeFile(stateFile, JSON.stringify({ version: other, ...rest }));
      const late = await setUp({ checkpointDir: checkpoints });
      await expect(late.trainer.resume()).rejects.toMatchObject({
        code: "RUN_INCOMPATIBLE",
        message: expect.stringMatching(
          /000001 was written by another version of llamagym \(format .*expected \d/,
        ) as string,
      });
    }
  });

  it("closes its environments, also on failure, and trains once", async () => {
    const good = await setUp({ turns: 12 });
    const closed = vi.spyOn(CountingEnv.prototype, "close");
    await good.trainer.train();
    expect(closed).toHaveBeenCalledTimes(4);
    await expect(good.trainer.train()).rejects.toThrow("has already trained");

    const { trainer, envs } = await setUp();
    vi.spyOn(CountingEnv.prototype, "step").mockImplementationOnce(() => {
      throw new Error("broken");
    });
    await expect(trainer.train()).rejects.toMatchObject({ code: "ENV_FAILED" });
    expect(closed).toHaveBeenCalledTimes(8);
    expect(envs).toHaveLength(4);
    let made = 0;
    const half = await setUp({
      env: () => {
        if (++made === 3) throw new Error("no third");
        return new CountingEnv();
      },
    });
    await expect(half.trainer.train()).rejects.toThrow("no third");
    expect(closed).toHaveBeenCalledTimes(10);
    vi.restoreAllMocks();
  });

  it("saves the last update if an environment hangs, and resumes from it", async () => {
    const checkpoints = await fresh();
    const { trainer, envs } = await setUp({ checkpointDir: checkpoints }, { agent: { callTimeoutSeconds: 0.05 } });
    const onProgress = ({ state }: TrainProgress) => {
      if (state.updates === 2) vi.spyOn(envs[3], "step").mockImplementation((() => new Promise(() => {})) as never);
    };
    await expect(trainer.train({ onProgress })).rejects.toMatchObject({
      code: "ENV_FAILED",
      message: expect.stringContaining(
        "`step` of <CountingEnv> (environment 3) did not settle within 0.05 s",
      ) as string,
    });
    expect(await readdir(checkpoints)).toEqual(["000002"]);
    const again = await setUp({ checkpointDir: checkpoints });
    expect(await again.trainer.resume()).toBe(2);
    expect((await run(again)).logs.at(-1)!.num_turns).toBe(48);
  });

  it("ends well, with a warning, if an environment throws or hangs in close", async () => {
    const onWarning = vi.fn<(message: string) => void>();
    const setup = await setUp({ onWarning, turns: 12 });
    const close = vi.spyOn(CountingEnv.prototype, "close").mockImplementationOnce(() => {
      throw new Error("no handle");
    });
    const { isInterrupted, logs } = await run(setup);
    close.mockRestore();
    expect([isInterrupted, logs.length]).toEqual([false, 1]);
    expect(onWarning.mock.calls).toEqual([["An environment was not closed: no handle"]]);
  });

  it.each([
    ["no environment", () => undefined as never, "returned undefined; it must return an Env"],
    ["a promise that never settles", () => new Promise<never>(() => {}), "did not settle within 0.05 s"],
  ])("rejects a factory that returns %s, and leaves its folder usable", async (_, env, message) => {
    const checkpoints = await fresh();
    const broken = await setUp({ checkpointDir: checkpoints, env }, { agent: { callTimeoutSeconds: 0.05 } });
    await expect(broken.trainer.train()).rejects.toMatchObject({
      code: "ENV_FAILED",
      message: expect.stringContaining(message) as string,
    });
    const mended = await setUp({ checkpointDir: checkpoints, turns: 12 });
    expect(await mended.trainer.resume()).toBe(0);
    expect((await run(mended)).logs).toHaveLength(1);
  });

  it("keeps the last checkpoint if training fails", async () => {
    const checkpoints = await fresh();
    const { trainer } = await setUp({ checkpointDir: checkpoints, saveSteps: 1 });
    const onProgress = ({ state }: TrainProgress) => {
      if (state.updates === 2) throw new Error("stop here");
    };
    await expect(trainer.train({ onProgress })).rejects.toThrow("stop here");
    expect(await readdir(checkpoints)).toEqual(["000001"]);
  });

  it("reports progress during rollouts, and logs completions", async () => {
    const events: TrainProgress[] = [];
    const samples: [number, readonly CompletionRow[]][] = [];
    const setup = await setUp({ turns: 36 });
    const tracker = {
      log: () => {},
      logCompletions: (step: number, rows: readonly CompletionRow[]) => void samples.push([step, rows]),
    };
    await run(setup, {
      onProgress: (event) => events.push(event),
      tracker,
      completionLogSteps: 2,
      numLoggedCompletions: 2,
    });
    expect(events.map(({ state }) => state.turns)).toEqual([4, 8, 12, 12, 16, 20, 24, 24, 28, 32, 36, 36]);
    expect(events.map(({ progress: done }) => done)).toEqual(events.map(({ state }) => state.turns / 36));
    expect(events.map(({ state }) => state.episodes)).toEqual([0, 0, 0, 0, 0, 4, 4, 4, 4, 4, 4, 4]);
    expect(samples.map(([step, rows]) => [step, rows.length])).toEqual([
      [1, 2],
      [3, 2],
    ]);
    const [row] = samples[0][1];
    expect(row.prompt).toMatch(/Say it\.\n[\s\S]*\d/);
    expect(["even", "odd"]).toContain(row.completion);
    expect(row).toMatchObject({ is_valid: true, extraction: "function" });
  });

  it.each([
    [{ turns: undefined }, "needs the length of the run"],
    [{ numEnvs: 0 }, "`numEnvs` must be an integer >= 1, got 0"],
    [{ episodes: 1.5 }, "`episodes` must be an integer >= 1"],
    [{ saveSteps: 0 }, "`saveSteps` must be an integer >= 1"],
  ])("rejects %j", (options, message) => {
    const agent = undefined as unknown as EvenOddAgent;
    expect(() => new Trainer({ agent, env: "Blackjack-v1", turns: 10, ...options })).toThrow(message);
  });
});
