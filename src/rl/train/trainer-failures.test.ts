import { readdir } from "node:fs/promises";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { CountingEnv } from "../../../test/support/counting.js";
import { CountingRuns, recordRun } from "../../../test/support/counting-runs.js";
import type { TrainProgress } from "./train-loop.js";

let runs: CountingRuns;
beforeAll(async () => void (runs = await CountingRuns.open()));
afterAll(() => runs.close());

describe("Trainer", () => {
  it("closes its environments, also on failure, and trains once", async () => {
    const good = await runs.setUp({ turns: 12 });
    const closed = vi.spyOn(CountingEnv.prototype, "close");
    await good.trainer.train();
    expect(closed).toHaveBeenCalledTimes(4);
    await expect(good.trainer.train()).rejects.toThrow("has already trained");

    const { trainer, envs } = await runs.setUp();
    vi.spyOn(CountingEnv.prototype, "step").mockImplementationOnce(() => {
      throw new Error("broken");
    });
    await expect(trainer.train()).rejects.toMatchObject({ code: "ENV_FAILED" });
    expect(closed).toHaveBeenCalledTimes(8);
    expect(envs).toHaveLength(4);
    let made = 0;
    const half = await runs.setUp({
      env: () => {
        if (++made === 3) throw new Error("no third");
        return new CountingEnv();
      },
    });
    await expect(half.trainer.train()).rejects.toThrow("no third");
    expect(closed).toHaveBeenCalledTimes(10);
    vi.restoreAllMocks();
  });

  it("opens its environments before a warm start, and closes them if that fails", async () => {
    const agentOptions = { sftWarmStart: [{ turns: [{ observationText: "1", completion: "odd" }] }], sftSteps: 2 };
    const broken = await runs.setUp({ env: () => undefined as never }, { agent: agentOptions });
    const onWarmStart = vi.fn<() => void>();
    await expect(broken.trainer.train({ onWarmStart })).rejects.toThrow("must return an Env");
    expect(onWarmStart).not.toHaveBeenCalled();

    const closed = vi.spyOn(CountingEnv.prototype, "close");
    const { trainer } = await runs.setUp({}, { agent: agentOptions });
    onWarmStart.mockImplementation(() => {
      throw new Error("stop here");
    });
    await expect(trainer.train({ onWarmStart })).rejects.toThrow("stop here");
    expect(closed).toHaveBeenCalledTimes(4);
    vi.restoreAllMocks();
  });

  it("saves the last update if an environment hangs, and resumes from it", async () => {
    const checkpoints = await runs.createFolder();
    const { trainer, envs } = await runs.setUp({ checkpointDir: checkpoints }, { agent: { callTimeoutSeconds: 0.05 } });
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
    const again = await runs.setUp({ checkpointDir: checkpoints });
    expect(await again.trainer.resume()).toBe(2);
    expect((await recordRun(again)).logs.at(-1)!.num_turns).toBe(48);
  });

  it("saves an update a minute after the last checkpoint, whatever saveSteps is", async () => {
    const checkpoints = await runs.createFolder();
    const { trainer } = await runs.setUp({ checkpointDir: checkpoints, saveSteps: 1000, turns: 120 });
    // Each update takes 25 seconds.
    let now = 0;
    const clock = vi.spyOn(performance, "now").mockImplementation(() => now);
    const onUpdate = ({ state }: TrainProgress) => {
      now += 25_000;
      if (state.updates === 8) throw new Error("killed");
    };
    await expect(trainer.train({ onUpdate })).rejects.toThrow("killed");
    clock.mockRestore();
    expect(await readdir(checkpoints)).toEqual(["000003", "000006"]);
  });

  it("ends well, with a warning, if an environment throws or hangs in close", async () => {
    const onWarning = vi.fn<(message: string) => void>();
    const setup = await runs.setUp({ onWarning, turns: 12 });
    const close = vi.spyOn(CountingEnv.prototype, "close").mockImplementationOnce(() => {
      throw new Error("no handle");
    });
    const { isInterrupted, logs } = await recordRun(setup);
    close.mockRestore();
    expect([isInterrupted, logs.length]).toEqual([false, 1]);
    expect(onWarning.mock.calls).toEqual([["An environment was not closed: no handle"]]);
  });

  it.each([
    ["no environment", () => undefined as never, "returned undefined; it must return an Env"],
    ["a promise that never settles", () => new Promise<never>(() => {}), "did not settle within 0.05 s"],
  ])("rejects a factory that returns %s, and leaves its folder usable", async (_, env, message) => {
    const checkpoints = await runs.createFolder();
    const broken = await runs.setUp({ checkpointDir: checkpoints, env }, { agent: { callTimeoutSeconds: 0.05 } });
    await expect(broken.trainer.train()).rejects.toMatchObject({
      code: "ENV_FAILED",
      message: expect.stringContaining(message) as string,
    });
    const mended = await runs.setUp({ checkpointDir: checkpoints, turns: 12 });
    expect(await mended.trainer.resume()).toBe(0);
    expect((await recordRun(mended)).logs).toHaveLength(1);
  });

  it("keeps the last checkpoint if training fails", async () => {
    const checkpoints = await runs.createFolder();
    const { trainer } = await runs.setUp({ checkpointDir: checkpoints, saveSteps: 1 });
    const onProgress = ({ state }: TrainProgress) => {
      if (state.updates === 2) throw new Error("stop here");
    };
    await expect(trainer.train({ onProgress })).rejects.toThrow("stop here");
    expect(await readdir(checkpoints)).toEqual(["000001"]);
  });
});
