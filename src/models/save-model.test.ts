import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ForwardPass } from "../../test/parity/models/forward-pass.js";
import { ModelFixture } from "../../test/parity/models/model-fixture.js";
import { maxRelativeError } from "../../test/parity/parity-report.js";
import { CausalLM } from "./causal-lm.js";
import { getPeftModel } from "./adapters/get-peft-model.js";
import { SafetensorsFile } from "./files/index.js";
import { mergeAdapter } from "./adapters/merge-adapter.js";
import { loadAdapter, saveModel } from "./save-model.js";

let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "llamagym-saving-"));
});

afterAll(async () => {
  await rm(folder, { recursive: true });
});

const fixtureFolder = (name: string) => fileURLToPath(new URL(`../../test/fixtures/models/${name}`, import.meta.url));

async function logitsOf(model: CausalLM, fixture: ModelFixture): Promise<Float32Array> {
  const forward = await ForwardPass.create(model);
  const { logits } = await forward.run(fixture.rows);
  await forward.release();
  return logits;
}

describe("saveModel", () => {
  // gpt2's files have bare names and mask buffers, qwen3's are tied and in bfloat16, gemma3's
  // config has whole floats; gpt2_ends has adapters of an embedding and an output matrix that are
  // one, which merged are two.
  it.each(["gpt2", "qwen3", "gemma3", "gpt2_ends"])("round-trips %s, adapted and merged", async (name) => {
    const fixture = await ModelFixture.open(fixtureFolder(name));
    const options = { device: "cpu", threads: 1 } as const;
    const model = await CausalLM.open(fixtureFolder(name), options);
    const adapted = await loadAdapter(model, join(fixtureFolder(name), "adapter"));
    await saveModel(adapted, join(folder, name, "adapter"));
    await saveModel(await mergeAdapter(adapted), join(folder, name, "merged"), { maxShardBytes: 10_000 });

    const reloaded = await loadAdapter(model, join(folder, name, "adapter"));
    const error = maxRelativeError(await logitsOf(reloaded, fixture), await fixture.readPerToken("adapter.logits"));
    expect(error).toBeLessThan(1e-4);
    const merged = await CausalLM.open(join(folder, name, "merged"), options);
    const mergedError = maxRelativeError(await logitsOf(merged, fixture), await fixture.readPerToken("adapter.logits"));
    expect(mergedError).toBeLessThan(1e-4);
    expect(merged.weights.parameters.has("lm_head.weight")).toBe(name === "gpt2_ends");
    await merged.close();
    await model.close();
    await fixture.close();
  });

  it.each(["gpt2", "llama"])("saves quantized %s merged at its original precision", async (name) => {
    const files = await Promise.all(
      ([undefined, 8] as const).map(async (quantize) => {
        const model = await CausalLM.open(fixtureFolder(name), { device: "cpu", threads: 1, quantize });
        const output = join(folder, "quantized", `${name}-${quantize}`);
        await saveModel(await mergeAdapter(await loadAdapter(model, join(fixtureFolder(name), "adapter"))), output);
        await model.close();
        return readFile(join(output, "model.safetensors"));
      }),
    );
    expect(Buffer.compare(files[0], files[1])).toBe(0);
  });

  it.each([
    ["embedded", 'from_pretrained("node_modules/llamagym/models/llamagym-1m")'],
    ["quants/model-Q4_0.gguf", "the GGUF file `quants/model-Q4_0.gguf`"],
    ["owner/name", undefined],
  ])("describes how Python opens an adapter of %s, without replacing a README", async (baseModelName, text) => {
    const model = await CausalLM.open(fixtureFolder("gpt2"), { device: "cpu", threads: 1 });
    const adapted = await getPeftModel(model);
    const path = join(folder, "readme", baseModelName.replace("/", "-"));
    await saveModel(adapted, path, { baseModelName });
    const readReadme = () => readFile(join(path, "README.md"), "utf8").catch(() => undefined);
    expect((await readReadme())?.includes(text ?? "")).toBe(text === undefined ? undefined : true);
    await writeFile(join(path, "README.md"), "mine");
    await saveModel(adapted, path, { baseModelName });
    expect(await readReadme()).toBe("mine");
    await model.close();
  });

  it.each(["gemma2", "olmo2", "granite", "granitemoehybrid", "gpt_neox"])(
    "writes %s with the names and values of Transformers' file",
    async (name) => {
      const model = await CausalLM.open(fixtureFolder(name), { device: "cpu", threads: 1 });
      await saveModel(model, join(folder, "same", name));
      await model.close();
      const [ours, theirs] = await Promise.all(
        [join(folder, "same", name), fixtureFolder(name)].map(async (path) => {
          const file = await SafetensorsFile.open(join(path, "model.safetensors"));
          const tensors = await Promise.all(
            [...file.entries.keys()].sort().map(async (key) => [key, await file.readFloat32(key)]),
          );
          await file.close();
          return tensors;
        }),
      );
      expect(ours).toEqual(theirs);
    },
  );

  it("writes floats that Transformers requires with a fraction", async () => {
    const model = await CausalLM.open(fixtureFolder("gemma3"), { device: "cpu", threads: 1 });
    await saveModel(model, join(folder, "plain"));
    await model.close();
    const text = await readFile(join(folder, "plain", "config.json"), "utf8");
    expect(text).toContain('"final_logit_softcapping": 6.0,\n');
    expect(text).toContain('"num_hidden_layers": 2,\n');
    expect(JSON.parse(text)).toMatchObject({ final_logit_softcapping: 6, dtype: "float32" });

    const granite = await CausalLM.open(fixtureFolder("granitemoehybrid"), { device: "cpu", threads: 1 });
    await saveModel(granite, join(folder, "granite"));
    await granite.close();
    expect(await readFile(join(folder, "granite", "config.json"), "utf8")).toMatch(/"time_step_limit": \[\s*0\.0,/u);
  });
});
