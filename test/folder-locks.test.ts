import { spawn } from "node:child_process";
import { existsSync, mkdirSync, rmSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { once } from "node:events";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createGateway, GatewayTrainer } from "../src/app/gateway/gateway-trainer.js";
import { startRun } from "../src/app/runs/run.js";
import { runSweep } from "../src/app/sweeps/run-sweep.js";
import { openTrainable } from "../src/generation/auto-model.js";
import type { LanguageModel } from "../src/generation/language-model.js";
import { grpo } from "../src/rl/algorithms/index.js";
import { GrpoTrainer, RlooTrainer } from "../src/rl/train/prompts/grpo-trainer.js";
import { SftTrainer } from "../src/rl/train/sft-trainer.js";
import { CountingRuns } from "./support/counting-runs.js";

/**
 * Trains in a folder for as long as possible; `onUpdate` is called after each update, and its
 * promise awaited if possible.
 */
type Start = (dir: string, onUpdate: () => void) => Promise<unknown>;

const FOREVER = 1_000_000;
let runs: CountingRuns;
let model: LanguageModel;
let root: string;
beforeAll(async () => {
  runs = await CountingRuns.open();
  model = await openTrainable("embedded", { peftConfig: { r: 2, seed: 1 }, valueHead: null });
  root = await mkdtemp(join(tmpdir(), "folder-locks-"));
});
afterAll(async () => {
  await runs.close();
  await model.close();
  await rm(root, { recursive: true });
});

const promptOptions = (outputDir: string) => ({
  model,
  rewardFuncs: ({ completions }: { readonly completions: readonly string[] }) =>
    completions.map(({ length }) => length),
  trainDataset: [{ prompt: "one" }, { prompt: "two" }],
  args: { outputDir, maxSteps: FOREVER, batchSize: 4, numGenerations: 2, maxCompletionLength: 2, saveSteps: 1 },
  onWarning: () => {},
});

const gatewayOptions = {
  algorithm: grpo({ batchSize: 4, numGenerations: 2 }),
  maxCompletionLength: 2,
  saveSteps: 1,
} as const;

const trainers: Readonly<Record<string, Start>> = {
  Trainer: async (checkpointDir, onUpdate) => {
    const { trainer } = await runs.setUp({ checkpointDir, turns: FOREVER, saveSteps: 1 });
    return trainer.train({ onUpdate });
  },
  SftTrainer: async (checkpointDir, onStep) => {
    const trainer = await SftTrainer.create(model, {
      train: () => [{ prompt: "a", completion: "b" }],
      maxSteps: FOREVER,
    });
    return trainer.train({ checkpointDir, onStep, saveSteps: 1 }).finally(async () => trainer.release());
  },
  GrpoTrainer: async (dir, onStep) => new GrpoTrainer(promptOptions(dir)).train({ onStep }),
  RlooTrainer: async (dir, onStep) => new RlooTrainer(promptOptions(dir)).train({ onStep }),
  GatewayTrainer: async (checkpointDir, onUpdate) => {
    const agent = async ({ baseURL }: { readonly baseURL: string }) => {
      const body = JSON.stringify({ model: "any", messages: [{ role: "user", content: "hit or stay?" }] });
      const headers = { "content-type": "application/json" };
      const response = await fetch(`${baseURL}/chat/completions`, { method: "POST", headers, body });
      if (!response.ok) throw new Error(await response.text());
    };
    return new GatewayTrainer({ model, ...gatewayOptions, checkpointDir, episodes: FOREVER, agent }).train({
      onUpdate,
    });
  },
};
const env = "Blackjack-v1";
const runOptions = {
  batchSize: 8,
  numEnvs: 2,
  actionMode: "choices",
  device: "cpu",
  saveSteps: 1,
  sftWarmStart: "none",
} as const;
const programs: Readonly<Record<string, Start>> = {
  ...trainers,
  startRun: async (dir, onUpdate) => {
    const run = await startRun({ env, ...runOptions, turns: FOREVER }, dir);
    return run.train({ onUpdate }).finally(async () => run.close());
  },
  runSweep: async (dir, onUpdate) =>
    runSweep({ env, train: { ...runOptions, turns: FOREVER }, search: { learningRate: [1e-4, 1e-3] } }, dir, {
      onProgress: ({ state }) => void (state.updates > 0 && onUpdate()),
    }),
};
const table = (starts: Readonly<Record<string, Start>>) => Object.entries(starts);

async function holdElsewhere(dir: string) {
  const files = new URL("../dist/core/files/folder-lock.js", import.meta.url).href;
  const program = `
    const { FolderLock } = await import(${JSON.stringify(files)});
    await FolderLock.acquire(process.argv[1]);
    process.stdout.write("held");
    process.stdin.resume();`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", program, dir], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  await once(child.stdout, "data");
  return child;
}

describe("a folder that another process writes to", { timeout: 60_000 }, () => {
  it.each(table(programs))("is refused by %s, and free once that process is killed", async (name, start) => {
    const dir = join(root, `held-${name}`);
    const holder = await holdElsewhere(dir);
    const ended = once(holder, "exit");
    let updates = 0;
    const attempt = () =>
      start(dir, () => {
        updates++;
        throw new Error("enough");
      });
    await expect(attempt()).rejects.toMatchObject({
      code: "FOLDER_IN_USE",
      message: expect.stringContaining(`in use by process ${holder.pid} on `) as string,
    });
    expect(updates).toBe(0);
    holder.kill("SIGKILL");
    await ended;
    // A sweep records the error of a trial, the others throw it.
    await Promise.allSettled([attempt()]);
    expect(updates).toBeGreaterThan(0);
    expect(existsSync(join(dir, ".lock"))).toBe(false);
  });
});

describe("a folder that is deleted during a run", { timeout: 60_000 }, () => {
  it.each(
    table(programs).flatMap(([name, start]) => [["deleted", name, start] as const, ["replaced", name, start] as const]),
  )("that was %s ends %s with an error, and nothing is written into it", async (change, name, start) => {
    const dir = join(root, `${change}-${name}`);
    let isChanged = false;
    const running = start(dir, () => {
      if (isChanged) return;
      isChanged = true;
      rmSync(dir, { recursive: true });
      if (change === "replaced") mkdirSync(dir);
    });
    await expect(running).rejects.toMatchObject({
      code: "FILE_WRITE_FAILED",
      message: expect.stringContaining("was deleted, moved or replaced") as string,
    });
    expect(existsSync(join(dir, "checkpoints"))).toBe(false);
  });

  it("is noticed by a gateway that waits for sessions", async () => {
    const checkpointDir = join(root, "waiting");
    const trainer = await createGateway({ model, ...gatewayOptions, checkpointDir, episodes: FOREVER });
    const running = trainer.train();
    while (!existsSync(join(checkpointDir, ".lock"))) await new Promise((done) => setTimeout(done, 10));
    await rm(checkpointDir, { recursive: true });
    await expect(running).rejects.toMatchObject({ code: "FILE_WRITE_FAILED" });
    expect(existsSync(checkpointDir)).toBe(false);
  });
});
