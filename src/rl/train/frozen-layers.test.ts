import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { writeRandomModel } from "../../../test/support/random-model.js";
import { AutoModelForCausalLM, getPeftModel } from "../../generation/auto-model.js";
import type { LanguageModel } from "../../generation/language-model.js";
import type { FrozenStates } from "../../models/graphs/frozen-states.js";
import { SftLearner } from "../algorithms/sft/sft-learner.js";
import { DpoTrainer } from "../preferences/dpo-trainer.js";
import { KtoTrainer } from "../preferences/kto-trainer.js";
import { SftTrainer } from "./sft-trainer.js";

let written: Awaited<ReturnType<typeof writeRandomModel>>;
let folder: string;
beforeAll(async () => {
  written = await writeRandomModel();
  folder = await mkdtemp(join(tmpdir(), "frozen-layers-"));
});
afterAll(async () => {
  await written.remove();
  await rm(folder, { recursive: true });
});

const opened: LanguageModel[] = [];
afterEach(async () => {
  for (const model of opened.splice(0)) await model.close();
});

/** A model of two layers, adapted in the last one or in both. */
async function adapt(layersToTransform: readonly number[]): Promise<LanguageModel> {
  const model = await AutoModelForCausalLM.fromPretrained(written.folder, { device: "cpu", threads: 1 });
  opened.push(model);
  return getPeftModel(model, { r: 4, loraAlpha: 8, layersToTransform: [...layersToTransform], seed: 3 });
}

// Prompts that begin alike and prompts that do not, so that some batches have prefixes.
const questions = Array.from({ length: 6 }, (_, i) => (i % 2 === 0 ? `Is ${i} even? And ${i} + 1?` : `${i}?`));
const ask = (content: string) => [{ role: "user", content }];
const say = (content: string) => [{ role: "assistant", content }];
const dialogs = questions.flatMap((question) => ["yes", "no"].map((word) => [...ask(question), ...say(word)]));
const pairs = questions.map((question) => ({ prompt: ask(question), chosen: say("yes"), rejected: say("no") }));
const labeled = questions.flatMap((question) => [
  { prompt: ask(question), completion: say("yes"), label: true },
  { prompt: ask(question), completion: say("no"), label: false },
]);

const trainers = {
  sft: (model: LanguageModel, settings: object) =>
    SftTrainer.create(model, { train: dialogs.map((messages) => ({ messages })), ...settings }),
  dpo: (model: LanguageModel, settings: object) => DpoTrainer.create(model, { train: pairs, ...settings }),
  kto: (model: LanguageModel, settings: object) => KtoTrainer.create(model, { train: labeled, ...settings }),
};
const batches = { sft: dialogs.map((messages) => ({ messages })), dpo: pairs, kto: labeled };

describe.each(["sft", "dpo", "kto"] as const)("%s of the last layer", (kind) => {
  it.each([{}, { microBatchTokens: 30 }, { sharePrefixes: false }])(
    "has the gradients that computing all layers has, also from states that are kept (%o)",
    async (settings) => {
      const last = await adapt([1]);
      const both = await adapt([]);
      const names = last.causalLM.parameters.names;
      for (const name of names) {
        // The matrices of an adapter whose product is not 0.
        const values = await both.causalLM.parameters.read(name);
        const shifted = values.map((value, i) => value + 0.02 * Math.sin(i));
        for (const model of [last, both]) await model.causalLM.parameters.write(name, shifted);
      }
      const gradients = async (model: LanguageModel) => {
        const trainer = await trainers[kind](model, { ...settings, learningRate: 0 });
        const all: Float32Array[] = [];
        // The second update reads what the first one computed.
        for (let update = 0; update < 2; update++) {
          await (trainer as { update(examples: readonly unknown[]): Promise<unknown> }).update(batches[kind]);
          for (const name of names) all.push((await model.causalLM.parameters.readGradient(name)).slice());
        }
        await trainer.release();
        return all;
      };
      const expected = await gradients(both);
      (await gradients(last)).forEach((values, i) => {
        const scale = Math.max(...expected[i].map(Math.abs));
        expect(scale).toBeGreaterThan(1e-6);
        expect(Math.max(...values.map((value, j) => Math.abs(value - expected[i][j]))) / scale).toBeLessThan(1e-4);
      });
    },
  );

  it("computes the states of an example once in all epochs, and resumes with them", async () => {
    const settings = { batchSize: 4, numTrainEpochs: 3, learningRate: 1e-2, seed: 1, sharePrefixes: true };
    const create = async () => trainers[kind](await adapt([1]), settings);
    const run = async (trainer: Awaited<ReturnType<typeof create>>, checkpointDir: string, stopAt?: number) => {
      const stop = new AbortController();
      const losses: number[] = [];
      const sizes: number[] = [];
      await trainer.train({
        checkpointDir,
        signal: stop.signal,
        onStep: ({ loss, step }: { loss: number; step: number }) => {
          losses.push(loss);
          sizes.push(states(trainer)!.size);
          if (step === stopAt) stop.abort();
        },
      });
      return { losses, sizes };
    };
    const whole = await run(await create(), join(folder, `${kind}-whole`));
    const steps = whole.sizes.length / 3;
    expect(whole.sizes[0]).toBeLessThan(whole.sizes[steps - 1]);
    expect(whole.sizes.slice(steps).every((size) => size === whole.sizes[steps - 1])).toBe(true);
    const parts = join(folder, `${kind}-parts`);
    const first = await run(await create(), parts, steps);
    const resumed = await create();
    expect(await resumed.resume(parts)).toBe(steps);
    expect(states(resumed)!.size).toBe(whole.sizes[steps - 1]);
    const rest = await run(resumed, parts);
    expect([...first.losses, ...rest.losses]).toEqual(whole.losses);
    await resumed.release();
    expect(states(resumed)!.size).toBe(0);
  });
});

it("has no kept states where the first layer is trained", async () => {
  const learner = await SftLearner.create(await adapt([]));
  expect(learner.frozenStates).toBeUndefined();
  await learner.release();
});

function states(trainer: object): FrozenStates | undefined {
  const { parts, own } = trainer as Record<string, { learner: { frozenStates: FrozenStates | undefined } } | undefined>;
  return (parts ?? own)!.learner.frozenStates;
}
