import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { writeRandomModel } from "../../../test/support/random-model.js";
import { readTrainedValues } from "../../../test/support/trainable.js";
import { AutoModelForCausalLM, getPeftModel } from "../../generation/auto-model.js";
import type { LanguageModel } from "../../generation/language-model.js";
import { makeTrainable } from "../../models/adapters/get-peft-model.js";
import type { PreferenceExample, UnpairedPreferenceExample } from "./preference-example.js";
import { DpoTrainer, type DpoTrainerOptions } from "./dpo-trainer.js";
import { KtoTrainer, type KtoTrainerOptions } from "./kto-trainer.js";

let written: Awaited<ReturnType<typeof writeRandomModel>>;
let folder: string;
beforeAll(async () => {
  written = await writeRandomModel();
  folder = await mkdtemp(join(tmpdir(), "preference-trainer-"));
});
afterAll(async () => {
  await written.remove();
  await rm(folder, { recursive: true });
});

const opened: LanguageModel[] = [];
afterEach(async () => {
  for (const model of opened.splice(0)) await model.close();
});

async function open(): Promise<LanguageModel> {
  const model = await AutoModelForCausalLM.fromPretrained(written.folder, { device: "cpu", threads: 1 });
  opened.push(model);
  return model;
}

const withAdapter = async (seed = 3) => getPeftModel(await open(), { r: 4, loraAlpha: 8, seed });

const pairs: readonly PreferenceExample[] = Array.from({ length: 12 }, (_, i) => ({
  prompt: [{ role: "user", content: `Is ${i} even?` }],
  chosen: [{ role: "assistant", content: i % 2 === 0 ? "yes" : "no" }],
  rejected: [{ role: "assistant", content: i % 2 === 0 ? "no" : "yes, it is" }],
}));
const completions: readonly UnpairedPreferenceExample[] = pairs.flatMap(({ chosen, rejected, ...pair }) => [
  { ...pair, completion: chosen, label: true },
  { ...pair, completion: rejected, label: false },
]);

describe("DpoTrainer", () => {
  it("raises the chosen completions over the rejected ones from a margin of 0", async () => {
    const trainer = await DpoTrainer.create(await withAdapter(), {
      train: pairs,
      batchSize: 12,
      numTrainEpochs: 15,
      learningRate: 1e-2,
    });
    const steps: number[][] = [];
    await trainer.train({ onStep: (m) => void steps.push([m.loss, m["rewards/margins"], m["rewards/accuracies"]]) });
    expect(steps[0][0]).toBeCloseTo(Math.log(2), 5);
    expect(steps[0][1]).toBeCloseTo(0, 5);
    expect(steps.at(-1)![2]).toBeGreaterThan(0.9);
    expect(steps.at(-1)![0]).toBeLessThan(0.5);
  });

  it("has the same update in one micro-batch as in many, with and without shared prefixes", async () => {
    const update = async (options: DpoTrainerOptions) => {
      const model = await withAdapter();
      const trainer = await DpoTrainer.create(model, { learningRate: 1e-2, ...options });
      const losses = [(await trainer.update(pairs)).loss, (await trainer.update(pairs)).loss];
      return [...losses, ...(await readTrainedValues(model))];
    };
    const [whole, split, separate] = [
      await update({}),
      await update({ microBatchTokens: 40 }),
      await update({ sharePrefixes: false }),
    ];
    for (const other of [split, separate])
      other.forEach((value, i) => expect(Math.abs(value - whole[i])).toBeLessThan(2e-4));
  });

  it("takes the policy that training starts from as reference: of an adapter that continues and of all weights", async () => {
    const trained = await withAdapter();
    await (await DpoTrainer.create(trained, { learningRate: 1e-2 })).update(pairs);
    const full = await open();
    for (const model of [trained, full.withCausalLM(await makeTrainable(full.causalLM))]) {
      const trainer = await DpoTrainer.create(model, { learningRate: 1e-3 });
      const [first, second] = [await trainer.update(pairs), await trainer.update(pairs)];
      expect(first["rewards/margins"]).toBeCloseTo(0, 5);
      expect(second["rewards/margins"]).toBeGreaterThan(0.001);
    }
  });

  it("refuses settings without a meaning, by name", async () => {
    const model = await withAdapter();
    const create = async (options: object) => DpoTrainer.create(model, options);
    await expect(create({ lossType: "aot" })).rejects.toThrow(/`lossType` must be "sigmoid", .* got "aot"/);
    await expect(create({ lossType: "exo_pair" })).rejects.toThrow(/`labelSmoothing` must be above 0/);
    await expect(create({ lossType: "robust", labelSmoothing: 0.5 })).rejects.toThrow(/must be below 0.5/);
    await expect(create({ lossType: "apo_zero", fDivergenceType: "js_divergence" })).rejects.toThrow(/not defined for/);
    await expect(create({ useWeighting: true })).rejects.toThrow(/has no setting "useWeighting"/);
    await expect(create({ train: [] })).rejects.toThrow(/There are no examples/);
    await expect(create({ train: [{ ...pairs[0], source: "file, line 3", chosen: [] }] })).rejects.toThrow(
      /None of the 1 examples/,
    );
  });
});

describe("examples that teach nothing", () => {
  const [pair] = pairs;
  const equal = { ...pair, rejected: pair.chosen };
  const warned = async (create: () => Promise<{ release(): Promise<void> }>) => {
    const print = vi.spyOn(console, "warn").mockImplementation(() => {});
    await (await create()).release();
    const messages = print.mock.calls.map(([message]) => String(message));
    print.mockRestore();
    return messages;
  };

  it("are pairs with equal completions, which are counted, or refused if there are no others", async () => {
    const model = await withAdapter();
    const create = (train: readonly PreferenceExample[], options: DpoTrainerOptions = {}) =>
      DpoTrainer.create(model, { train, batchSize: 1, ...options });
    expect(await warned(() => create(pairs))).toEqual([]);
    expect(await warned(() => create([pair, equal]))).toEqual([
      expect.stringMatching(/^1 of 2 pairs have equal completions/),
    ]);
    expect(await warned(() => create([equal], { lossType: "sft" }))).toEqual([]);
    await expect(create([equal])).rejects.toThrow(/1 of 1 pairs .*nothing to learn/);
    const long = { ...pair, chosen: `${"a ".repeat(50)}b`, rejected: `${"a ".repeat(50)}c`, prompt: "x" };
    await expect(create([long], { maxLength: 12 })).rejects.toThrow(/only up to `maxLength`/);
  });

  it("are labels of one kind, and weights out of TRL's range for the numbers of labels", async () => {
    const model = await withAdapter();
    const create = (labels: readonly boolean[], options: KtoTrainerOptions = {}) => {
      const train = labels.map((label) => ({ ...completions[0], label }));
      return warned(() => KtoTrainer.create(model, { train, batchSize: 2, ...options }));
    };
    expect(await create([true, false])).toEqual([]);
    expect(await create([true, true])).toEqual(["2 completions are desirable and 0 are not. KTO compares both kinds."]);
    const [message] = await create([true, false, false]);
    expect(message).toMatch(/`desirableWeight` of 2 to 2\.66, or an `undesirableWeight` of 0\.38 to 0\.5\./);
    expect(await create([true, false, false], { desirableWeight: 2 })).toEqual([]);
    expect(await create([true, false, false], { undesirableWeight: 0.4 })).toEqual([]);
  });
});

describe("KtoTrainer", () => {
  it("separates desirable from undesirable completions", async () => {
    const trainer = await KtoTrainer.create(await withAdapter(), {
      train: completions,
      batchSize: 12,
      numTrainEpochs: 15,
      learningRate: 1e-2,
    });
    const steps: number[][] = [];
    await trainer.train({ onStep: (m) => void steps.push([m.loss, m["rewards/margins"] ?? NaN, m.kl]) });
    expect(steps[0][0]).toBeCloseTo(0.5, 5);
    expect(steps.at(-1)![1]).toBeGreaterThan(0.5);
    expect(steps.at(-1)![0]).toBeLessThan(0.45);
  });

  it("needs two completions per update for the KL divergence", async () => {
    const model = await withAdapter();
    await expect(KtoTrainer.create(model, { batchSize: 1 })).rejects.toThrow(/`batchSize` must be at least 2/);
    await (await KtoTrainer.create(model, { batchSize: 1, lossType: "apo_zero_unpaired" })).release();
  });
});

it.each(["dpo", "kto"] as const)("a %s trainer resumes with the numbers of an uninterrupted one", async (kind) => {
  const settings = { batchSize: 4, numTrainEpochs: 2, learningRate: 1e-2, seed: 1 };
  const create = async () => {
    const model = await withAdapter();
    if (kind === "dpo") return DpoTrainer.create(model, { train: pairs, ...settings });
    return KtoTrainer.create(model, { train: completions.slice(0, 12), ...settings });
  };
  const train = async (trainer: DpoTrainer | KtoTrainer, dir: string, stopAt?: number) => {
    const stop = new AbortController();
    const losses: number[] = [];
    const onStep = ({ loss, step }: { loss: number; step: number }) => {
      losses.push(loss);
      if (step === stopAt) stop.abort();
    };
    await trainer.train({ checkpointDir: dir, onStep, signal: stop.signal });
    return losses;
  };
  const whole = await train(await create(), join(folder, `${kind}-whole`));
  const parts = join(folder, `${kind}-parts`);
  const first = await train(await create(), parts, 3);
  const resumed = await create();
  expect(await resumed.resume(parts)).toBe(3);
  expect([...first, ...(await train(resumed, parts))]).toEqual(whole);
});
