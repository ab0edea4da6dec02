import { cp, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { AutoModelForCausalLM, openTrainable, PeftModel } from "./auto-model.js";
import type { LanguageModel } from "./language-model.js";

const base = fileURLToPath(new URL("../../test/fixtures/models/gpt2", import.meta.url));
const adapterName = "transformer.h.0.attn.c_attn.lora_A.weight";
const headName = "v_head.summary.weight";

let folder: string;
beforeAll(async () => void (folder = await mkdtemp(join(tmpdir(), "llamagym-auto-"))));
afterAll(() => rm(folder, { recursive: true }));

/** Opens `path`, returns what `read` returns, and closes the model. */
async function withModel<Result>(
  path: string,
  valueHead: Parameters<typeof openTrainable>[1]["valueHead"],
  read: (model: LanguageModel) => Promise<Result>,
): Promise<Result> {
  const model = await openTrainable(path, { device: "cpu", threads: 1, valueHead, peftConfig: { seed: 3 } });
  try {
    return await read(model);
  } finally {
    await model.close();
  }
}

const readAdapter = async ({ causalLM: { parameters } }: LanguageModel): Promise<Float32Array> =>
  parameters.read(adapterName);

describe("openTrainable", () => {
  it("adds a new value head to an adapter saved without one", async () => {
    const path = join(folder, "without");
    const saved = await withModel(base, null, async (model) => {
      await model.savePretrained(path, { baseModelName: base });
      return readAdapter(model);
    });
    await withModel(path, { kind: "mlp" }, async (model) => {
      expect(await readAdapter(model)).toEqual(saved);
      expect(model.causalLM.valueHead).toEqual({ kind: "mlp", dropout: 0 });
      expect((await model.causalLM.parameters.read("v_head.2.weight")).some((value) => value !== 0)).toBe(true);
    });
    await withModel(path, "saved", async ({ causalLM }) => expect(causalLM.valueHead).toBeUndefined());
  });

  it("keeps a saved value head, and drops it for algorithms without one", async () => {
    const path = join(folder, "with");
    const saved = await withModel(base, {}, async (model) => {
      await model.savePretrained(path, { baseModelName: base });
      return model.causalLM.parameters.read(headName);
    });
    for (const valueHead of [{}, "saved"] as const) {
      await withModel(path, valueHead, async ({ causalLM }) =>
        expect(await causalLM.parameters.read(headName)).toEqual(saved),
      );
    }
    await withModel(path, null, async ({ causalLM }) => {
      expect(causalLM.valueHead).toBeUndefined();
      expect(causalLM.parameters.has(headName)).toBe(false);
      expect(causalLM.adapter?.modules.size).toBeGreaterThan(0);
    });
  });
});

describe("an adapter that came with another vocabulary", () => {
  const fixtures = fileURLToPath(new URL("../../test/fixtures", import.meta.url));

  it("is opened with the tokenizer in its folder", async () => {
    const path = join(folder, "resized");
    await cp(join(fixtures, "text/model"), path, { recursive: true });
    await cp(join(fixtures, "peft/resized_embedding"), path, { recursive: true });
    const options = { device: "cpu", threads: 1 } as const;
    const opened = await AutoModelForCausalLM.fromPretrained(join(fixtures, "models/llama"), {
      ...options,
      adapter: path,
    });
    expect(opened.causalLM.config.vocabSize).toBe(27);
    expect(opened.tokenizer.encode("a", { addSpecialTokens: false }).length).toBeGreaterThan(0);
    await opened.close();

    const plain = await AutoModelForCausalLM.fromPretrained(join(fixtures, "models/llama"), options);
    expect(() => plain.tokenizer).toThrow("has no tokenizer.json");
    expect((await PeftModel.fromPretrained(plain, path)).tokenizer.encode("a")).toEqual(opened.tokenizer.encode("a"));
    await plain.close();
  });
});
