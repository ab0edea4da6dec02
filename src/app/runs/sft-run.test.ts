import { mkdtemp, readFile, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { writeRandomModel } from "../../../test/support/random-model.js";
import type { SftEvaluation, SftMetrics } from "../../rl/algorithms/sft/sft-learner.js";
import { AutoModelForCausalLM } from "../../generation/auto-model.js";
import { requestControl } from "./run-control.js";
import { resumeSftRun, startSftRun, type SftRun } from "./sft-run.js";
import type { SftRunOptions } from "./sft-run-settings.js";

let written: Awaited<ReturnType<typeof writeRandomModel>>;
let folder: string;
let data: string;
beforeAll(async () => {
  written = await writeRandomModel();
  folder = await mkdtemp(join(tmpdir(), "sft-run-"));
  data = join(folder, "examples.jsonl");
  const lines = Array.from({ length: 20 }, (_, i) =>
    JSON.stringify({ prompt: `What is ${i} plus 1?`, completion: String(i + 1) }),
  );
  await writeFile(data, lines.join("\n"));
});
afterAll(async () => {
  await written.remove();
  await rm(folder, { recursive: true });
});

const options = (): SftRunOptions => ({
  data,
  model: written.folder,
  device: "cpu",
  threads: 1,
  r: 4,
  loraDropout: 0.1,
  batchSize: 4,
  numTrainEpochs: 3,
  learningRate: 1e-2,
  evalSplit: 0.2,
  saveSteps: 5,
  seed: 1,
});

async function trainAll(run: SftRun, stopAt?: number) {
  const stop = new AbortController();
  const steps: SftMetrics[] = [];
  const evaluations: (readonly [number, SftEvaluation])[] = [];
  const { isInterrupted } = await run.train({
    signal: stop.signal,
    onStep: (stats) => {
      steps.push({ ...stats, tokens_per_second: 0 });
      if (stats.step === stopAt) stop.abort();
    },
    onEvaluation: (evaluation, step) => evaluations.push([step, evaluation]),
  });
  await run.close();
  return { steps, evaluations, isInterrupted };
}

describe("SFT run", () => {
  it("resumes from its checkpoint with the metrics of an uninterrupted run", async () => {
    const whole = await trainAll(await startSftRun(options(), join(folder, "whole")));
    expect(whole.steps).toHaveLength(12);
    expect(whole.evaluations.map(([step]) => step)).toEqual([4, 8, 12]);
    const first = await trainAll(await startSftRun(options(), join(folder, "parts")), 7);
    expect(first.isInterrupted).toBe(true);
    const resumed = await resumeSftRun(join(folder, "parts"));
    expect(resumed.resumedAt).toBe(7);
    const second = await trainAll(resumed);
    expect(second.isInterrupted).toBe(false);
    expect([...first.steps, ...second.steps]).toEqual(whole.steps);
    expect([...first.evaluations, ...second.evaluations]).toEqual(whole.evaluations);
    const metrics = async (name: string) =>
      (await readFile(join(folder, name, "metrics.jsonl"), "utf8"))
        .trim()
        .split("\n")
        .map((line) => (JSON.parse(line) as Record<string, number>)["sft/loss"]);
    expect(await metrics("parts")).toEqual(await metrics("whole"));
    expect(await readdir(join(folder, "whole", "checkpoints"))).toEqual(["000010", "000012"]);
  }, 120_000);

  it("carries out requests of the dashboard between two updates", async () => {
    const path = join(folder, "controlled");
    const run = await startSftRun(options(), path);
    const { isInterrupted, state } = await run.train({
      onStep: async ({ step }) => {
        if (step !== 2) return;
        await requestControl(path, { action: "set", name: "saveSteps", value: 1 });
        await requestControl(path, { action: "set", name: "episodes", value: 9 });
        await requestControl(path, { action: "stop" });
      },
    });
    await run.close();
    expect([isInterrupted, state.updates]).toEqual([true, 2]);
    expect(JSON.parse(await readFile(join(path, "config.json"), "utf8"))).toMatchObject({ saveSteps: 1 });
    const log = await readFile(join(path, "log.jsonl"), "utf8");
    expect(log).toContain("Set saveSteps to 1 on request.");
    expect(log).toContain("episodes is not a setting of llamagym sft.");
  });

  it("saves an adapter that loads on its model", async () => {
    const run = await startSftRun({ ...options(), maxSteps: 2 }, join(folder, "saved"));
    await run.train();
    const path = await run.saveModel();
    const [trained] = await run.opened.trainer.model.score([{ role: "user", content: "What is 1 plus 1?" }], ["2"]);
    await run.close();
    const model = await AutoModelForCausalLM.fromPretrained(path, { device: "cpu", threads: 1 });
    const [opened] = await model.score([{ role: "user", content: "What is 1 plus 1?" }], ["2"]);
    expect(opened.logProb).toBeCloseTo(trained.logProb, 5);
    await model.close();
  });

  it("writes nothing if the examples, the settings or the folder are invalid", async () => {
    const broken = join(folder, "broken.jsonl");
    await writeFile(broken, '{"prompt": "a", "completion": "b"}\n{"prompt": "a", "completi');
    const target = join(folder, "never");
    await expect(startSftRun({ ...options(), data: broken }, target)).rejects.toThrow(
      /broken\.jsonl, line 2: .*invalid JSON/,
    );
    await expect(startSftRun({ ...options(), evalSplit: 2 }, target)).rejects.toMatchObject({
      code: "INVALID_ARGUMENT",
    });
    for (const needing of [{ evalSteps: 2 }, { earlyStoppingPatience: 2 }])
      await expect(startSftRun({ ...options(), evalSplit: 0, ...needing }, target)).rejects.toThrow(
        `\`${Object.keys(needing)[0]}\` needs examples to evaluate: set \`evalData\` or \`evalSplit\`.`,
      );
    await expect(startSftRun({ ...options(), data: join(folder, "none") }, target)).rejects.toMatchObject({
      code: "FILE_NOT_FOUND",
    });
    await expect(resumeSftRun(target)).rejects.toThrow(/There is no run/);
    expect(await readdir(folder)).not.toContain("never");
    const run = await startSftRun(
      { ...options(), data: broken, onInvalidLine: "skip", evalSplit: 0 },
      join(folder, "skips"),
    );
    expect(run.opened.invalidLines).toMatchObject([{ line: 2 }]);
    await run.close();
    await expect(startSftRun(options(), join(folder, "skips"))).rejects.toThrow(/already contains a run/);
  });
});
