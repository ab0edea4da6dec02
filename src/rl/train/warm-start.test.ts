import { existsSync } from "node:fs";
import { mkdir, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { CountingRuns, recordRun } from "../../../test/support/counting-runs.js";
import type { SftMetrics } from "../algorithms/sft/sft-learner.js";
import type { TrainerOptions } from "./trainer.js";

let runs: CountingRuns;
beforeAll(async () => void (runs = await CountingRuns.open()));
afterAll(() => runs.close());

const STEPS = 12;
const demonstrations = Array.from({ length: 10 }, (_, number) => ({
  turns: [{ observationText: String(number), completion: number % 2 === 0 ? "even" : "odd" }],
}));

/**
 * A run with a warm start of twelve updates; where the last layer alone is trained, its states are
 * kept.
 */
const setUp = async (options: Partial<TrainerOptions>, peft = {}) =>
  runs.setUp(
    { turns: 24, ...options },
    { agent: { sftWarmStart: demonstrations, sftSteps: STEPS, sftBatchSize: 4, sftLearningRate: 1e-2 }, peft },
  );

/** Records the losses of the warm start, and calls back after a step. */
function recordSteps(at = Infinity, callback: () => void = () => {}) {
  const losses: number[] = [];
  const onWarmStart = ({ step, loss }: SftMetrics) => {
    losses.push(loss);
    if (step === at) callback();
  };
  return { losses, onWarmStart };
}

async function runWhole(peft = {}) {
  const { losses, onWarmStart } = recordSteps();
  const checkpointDir = await runs.createFolder();
  const { logs, values } = await recordRun(await setUp({ checkpointDir }, peft), { onWarmStart });
  expect(losses).toHaveLength(STEPS);
  expect(existsSync(join(checkpointDir, "warm_start"))).toBe(false);
  return { losses, logs, values };
}

describe("a warm start", () => {
  it.each([
    ["all layers", {}],
    ["the last layer", { layersToTransform: [1] }],
  ])("of %s that is interrupted is saved, and resumes to the same result", async (_, peft) => {
    const whole = await runWhole(peft);
    const checkpointDir = await runs.createFolder();
    const stop = new AbortController();
    const first = recordSteps(5, () => stop.abort());
    const stopped = await setUp({ checkpointDir }, peft);
    const result = await stopped.trainer.train({ onWarmStart: first.onWarmStart, signal: stop.signal });
    expect(result).toMatchObject({ isInterrupted: true, state: { updates: 0 } });
    expect(result.latestCheckpoint).toBe(join(checkpointDir, "warm_start", "000005"));

    const second = recordSteps();
    const resumed = await setUp({ checkpointDir }, peft);
    expect(await resumed.trainer.resume()).toBe(0);
    const { logs, values } = await recordRun(resumed, { onWarmStart: second.onWarmStart });
    expect([...first.losses, ...second.losses]).toEqual(whole.losses);
    expect(logs).toEqual(whole.logs);
    expect(values).toEqual(whole.values);
    expect(await readdir(checkpointDir)).not.toContain("warm_start");

    // What a process leaves that is killed between the first checkpoint of the run and the removal.
    await mkdir(join(checkpointDir, "warm_start"));
    const extended = await setUp({ checkpointDir, turns: 36 }, peft);
    await extended.trainer.resume();
    await extended.trainer.train();
    expect(await readdir(checkpointDir)).toEqual(["000002", "000003"]);
  });

  it("is saved once a minute, so that little is lost when its process ends", async () => {
    const whole = await runWhole();
    const checkpointDir = await runs.createFolder();
    // Each update takes 25 seconds.
    let now = 0;
    const clock = vi.spyOn(performance, "now").mockImplementation(() => now);
    const losses: number[] = [];
    const failing = await setUp({ checkpointDir });
    const onWarmStart = ({ step, loss }: SftMetrics) => {
      losses.push(loss);
      now += 25_000;
      if (step === 8) throw new Error("killed");
    };
    await expect(failing.trainer.train({ onWarmStart })).rejects.toThrow("killed");
    clock.mockRestore();
    expect(await readdir(join(checkpointDir, "warm_start"))).toEqual(["000003", "000006"]);

    const second = recordSteps();
    const resumed = await setUp({ checkpointDir });
    await resumed.trainer.resume();
    const { logs, values } = await recordRun(resumed, { onWarmStart: second.onWarmStart });
    expect([...losses.slice(0, 6), ...second.losses]).toEqual(whole.losses);
    expect(logs).toEqual(whole.logs);
    expect(values).toEqual(whole.values);
  });

  it("that ends at an interrupt is complete", async () => {
    const checkpointDir = await runs.createFolder();
    const stop = new AbortController();
    const { onWarmStart } = recordSteps(STEPS, () => stop.abort());
    const { trainer } = await setUp({ checkpointDir });
    const result = await trainer.train({ onWarmStart, signal: stop.signal });
    expect(result).toMatchObject({ isInterrupted: true, latestCheckpoint: join(checkpointDir, "000000") });
    expect(await readdir(checkpointDir)).toEqual(["000000"]);
  });

  it("that was interrupted is continued by resume() alone, and a damaged checkpoint is named", async () => {
    const checkpointDir = await runs.createFolder();
    const stop = new AbortController();
    const { onWarmStart } = recordSteps(2, () => stop.abort());
    await (await setUp({ checkpointDir })).trainer.train({ onWarmStart, signal: stop.signal });
    await expect((await setUp({ checkpointDir })).trainer.train()).rejects.toThrow(
      /warm_start contains the checkpoints of a run\. Call resume\(\) before train\(\)/,
    );
    await writeFile(join(checkpointDir, "warm_start", "000002", "state.json"), "{");
    const onWarning = vi.fn<(message: string) => void>();
    const resumed = await setUp({ checkpointDir, onWarning });
    await resumed.trainer.resume();
    await expect(resumed.trainer.train()).rejects.toMatchObject({ code: "FILE_CORRUPT" });
    expect(onWarning.mock.calls.flat().join()).toMatch(/warm_start.000002 is not used/);
  });
});
