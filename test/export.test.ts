import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { gguf } from "@huggingface/gguf";
import { InferenceSession, Tensor } from "onnxruntime-node";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { AutoModelForCausalLM, getPeftModel, type LanguageModel } from "../src/index.js";
import { ARCHITECTURES, ONNX_ONLY } from "./exports/architectures.js";
import { ForwardPass } from "./parity/models/forward-pass.js";
import { maxRelativeError } from "./parity/parity-report.js";
import { writeRandomModel } from "./support/random-model.js";

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "export-"));
});
afterAll(() => rm(folder, { recursive: true }));

const fixtures = fileURLToPath(new URL("fixtures/models/", import.meta.url));
const IDS = [1, 3, 5, 8, 13, 21, 4, 9, 2, 6, 7, 11, 10, 12];

async function computeLogits(model: LanguageModel, ids: readonly number[] = IDS): Promise<Float32Array> {
  const forward = await ForwardPass.create(model.causalLM);
  const { logits } = await forward.run([ids]);
  await forward.release();
  return logits;
}

/** Logits of an exported ONNX model, the second half of the tokens one at a time with the cache. */
async function runOnnx(path: string, ids: readonly number[]): Promise<Float32Array> {
  const session = await InferenceSession.create(path, { logSeverityLevel: 3 });
  const int64 = (values: readonly number[]) =>
    new Tensor("int64", BigInt64Array.from(values, BigInt), [1, values.length]);
  const half = ids.length / 2;
  const steps = [ids.slice(0, half), ...ids.slice(half).map((id) => [id])];
  const logits: number[] = [];
  let cache: Record<string, Tensor> = {};
  let past = 0;
  for (const step of steps) {
    const feeds: Record<string, Tensor> = {
      input_ids: int64(step),
      position_ids: int64(step.map((_, i) => past + i)),
      attention_mask: int64(Array.from({ length: past + step.length }, () => 1)),
      ...cache,
    };
    for (const input of session.inputMetadata)
      if (!(input.name in feeds) && input.isTensor) {
        const [, heads, , width] = input.shape as number[];
        feeds[input.name] = new Tensor("float32", new Float32Array(0), [1, heads, 0, width]);
      }
    const outputs = await session.run(feeds);
    logits.push(...(outputs.logits.data as Float32Array));
    cache = Object.fromEntries(
      Object.entries(outputs)
        .filter(([name]) => name.startsWith("present"))
        .map(([name, value]) => [name.replace("present", "past_key_values"), value]),
    );
    past += step.length;
  }
  await session.release();
  return Float32Array.from(logits);
}

describe("export to GGUF and ONNX", () => {
  it.each(Object.entries(ARCHITECTURES))(
    "writes %s, which computes the same logits, with the same tokens",
    async (type, config) => {
      const random = await writeRandomModel({ config: { model_type: type, ...config } });
      const model = await AutoModelForCausalLM.fromPretrained(random.folder, { device: "cpu" });
      const output = join(folder, `gguf-${type}`);
      await model.export(output, { format: "gguf", dtype: "F32" });
      const file = join(output, "model.gguf");
      const opened = await AutoModelForCausalLM.fromPretrained(file, { device: "cpu" });
      expect(maxRelativeError(await computeLogits(opened), await computeLogits(model))).toBeLessThan(1e-5);
      const text = "Hello, world's 2nd café 🎉  \n\n x";
      expect(opened.tokenizer.encode(text)).toEqual(model.tokenizer.encode(text));
      const messages = [{ role: "user", content: "hi" }];
      expect(opened.tokenizer.applyChatTemplate(messages)).toBe(model.tokenizer.applyChatTemplate(messages));
      const onnx = join(folder, `onnx-${type}`);
      await model.export(onnx, { format: "onnx" });
      const logits = await runOnnx(join(onnx, "onnx", "model.onnx"), IDS);
      expect(maxRelativeError(logits, await computeLogits(model))).toBeLessThan(1e-4);
      await Promise.all([opened.close(), model.close(), random.remove()]);
    },
  );

  it.each(Object.entries(ONNX_ONLY))("writes %s to ONNX alone", async (type, config) => {
    const random = await writeRandomModel({ config: { model_type: type, ...config } });
    const model = await AutoModelForCausalLM.fromPretrained(random.folder, { device: "cpu" });
    await expect(model.export(join(folder, `gguf-${type}`), { format: "gguf" })).rejects.toThrow(
      `Models of model_type "${type}" cannot be exported to GGUF. Use --format onnx or merged.`,
    );
    const onnx = join(folder, `onnx-${type}`);
    await model.export(onnx, { format: "onnx" });
    const logits = await runOnnx(join(onnx, "onnx", "model.onnx"), IDS);
    expect(maxRelativeError(logits, await computeLogits(model))).toBeLessThan(1e-4);
    await Promise.all([model.close(), random.remove()]);
  });

  it.each(["F16", "Q8", "Q4"] as const)("writes %s blocks that @huggingface/gguf reads", async (dtype) => {
    const model = await AutoModelForCausalLM.fromPretrained("embedded", { device: "cpu" });
    const output = join(folder, `embedded-${dtype}`);
    const warnings: string[] = [];
    await model.export(output, { format: "gguf", dtype, onWarning: (text) => warnings.push(text) });
    expect(warnings).toEqual([expect.stringContaining("white space")]);
    const file = join(output, "model.gguf");
    const { metadata, tensorInfos } = await gguf(file, { allowLocalFile: true });
    expect(metadata).toMatchObject({ "general.architecture": "llama", "tokenizer.ggml.eos_token_id": 4 });
    const types = new Set(tensorInfos.map((tensor) => tensor.dtype));
    expect([...types].sort((a, b) => a - b)).toEqual({ F16: [0, 1], Q8: [0, 8], Q4: [0, 2, 8] }[dtype]);
    expect(await readFile(join(output, "Modelfile"), "utf8")).toContain(
      '{{ else if eq .Role "user" }}<|user|>{{ .Content }}<|end|>',
    );
    const opened = await AutoModelForCausalLM.fromPretrained(file, { device: "cpu" });
    const limit = { F16: 2e-2, Q8: 0.5, Q4: 5 }[dtype];
    expect(maxRelativeError(await computeLogits(opened), await computeLogits(model))).toBeLessThan(limit);
    await Promise.all([opened.close(), model.close()]);
  });

  it("keeps tokens that tokenizer.json does not list", async () => {
    const random = await writeRandomModel({ config: { vocab_size: 323 } });
    const { folder: from } = random;
    await writeFile(join(from, "tokenizer_config.json"), '{"eos_token": "<|im_end|>", "pad_token": "<pad>"}');
    await writeFile(join(from, "added_tokens.json"), '{"<x>": 320, "<y>": 321}');
    const model = await AutoModelForCausalLM.fromPretrained(from, { device: "cpu" });
    const text = "hi<y>you<pad><x>";
    const tokens = model.tokenizer.encode(text);
    expect(tokens).toEqual(expect.arrayContaining([320, 321, 322]));
    await model.export(join(folder, "added-gguf"), { format: "gguf" });
    const file = join(folder, "added-gguf", "model.gguf");
    const opened = await AutoModelForCausalLM.fromPretrained(file, { device: "cpu" });
    expect(opened.tokenizer.encode(text)).toEqual(tokens);
    await model.export(join(folder, "added-onnx"), { format: "onnx" });
    // The file in which transformers.js looks for them.
    const { added_tokens: added } = JSON.parse(
      await readFile(join(folder, "added-onnx", "tokenizer.json"), "utf8"),
    ) as { added_tokens: object[] };
    expect(added.slice(-3)).toMatchObject([
      { id: 320, content: "<x>", special: false, normalized: true, single_word: false },
      { id: 321, content: "<y>" },
      { id: 322, content: "<pad>", special: true },
    ]);
    await Promise.all([opened.close(), model.close(), random.remove()]);
  });

  it.each([
    ["phi", "has no tensor for model.layers.0.self_attn.q_layernorm.weight"],
    ["gpt2", "has no attention scale"],
    ["gemma3", "has no attention scale"],
    ["smollm3", "has no layers without positions other than every fourth"],
  ])("refuses what llama.cpp's %s does not compute, and leaves nothing behind", async (name, message) => {
    const model = await AutoModelForCausalLM.fromPretrained(join(fixtures, name), {
      device: "cpu",
      tokenizer: await loadTokenizer(),
    });
    await expect(model.export(join(folder, "refused"), { format: "gguf" })).rejects.toThrow(message);
    expect((await readdir(folder)).filter((file) => file.startsWith("refused"))).toEqual([]);
    await model.close();
  });
});

async function openLogits(path: string): Promise<Float32Array> {
  const model = await AutoModelForCausalLM.fromPretrained(path, { device: "cpu" });
  const logits = await computeLogits(model);
  await model.close();
  return logits;
}

async function loadTokenizer() {
  const model = await AutoModelForCausalLM.fromPretrained("embedded", { device: "cpu" });
  await model.close();
  return model.tokenizer;
}

describe("export to ONNX", () => {
  // Windows, caps of scores and logits, LongRoPE.
  it.each(["mistral", "phi", "phi3", "gemma3"])("writes the fixture %s with its windows and caps", async (name) => {
    const tokenizer = await loadTokenizer();
    const model = await AutoModelForCausalLM.fromPretrained(join(fixtures, name), { device: "cpu", tokenizer });
    const output = join(folder, `onnx-fixture-${name}`);
    await model.export(output, { format: "onnx" });
    // Keys that were cached under LongRoPE's short factors do not change when the sequence grows.
    const ids = name === "phi3" ? IDS.slice(0, 4) : IDS;
    const logits = await runOnnx(join(output, "onnx", "model.onnx"), ids);
    expect(maxRelativeError(logits, await computeLogits(model, ids))).toBeLessThan(1e-4);
    await model.close();
  });

  it("refuses heads that GroupQueryAttention does not compute", async () => {
    const tokenizer = await loadTokenizer();
    const model = await AutoModelForCausalLM.fromPretrained(join(fixtures, "qwen3"), { device: "cpu", tokenizer });
    await expect(model.export(join(folder, "refused"), { format: "onnx" })).rejects.toThrow(
      "multiple of 8 dimensions, got 6",
    );
    await model.close();
  });

  it.each([
    ["F16", "model_fp16.onnx", 2e-2],
    ["Q8", "model_quantized.onnx", 0.5],
    ["Q4", "model_q4.onnx", 5],
  ] as const)("writes weights as %s", async (dtype, file, limit) => {
    const model = await AutoModelForCausalLM.fromPretrained("embedded", { device: "cpu" });
    const output = join(folder, `onnx-${dtype}`);
    await model.export(output, { format: "onnx", dtype });
    const logits = await runOnnx(join(output, "onnx", file), IDS);
    expect(maxRelativeError(logits, await computeLogits(model))).toBeLessThan(limit);
    const config = JSON.parse(await readFile(join(output, "config.json"), "utf8")) as object;
    expect(config).toMatchObject({ "transformers.js_config": { use_external_data_format: { [file]: 1 } } });
    await model.close();
  });
});

describe("export of an adapter", () => {
  it("merges it into all formats but peft, and replaces a folder only when asked", async () => {
    const base = await AutoModelForCausalLM.fromPretrained("embedded", { device: "cpu" });
    const model = await getPeftModel(base, { r: 4, targetModules: "all-linear" });
    const [name] = [...model.causalLM.parameters.names].filter((each) => each.includes("lora_B"));
    const zeros = await model.causalLM.parameters.read(name);
    await model.causalLM.parameters.write(name, zeros.fill(0.5));
    model.causalLM.markParametersChanged();
    const expected = await computeLogits(model);
    expect(maxRelativeError(await computeLogits(base), expected)).toBeGreaterThan(1e-2);
    for (const format of ["peft", "merged", "gguf", "onnx"] as const) {
      const output = join(folder, `adapter-${format}`);
      await model.export(output, { format, dtype: "F32" });
      await expect(model.export(output, { format })).rejects.toThrow("is not empty");
      await model.export(output, { format, dtype: "F32", overwrite: true, readme: "# card\n" });
      expect(await readFile(join(output, "README.md"), "utf8")).toBe("# card\n");
      const logits = await (format === "onnx"
        ? runOnnx(join(output, "onnx", "model.onnx"), IDS)
        : openLogits(format === "gguf" ? join(output, "model.gguf") : output));
      expect(maxRelativeError(logits, expected)).toBeLessThan(1e-4);
    }
    await expect(model.export(join(folder, "x"), { format: "onnx", dtype: "BF16" })).rejects.toThrow(
      "must be one of F32, F16, Q8, Q4, got BF16",
    );
    await expect(base.export(join(folder, "x"), { format: "peft" })).rejects.toThrow("has no adapter");
    await model.close();
  });
});
