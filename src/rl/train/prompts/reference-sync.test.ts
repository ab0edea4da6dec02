import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { writeRandomModel } from "../../../../test/support/random-model.js";
import { AutoModelForCausalLM, getPeftModel, type LanguageModel } from "../../../generation/index.js";
import { makeTrainable } from "../../../models/adapters/get-peft-model.js";
import { SafetensorsFile } from "../../../models/files/index.js";
import { ppo, reinforce } from "../../algorithms/index.js";
import { GrpoTrainer, RlooTrainer, type GrpoTrainerOptions } from "./grpo-trainer.js";
import type { RewardFunction } from "./reward-scorer.js";

let files: Awaited<ReturnType<typeof writeRandomModel>>;
let folder: string;
let base: LanguageModel;
beforeAll(async () => {
  files = await writeRandomModel({ scale: 0.3, maxPositions: 64 });
  base = await AutoModelForCausalLM.fromPretrained(files.folder, { device: "cpu", threads: 1 });
  folder = await mkdtemp(join(tmpdir(), "reference-"));
});
afterAll(async () => {
  await base.close();
  await files.remove();
  await rm(folder, { recursive: true });
});

const FORMS: Readonly<Record<string, () => Promise<LanguageModel>>> = {
  "an adapter": async () => getPeftModel(base, { r: 4, seed: 1 }),
  "all weights": async () => base.withCausalLM(await makeTrainable(base.causalLM)),
};

const reward: RewardFunction = ({ completionIds }) =>
  completionIds.map((ids) => ids.filter((id) => id < 160).length / ids.length);

const args = {
  batchSize: 8,
  numGenerations: 4,
  maxCompletionLength: 4,
  learningRate: 0.02,
  lrSchedulerType: "constant",
  maxSteps: 5,
  saveSteps: 1,
  beta: 0.1,
  syncRefModel: true,
  refModelMixupAlpha: 0.6,
  refModelSyncSteps: 2,
  filterGroups: false,
  maxResamples: 0,
  tensorboard: false,
} as const;

const optionsOf = (model: LanguageModel, given: GrpoTrainerOptions["args"]): GrpoTrainerOptions => ({
  model,
  rewardFuncs: reward,
  onWarning: () => {},
  trainDataset: ["one", "two", "three"].map((prompt) => ({ prompt })),
  args: { ...args, ...given },
});

const readValues = async ({ causalLM: { runtime, parameters } }: LanguageModel) =>
  Float32Array.from((await runtime.read(parameters.values)).data as Float32Array);

async function readReference(outputDir: string, step: number): Promise<Float32Array> {
  const file = await SafetensorsFile.open(
    join(outputDir, "checkpoints", String(step).padStart(6, "0"), "reference.safetensors"),
  );
  try {
    return await file.readFloat32("values");
  } finally {
    await file.close();
  }
}

describe("syncRefModel", () => {
  it.each(Object.keys(FORMS))("mixes the trained values into the reference every few steps, with %s", async (form) => {
    const model = await FORMS[form]();
    const outputDir = join(folder, form);
    const initial = await readValues(model);
    const trained: Float32Array[] = [initial];
    const kls: number[] = [];
    for (let step = 1; step <= 5; step++) {
      const trainer = new GrpoTrainer(optionsOf(model, { outputDir, maxSteps: step, maxCompletionLength: 4 }));
      await trainer.train({ resumeFromCheckpoint: true, onStep: (_, { kl }) => void kls.push(kl) });
      trained.push(await readValues(model));
    }
    const alpha = args.refModelMixupAlpha;
    const mix = (reference: Float32Array, policy: Float32Array) =>
      reference.map((value, i) => (1 - alpha) * value + alpha * policy[i]);
    const expected = mix(mix(initial, trained[2]), trained[4]);
    const found = await readReference(outputDir, 5);
    expect(found.length).toBe(expected.length);
    const difference = Math.max(...found.map((value, i) => Math.abs(value - expected[i])));
    const moved = Math.max(...found.map((value, i) => Math.abs(value - initial[i])));
    expect(moved).toBeGreaterThan(0.01);
    expect(difference).toBeLessThan(1e-6);
    // The reference is the policy at first, and is left behind until it is moved.
    expect(kls[0]).toBeCloseTo(0, 6);
    expect(kls[1]).toBeGreaterThan(1e-5);
  });

  it("resumes to the numbers of an uninterrupted run", async () => {
    const run = async (name: string, steps: readonly number[]) => {
      const log: Record<string, number>[] = [];
      for (const maxSteps of steps) {
        const given = { outputDir: join(folder, name), maxSteps: Math.max(...steps), maxCompletionLength: 4 };
        const stop = new AbortController();
        const trainer = new GrpoTrainer(optionsOf(await FORMS["an adapter"](), given));
        await trainer.train({
          resumeFromCheckpoint: true,
          signal: stop.signal,
          onStep: (step, { kl, loss, grad_norm }) => {
            log.push({ kl, loss, grad_norm });
            if (step === maxSteps) stop.abort();
          },
        });
      }
      return log;
    };
    expect(await run("parts", [3, 6])).toEqual(await run("whole", [6]));
  });

  it("makes the reference the policy, with alpha 1 after each step", async () => {
    const kls: number[] = [];
    const options = optionsOf(await FORMS["an adapter"](), { refModelMixupAlpha: 1, refModelSyncSteps: 1 });
    await new GrpoTrainer(options).train({ onStep: (_, { kl }) => void kls.push(kl) });
    for (const kl of kls) expect(Math.abs(kl)).toBeLessThan(1e-6);
  });

  it("is refused where nothing compares with a reference", () => {
    const options = { model: base, rewardFuncs: reward, trainDataset: [], args: { syncRefModel: true, beta: 0 } };
    const message = /`syncRefModel` moves the reference policy, which `beta` 0 does not use\./;
    expect(() => new GrpoTrainer(options)).toThrow(message);
    expect(() => new RlooTrainer(options)).toThrow(message);
    expect(() => ppo({ syncRefModel: true, initKlCoef: 0 })).toThrow(/which `initKlCoef` 0 does not use/);
    expect(() => reinforce({ syncRefModel: true, klCoef: 0 })).toThrow(/which `klCoef` 0 does not use/);
  });
});
