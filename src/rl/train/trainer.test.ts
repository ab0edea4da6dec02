import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { ppo } from "../algorithms/index.js";
import { CountingEnv, EvenOddAgent } from "../../../test/support/counting.js";
import { PPO, CountingRuns, recordRun, type RecordedRun, type Variant } from "../../../test/support/counting-runs.js";
import type { Metrics } from "../algorithms/learner.js";
import type { CompletionRow } from "../tracking/index.js";
import type { TrainProgress } from "./train-loop.js";
import { Trainer } from "./trainer.js";

let runs: CountingRuns;
beforeAll(async () => void (runs = await CountingRuns.open()));
afterAll(() => runs.close());

/** An uninterrupted run with the default settings. */
let whole: RecordedRun;
beforeAll(async () => {
  whole = await recordRun(await runs.setUp());
});

describe("Trainer", () => {
  it("gives equal runs for equal seeds only", async () => {
    const second = await recordRun(await runs.setUp());
    const other = await recordRun(await runs.setUp({ seed: 12 }));
    expect(whole.logs).toHaveLength(4);
    expect(second).toEqual(whole);
    expect(other.values).not.toEqual(whole.values);
  });

  it("learns the rewarded action", async () => {
    const setup = await runs.setUp(
      { turns: 400, numEnvs: 8 },
      {
        env: { reward: (_step, action) => action },
        agent: {
          historyTurns: 0,
          algorithm: ppo({ batchSize: 40, learningRate: 0.005, initKlCoef: 0, advantageLevel: "turn", gamma: 0 }),
        },
      },
    );
    const { logs } = await recordRun(setup);
    expect(logs[0]["rollout/ep_rew_mean"]).toBeLessThan(4);
    expect(logs.at(-1)!["rollout/ep_rew_mean"]).toBeGreaterThan(4);
  });

  it.each<[string, Variant]>([
    ["with unfinished episodes", {}],
    ["with an adaptive KL coefficient", { agent: { algorithm: ppo({ ...PPO, klTarget: 0.01, klHorizon: 50 }) } }],
    ["with prompts of one turn", { agent: { historyTurns: 0 } }],
    ["with kept states of frozen layers", { agent: { historyTurns: 0 }, peft: { layersToTransform: [1] } }],
  ])("resumes with the numbers of an uninterrupted run, %s", async (_, more) => {
    const expected = Object.keys(more).length === 0 ? whole : await recordRun(await runs.setUp({}, more));
    const checkpoints = await runs.createFolder();
    const first = await recordRun(await runs.setUp({ checkpointDir: checkpoints }, more), { updates: 2 });
    expect(first.isInterrupted).toBe(true);
    const files = await readdir(join(checkpoints, "000002"));
    expect(files.includes("frozen_states.safetensors")).toBe(more.peft !== undefined);
    const again = await runs.setUp({ checkpointDir: checkpoints }, more);
    expect(await again.trainer.resume()).toBe(2);
    const rest = await recordRun(again);
    expect(rest.isInterrupted).toBe(false);
    expect([...first.logs, ...rest.logs]).toEqual(expected.logs);
    expect(rest.values).toEqual(expected.values);
  });

  it("resumes more than once, and from intermediate checkpoints", async () => {
    const checkpoints = await runs.createFolder();
    const logs: Metrics[] = [];
    for (let start = 0; start < 4; start += 2) {
      const part = await runs.setUp({ checkpointDir: checkpoints, saveSteps: 1 });
      expect(await part.trainer.resume()).toBe(start);
      logs.push(...(await recordRun(part, { updates: 2 })).logs);
    }
    expect(logs).toEqual(whole.logs);
    expect((await readdir(checkpoints)).sort()).toEqual(["000003", "000004"]);
  });

  it("continues with new episodes, and warns, if environments cannot save their state", async () => {
    const checkpoints = await runs.createFolder();
    const env = { isSaved: false };
    await recordRun(await runs.setUp({ checkpointDir: checkpoints }, { env }), { updates: 2 });
    const onWarning = vi.fn<(message: string) => void>();
    const again = await runs.setUp({ checkpointDir: checkpoints, onWarning }, { env });
    expect(await again.trainer.resume()).toBe(2);
    const { logs } = await recordRun(again);
    expect(onWarning.mock.calls).toEqual([[expect.stringContaining("continues with new episodes")]]);
    expect(logs.at(-1)!.num_turns).toBe(48);
  });

  it("ignores and removes the partial checkpoint of a killed process", async () => {
    const checkpoints = await runs.createFolder();
    await recordRun(await runs.setUp({ checkpointDir: checkpoints }), { updates: 2 });
    const unfinished = join(checkpoints, "000003.partial");
    await mkdir(unfinished);
    await writeFile(join(unfinished, "state.json"), "{");
    const again = await runs.setUp({ checkpointDir: checkpoints });
    expect(await again.trainer.resume()).toBe(2);
    await recordRun(again);
    expect((await readdir(checkpoints)).sort()).toEqual(["000002", "000004"]);
  });

  it("does not mix its checkpoints with those of another run", async () => {
    const checkpoints = await runs.createFolder();
    await recordRun(await runs.setUp({ checkpointDir: checkpoints }), { updates: 1 });
    const other = await runs.setUp({ checkpointDir: checkpoints });
    await expect(other.trainer.train()).rejects.toMatchObject({
      code: "INVALID_STATE",
      message: expect.stringContaining("Call resume() before train()") as string,
    });
  });

  it("rejects a checkpoint of another version, adapter or number of environments", async () => {
    const checkpoints = await runs.createFolder();
    await recordRun(await runs.setUp({ checkpointDir: checkpoints }), { updates: 1 });
    const crowd = await runs.setUp({ checkpointDir: checkpoints, numEnvs: 8 });
    await expect(crowd.trainer.resume()).rejects.toThrow("has 4 environments, this run has 8");

    const wide = await runs.models.reopen(runs.modelFolder);
    const trainer = new Trainer({
      agent: new EvenOddAgent(wide),
      env: () => new CountingEnv(),
      numEnvs: 4,
      turns: 1,
      checkpointDir: checkpoints,
    });
    await expect(trainer.resume()).rejects.toMatchObject({ code: "WEIGHTS_MISMATCH" });

    const stateFile = join(checkpoints, "000001", "state.json");
    const { version, ...rest } = JSON.parse(await readFile(stateFile, "utf8")) as { readonly version: number };
    // Earlier versions wrote no checksums.
    await rm(join(checkpoints, "000001", "SHA256SUMS"));
    for (const other of [undefined, version - 1, version + 1]) {
      await writeFile(stateFile, JSON.stringify({ version: other, ...rest }));
      const late = await runs.setUp({ checkpointDir: checkpoints });
      await expect(late.trainer.resume()).rejects.toMatchObject({
        code: "RUN_INCOMPATIBLE",
        message: expect.stringMatching(
          /000001 was written by another version of llamagym \(format .*expected \d/,
        ) as string,
      });
    }
  });

  it("reports progress during rollouts, and logs completions", async () => {
    const events: TrainProgress[] = [];
    const samples: [number, readonly CompletionRow[]][] = [];
    const setup = await runs.setUp({ turns: 36, completionLogSteps: 2, numLoggedCompletions: 2 });
    const tracker = {
      log: () => {},
      logCompletions: (step: number, rows: readonly CompletionRow[]) => void samples.push([step, rows]),
    };
    await recordRun(setup, {
      onProgress: (event) => events.push(event),
      tracker,
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
