import { describe, expect, it, vi } from "vitest";
import { LlamaGymError } from "../../core/errors.js";
import { Env, type ResetOptions, type ResetResult, type StepResult } from "../env.js";
import type { JsonValue } from "../../core/json.js";
import { make } from "../registry/make.js";
import { Discrete } from "../spaces/discrete.js";
import { batchInfo, type VectorEnv, type VectorState } from "./vector-env.js";
import { makeVector } from "./make-vector.js";
import { SyncVectorEnv } from "./sync-vector-env.js";
import { WorkerVectorEnv } from "./worker-vector-env.js";

const module = new URL("../../../test/fixtures/envs/troubled-env.mjs", import.meta.url).href;

/** Counts to `length`; throws at the step numbered `throwsAt` of its life. */
class CountingEnv extends Env<number, number> {
  override readonly observationSpace = new Discrete(100);
  override readonly actionSpace = new Discrete(2);
  private count = 0;
  private life = 0;

  constructor(
    private readonly length: number,
    private readonly throwsAt = Infinity,
  ) {
    super();
  }

  override reset({ seed }: ResetOptions = {}): ResetResult<number> {
    this.reseed(seed);
    this.count = 0;
    return { observation: 0, info: { fresh: true } };
  }

  override step(action: number): StepResult<number> {
    this.checkAction(action);
    if (++this.life === this.throwsAt) throw new Error("the wheel came off");
    this.count++;
    return { observation: this.count, reward: 1, terminated: this.count === this.length, truncated: false, info: {} };
  }

  protected override saveState(): JsonValue {
    return this.count;
  }

  protected override loadState(state: JsonValue): void {
    this.count = Number(state);
  }
}

async function getErrorCode(promise: Promise<unknown>): Promise<string> {
  return await promise.then(
    () => "none",
    (error: unknown) => (error instanceof LlamaGymError ? `${error.code} ${error.message}` : String(error)),
  );
}

/** Observations, terminations and rewards of a number of steps. */
async function run(vector: VectorEnv, steps: number): Promise<unknown[]> {
  const rows: unknown[] = [];
  for (let i = 0; i < steps; i++) {
    const { observations, rewards, terminated, truncated } = await vector.step(
      Array.from({ length: vector.numEnvs }, () => i % 2),
    );
    rows.push([observations, [...rewards], terminated, truncated]);
  }
  return rows;
}

describe.each(["sync", "worker"] as const)("a vector of CartPoles, %s", (mode) => {
  it.each(["next-step", "same-step"] as const)(
    "returns the results of the separate environments, autoreset %s",
    async (autoresetMode) => {
      const vector = await makeVector("CartPole-v1", {
        numEnvs: 3,
        mode,
        autoresetMode,
        ...(mode === "worker" && { numWorkers: 2 }),
      });
      const { observations } = await vector.reset({ seed: 11 });
      const alone = await Promise.all(
        [11, 12, 13].map(async (seed) => (await make("CartPole-v1").reset({ seed })).observation),
      );
      expect(observations).toEqual(alone);
      const other = await makeVector("CartPole-v1", { numEnvs: 3, autoresetMode });
      await other.reset({ seed: [11, 12, 13] });
      expect(await run(vector, 60)).toEqual(await run(other, 60));
      await vector.close();
    },
  );

  it("continues from a saved state", async () => {
    const vector = await makeVector("CartPole-v1", { numEnvs: 2, mode });
    await vector.reset({ seed: 1 });
    await run(vector, 15);
    const state = JSON.parse(JSON.stringify(await vector.getState())) as VectorState;
    const expected = await run(vector, 30);
    const restored = await makeVector("CartPole-v1", { numEnvs: 2, mode });
    await restored.setState(state);
    expect(await run(restored, 30)).toEqual(expected);
    await Promise.all([vector.close(), restored.close()]);
  });

  it("renders, and has the text interface of its environments", async () => {
    const vector = await makeVector("CartPole-v1", { numEnvs: 2, mode });
    await vector.reset({ seed: 1 });
    expect((await vector.render("ansi")).map((frame) => typeof frame)).toEqual(["string", "string"]);
    expect(vector.text?.choices).toEqual(["LEFT", "RIGHT"]);
    await vector.close();
  });

  it("rejects a wrong number of actions, seeds and flags", async () => {
    const vector = await makeVector("CartPole-v1", { numEnvs: 2, mode });
    expect(await getErrorCode(vector.reset({ seed: [1] }))).toMatch(
      /INVALID_ARGUMENT seed must have one entry for each of 2/,
    );
    await vector.reset({ seed: 1 });
    expect(await getErrorCode(vector.step([0]))).toMatch(/INVALID_ARGUMENT actions must have one entry for each of 2/);
    expect(await getErrorCode(vector.step([0, 7]))).toMatch(/ENV_ACTION_INVALID 7/);
    expect(await getErrorCode(vector.reset({ resetMask: [false, false] }))).toMatch(/at least one true/);
    expect(await getErrorCode(vector.step([0, 1]))).toBe("none");
    await vector.close();
  });
});

describe("autoreset", () => {
  const lengths = [2, 4];
  const create = (autoresetMode: "next-step" | "same-step" | "disabled") =>
    SyncVectorEnv.create(
      lengths.map((length) => () => new CountingEnv(length)),
      { autoresetMode },
    );

  it("next-step: returns the last observation, then resets instead of stepping", async () => {
    const vector = await create("next-step");
    await vector.reset();
    const rows = await run(vector, 5);
    expect(rows.map((row) => (row as number[][])[0])).toEqual([
      [1, 1],
      [2, 2],
      [0, 3],
      [1, 4],
      [2, 0],
    ]);
    expect(rows.map((row) => (row as number[][])[1])).toEqual([
      [1, 1],
      [1, 1],
      [0, 1],
      [1, 1],
      [1, 0],
    ]);
  });

  it("same-step: returns the next episode's observation, with the last one in the info", async () => {
    const vector = await create("same-step");
    await vector.reset();
    await run(vector, 1);
    const { observations, infos, terminated } = await vector.step([0, 0]);
    expect([observations, terminated]).toEqual([
      [0, 2],
      [true, false],
    ]);
    expect(infos).toEqual([{ fresh: true, finalObservation: 2, finalInfo: {} }, {}]);
  });

  it("disabled: leaves the reset to the caller, and rejects a step before it", async () => {
    const vector = await create("disabled");
    await vector.reset();
    await run(vector, 2);
    expect(await getErrorCode(vector.step([0, 0]))).toMatch(/ENV_NOT_RESET Environment 0 .*resetMask/);
    const { observations, infos } = await vector.reset({ resetMask: [true, false] });
    expect([observations, infos]).toEqual([
      [0, 2],
      [{ fresh: true }, {}],
    ]);
  });
});

describe("an environment that throws", () => {
  const create = (onFailure: "stop" | "continue", autoresetMode: "next-step" | "same-step" = "next-step") =>
    SyncVectorEnv.create([() => new CountingEnv(9), () => new CountingEnv(9, 3)], { onFailure, autoresetMode });

  it("stops the vector, with its index and message", async () => {
    const vector = await create("stop");
    await vector.reset();
    await run(vector, 2);
    expect(await getErrorCode(vector.step([0, 0]))).toBe(
      "ENV_FAILED Environment 1 of the vector failed in step(): the wheel came off",
    );
  });

  it("is truncated and recreated while the others continue", async () => {
    const vector = await create("continue");
    await vector.reset();
    await run(vector, 2);
    const { observations, truncated, infos } = await vector.step([0, 0]);
    expect([observations, truncated, infos[1]["error"]]).toEqual([
      [3, 0],
      [false, true],
      expect.stringContaining("the wheel came off"),
    ]);
    expect((await run(vector, 2)).map((row) => (row as number[][])[0])).toEqual([
      [4, 0],
      [5, 1],
    ]);
  });

  it("is reset at once in the mode same-step", async () => {
    const vector = await create("continue", "same-step");
    await vector.reset();
    await run(vector, 2);
    const { observations, infos } = await vector.step([0, 0]);
    expect([observations[1], infos[1]["fresh"], infos[1]["finalObservation"]]).toEqual([0, true, 0]);
    expect((await run(vector, 1)).map((row) => (row as number[][])[0])).toEqual([[4, 1]]);
  });
});

describe("a worker's environment from a module", () => {
  /**
   * Only an environment that hangs needs a limit; a busy machine must not reach it in the others.
   */
  const timeoutOf = (trouble: string) => (trouble === "hang" ? { timeout: 1000 } : {});
  const create = (options: object, vector: object = {}) =>
    WorkerVectorEnv.create({ module, options } as { module: string }, { numEnvs: 2, numWorkers: 2, ...vector });

  it("is created from a class or a function", async () => {
    const vector = await create({});
    expect(vector.singleObservationSpace.toString()).toBe("Discrete(100)");
    expect((await vector.reset({ seed: 5 })).observations).toEqual([5, 6]);
    const made = await WorkerVectorEnv.create({ module, export: "makeTroubledEnv" }, { numEnvs: 1 });
    expect((await made.reset({ seed: 3 })).observations).toEqual([3]);
    await Promise.all([vector.close(), made.close()]);
  });

  it.each([
    ["a missing module", { module: "file:///nowhere/env.mjs" }, /ENV_INVALID The module .* could not be imported/],
    ["a missing export", { module, export: "nothing" }, /ENV_INVALID .* exports no function "nothing"/],
    [
      "an export that returns no environment",
      { module, export: "makeNothing" },
      /ENV_INVALID makeNothing .* did not return an Env/,
    ],
    ["an id that is not registered", { id: "CartPol-v1" }, /ENV_UNKNOWN .*Did you mean: `CartPole`/],
  ])("is refused: %s", async (_, source, message) => {
    expect(await getErrorCode(WorkerVectorEnv.create(source, { numEnvs: 1 }))).toMatch(message);
  });

  it.each([
    ["throws", "throw", /ENV_FAILED Environment 1 .*: I was told to/],
    ["ends its thread", "exit", /ENV_FAILED The worker of environment 1 ended with exit code 3/],
    ["never answers", "hang", /ENV_FAILED The worker of environment 1 did not answer step\(\) within 1000 ms/],
    ["gives what cannot be sent", "function", /ENV_INVALID The result of step\(\) cannot be sent between threads/],
  ])("stops the vector when it %s", async (_, trouble, message) => {
    const vector = await create({ trouble, at: 2 }, timeoutOf(trouble));
    await vector.reset({ seed: 0 });
    expect(await getErrorCode(vector.step([0, 1]))).toBe("none");
    expect(await getErrorCode(vector.step([0, 1]))).toMatch(message);
    await vector.close();
  });

  it.each(["throw", "exit", "hang"])("is replaced while the others continue: %s", async (trouble) => {
    const vector = await create({ trouble, at: 2 }, { ...timeoutOf(trouble), onFailure: "continue" });
    await vector.reset({ seed: 0 });
    await vector.step([0, 1]);
    const failed = await vector.step([0, 1]);
    expect([failed.observations[0], failed.truncated]).toEqual([2, [false, true]]);
    expect(failed.infos[1]["error"]).toMatch(/told to|exit code 3|did not answer/);
    const again = await vector.step([0, 0]);
    expect([again.observations[0], again.rewards[1], again.truncated]).toEqual([3, 0, [false, false]]);
    await vector.close();
  });
});

describe("SyncVectorEnv.create", () => {
  it("closes the created environments when one fails", async () => {
    const env = new CountingEnv(3);
    const close = vi.spyOn(env, "close");
    const fail = () => {
      throw new LlamaGymError("ENV_FAILED", "no server");
    };
    await expect(SyncVectorEnv.create<number, number>([() => env, fail])).rejects.toThrow("no server");
    expect(close).toHaveBeenCalledOnce();
  });
});

describe("batchInfo", () => {
  it("keeps an entry per environment, with zeros and nulls for missing values", () => {
    const batched = batchInfo([
      { prob: 0.5, mask: Int8Array.of(1, 0) },
      { name: "b", episode: { r: 2 } },
    ]);
    expect(batched).toEqual({
      prob: [0.5, 0],
      _prob: [true, false],
      mask: [Int8Array.of(1, 0), [0, 0]],
      _mask: [true, false],
      name: [null, "b"],
      _name: [false, true],
      episode: { r: [0, 2], _r: [false, true] },
      _episode: [false, true],
    });
  });
});
