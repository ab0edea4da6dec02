import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { writeRandomModel } from "../../test/support/random-model.js";
import type { LlamaGymError } from "../core/errors.js";
import { readJson } from "../core/files/json-file.js";
import type { ChatMessage } from "../models/text/index.js";
import { AutoModelForCausalLM, getPeftModel, PeftModel } from "./auto-model.js";
import type { LanguageModel } from "./language-model.js";

const OPTIONS = { device: "cpu", threads: 1 } as const;
const hello: ChatMessage[] = [{ role: "user", content: "Hello there" }];

let model: LanguageModel;
let folder: string;
let remove: () => Promise<void>;
beforeAll(async () => {
  ({ folder, remove } = await writeRandomModel());
  model = await AutoModelForCausalLM.fromPretrained(folder, OPTIONS);
});
afterAll(async () => {
  await model.close();
  await remove();
});

const errorLike = (code: string, message: RegExp) =>
  expect.objectContaining({ code, message: expect.stringMatching(message) as string }) as LlamaGymError;

describe("an adapted model", () => {
  it("gives the same scores after saving, reopening and merging, and the base's scores without adapter", async () => {
    const adapted = await getPeftModel(model, { r: 4, loraAlpha: 8, seed: 1 });
    for (const name of adapted.causalLM.parameters.names.filter((each) => each.includes("lora_B"))) {
      const size = adapted.causalLM.parameters.shape(name).reduce((product, length) => product * length, 1);
      await adapted.causalLM.parameters.write(
        name,
        Float32Array.from({ length: size }, (_, i) => Math.sin(i) / 4),
      );
    }
    adapted.causalLM.markParametersChanged();
    const score = async (each: LanguageModel, adapter?: boolean) =>
      (await each.score(hello, [" yes"], { adapter }))[0].logProb;
    const base = await score(model);
    const ours = await score(adapted);
    expect(Math.abs(ours - base)).toBeGreaterThan(1e-2);
    expect(await score(adapted, false)).toBeCloseTo(base, 5);

    const directory = await mkdtemp(join(tmpdir(), "adapter-"));
    try {
      await adapted.savePretrained(join(directory, "adapter"));
      const saved = await readJson(join(directory, "adapter", "adapter_config.json"));
      expect(saved.base_model_name_or_path).toBe(folder);
      const again = await PeftModel.fromPretrained(model, join(directory, "adapter"));
      expect(await score(again)).toBeCloseTo(ours, 5);
      const opened = await AutoModelForCausalLM.fromPretrained(join(directory, "adapter"), OPTIONS);
      expect(await score(opened)).toBeCloseTo(ours, 5);
      await opened.close();
      const both = await AutoModelForCausalLM.fromPretrained(folder, {
        ...OPTIONS,
        adapter: join(directory, "adapter"),
      });
      expect(await score(both)).toBeCloseTo(ours, 5);
      await both.close();
      const merged = await adapted.mergeAndUnload();
      expect(await score(merged)).toBeCloseTo(ours, 4);
      await merged.savePretrained(join(directory, "merged"));
      const reopened = await AutoModelForCausalLM.fromPretrained(join(directory, "merged"), OPTIONS);
      expect(await score(reopened)).toBeCloseTo(ours, 4);
      await reopened.close();
      await expect(getPeftModel(adapted)).rejects.toEqual(errorLike("INVALID_STATE", /already has trainable/));
    } finally {
      await rm(directory, { recursive: true });
    }
  });
});

describe("a model without a tokenizer", () => {
  it("accepts and returns token ids, and rejects text", async () => {
    const made = await writeRandomModel({ withTokenizer: false });
    const bare = await AutoModelForCausalLM.fromPretrained(made.folder, OPTIONS);
    expect((await bare.generate([5, 6], { maxNewTokens: 3, ignoreEos: true })).tokens).toHaveLength(3);
    await expect(bare.generate("text")).rejects.toEqual(errorLike("INVALID_STATE", /has no tokenizer.json/));
    await bare.close();
    await expect(bare.generate([5, 6])).rejects.toEqual(errorLike("INVALID_STATE", /closed/));
    const given = await AutoModelForCausalLM.fromPretrained(made.folder, { ...OPTIONS, tokenizer: model.tokenizer });
    expect((await given.generate("text", { maxNewTokens: 3 })).tokens).not.toHaveLength(0);
    await given.close();
    await made.remove();
  });
});
