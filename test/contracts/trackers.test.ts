import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import openCsvTracker from "../../examples/own-tracker.js";
import { loadTracker } from "../../src/app/runs/load-tracker.js";
import { combineTrackers } from "../../src/rl/tracking/index.js";
import { checkRewardFunction, checkTracker } from "../../src/testing.js";

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "own-tracker-"));
});
afterAll(() => rm(folder, { recursive: true }));

describe("checkTracker", () => {
  it("accepts the tracker of the examples", async () => {
    let runs = 0;
    const openRun = () => {
      const path = join(folder, String(runs++));
      return (options: { resumeFromStep?: number }) => openCsvTracker(path, options);
    };
    await expect(checkTracker(openRun)).resolves.toBeUndefined();
  });

  it("rejects a tracker that fails on NaN", async () => {
    const log = (_step: number, { reward }: Readonly<Record<string, number>>) => {
      if (Number.isNaN(reward)) throw new Error("not a number");
    };
    await expect(checkTracker(() => () => ({ log }))).rejects.toThrow(
      "The tracker failed at a whole run: not a number",
    );
  });
});

describe("loadTracker", () => {
  it("loads a tracker from a module, and resumes it", async () => {
    const path = join(folder, "run");
    for (const [options, step] of [
      [{}, 1],
      [{ resumeFromStep: 0 }, 2],
    ] as const) {
      const source = await loadTracker("examples/own-tracker.ts", path, options);
      const tracker = combineTrackers([source], { onWarning: (message) => expect.unreachable(message) });
      await tracker.log(step, { "rollout/ep_rew_mean": 0.5 });
      await tracker.close();
    }
    expect(await readFile(join(path, "returns.csv"), "utf8")).toBe("step,mean_return\n2,0.5\n");
  });

  it("rejects modules without a tracker", async () => {
    await expect(loadTracker("examples/none.js", folder, {})).rejects.toMatchObject({ code: "FILE_NOT_FOUND" });
    await expect(loadTracker("src/core/errors.ts", folder, {})).rejects.toMatchObject({ code: "INVALID_ARGUMENT" });
  });
});

describe("checkRewardFunction", () => {
  const rows = [{ prompt: "1 + 1?", answer: "2" }];

  it("accepts scores of numbers, booleans and null", async () => {
    const isRight = ({ completions, answer }: { completions: readonly string[]; answer?: readonly unknown[] }) =>
      completions.map((text, i) => (text === "" ? null : text === answer?.[i]));
    await expect(checkRewardFunction(isRight, { rows, completions: ["2"] })).resolves.toBeUndefined();
  });

  it.each([
    ["a list of another length", () => [1, 2], "returned 2 rewards for 5 completions"],
    [
      "NaN",
      ({ completions }: { completions: readonly string[] }) => completions.map(Number),
      "returned the reward NaN",
    ],
  ])("rejects %s", async (_, rewardFunction, message) => {
    const check = checkRewardFunction(rewardFunction, { rows, completions: ["two"] });
    await expect(check).rejects.toMatchObject({
      code: "REWARD_FAILED",
      message: expect.stringContaining(message) as string,
    });
  });
});
