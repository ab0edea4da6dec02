import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { resumeRun, startRun } from "./run.js";

const options = { env: "Blackjack-v1", numEnvs: 4, batchSize: 16, miniBatchSize: 16, turns: 16 };
let folder = "";
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "run-"));
  const run = await startRun(options, join(folder, "run"));
  await run.train();
  await run.close();
});
afterEach(() => rm(folder, { recursive: true }));

describe("startRun", () => {
  it.each([
    [{ maxCompletionLength: 2048 }, 2048],
    [{ maxNewTokens: 40, maxContextLength: 40 }, 40],
  ])("names the setting that leaves no room for a prompt (%j)", async (change, length) => {
    const run = startRun({ ...options, ...change }, join(folder, "long"));
    await expect(run).rejects.toMatchObject({
      code: "INVALID_ARGUMENT",
      message: expect.stringContaining(`\`maxCompletionLength\` is ${length}, which leaves no room`) as string,
    });
  });
});

describe("resumeRun", () => {
  it("accepts unchanged settings and more turns", async () => {
    const { config } = await resumeRun(join(folder, "run")).then(async (run) => run.close().then(() => run));
    const run = await resumeRun(join(folder, "run"), { ...config, turns: 32, threads: 1 });
    const { state } = await run.train();
    await run.close();
    expect(state).toMatchObject({ updates: 2, turns: 32 });
  });

  it.each([
    [{ lam: 0.5 }, /has lam 0\.99, which cannot change to 0\.5/],
    [{ env: "CartPole-v1" }, /has env "Blackjack-v1", which cannot change to "CartPole-v1"/],
    [{ loraAlpha: undefined }, /has loraAlpha \d+, which cannot change to not set/],
  ])("rejects %o and changes nothing", async (change, message) => {
    const config = () => readFile(join(folder, "run/config.json"), "utf8");
    const before = await config();
    const resumed = resumeRun(join(folder, "run"), { ...options, ...change });
    await expect(resumed).rejects.toMatchObject({ code: "INVALID_ARGUMENT", message: expect.stringMatching(message) });
    expect(await config()).toBe(before);
  });
});
