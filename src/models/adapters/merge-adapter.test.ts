import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { writeRandomModel } from "../../../test/support/random-model.js";
import { addMatmul, compile, mul, scalar, weight } from "../../engine/graph/index.js";
import { CausalLM } from "../causal-lm.js";
import { SafetensorsFile } from "../files/index.js";
import { MAX_CHUNK_ELEMENTS } from "../files/weight-file.js";
import { saveModel } from "../save-model.js";
import { getPeftModel } from "./get-peft-model.js";
import { mergeAdapter } from "./merge-adapter.js";

const WIDTH = 128;
const VOCABULARY = Math.floor((2.5 * MAX_CHUNK_ELEMENTS) / WIDTH);
const NAMES = ["model.embed_tokens.weight", "lm_head.weight", "model.layers.0.mlp.up_proj.weight"];

let folder: string;
let random: Awaited<ReturnType<typeof writeRandomModel>>;
let base: CausalLM;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "llamagym-merge-"));
  random = await writeRandomModel({
    withTokenizer: false,
    config: { hidden_size: WIDTH, vocab_size: VOCABULARY, num_hidden_layers: 1 },
  });
  base = await CausalLM.open(random.folder, { device: "cpu", threads: 1 });
});
afterAll(async () => {
  await base.close();
  await random.remove();
  await rm(folder, { recursive: true });
});

/** Merges a whole matrix in one product. */
async function mergeAtOnce(model: CausalLM, name: string, isEmbedding: boolean): Promise<Float32Array> {
  const module = name.slice(0, -".weight".length);
  const source = name === "lm_head.weight" ? "model.embed_tokens.weight" : name;
  const data = {
    stored: await base.weights.read(source),
    a: await model.parameters.read(module + (isEmbedding ? ".lora_embedding_A" : ".lora_A.weight")),
    b: await model.parameters.read(module + (isEmbedding ? ".lora_embedding_B" : ".lora_B.weight")),
  };
  const { rank, scaling, inFeatures, outFeatures } = model.adapter!.modules.get(module)!;
  const shape = isEmbedding ? [inFeatures, outFeatures] : [outFeatures, inFeatures];
  const stored = weight("stored", "float32", shape);
  const a = weight("a", "float32", [rank, inFeatures]);
  const b = mul(weight("b", "float32", [outFeatures, rank]), scalar(scaling));
  const merged = isEmbedding
    ? addMatmul(stored, a, b, { transposeA: true, transposeB: true })
    : addMatmul(stored, b, a);
  const session = await base.runtime.createSession(compile({ merged }), {
    locate: (each) => ({
      file: each.name,
      offset: 0,
      byteLength: data[each.name as keyof typeof data].byteLength,
    }),
    buffers: Object.entries(data).map(([file, values]) => ({
      name: file,
      data: new Uint8Array(values.slice().buffer),
    })),
  });
  const result = (await session.run({})).merged.data;
  await session.release();
  return result;
}

describe("mergeAdapter", () => {
  it("saves the bytes of matrices that are merged at once, in chunks, with progress", async () => {
    const targetModules = ["embed_tokens", "lm_head", "up_proj"];
    const model = await getPeftModel(base, { r: 3, targetModules, seed: 2 });
    for (const name of model.parameters.names)
      await model.parameters.write(
        name,
        (await model.parameters.read(name)).map((_, i) => Math.sin(i + 1)),
      );
    const merged = await mergeAdapter(model);
    const expected = await Promise.all(NAMES.map((name, i) => mergeAtOnce(model, name, i === 0)));
    // The merged model has the values that the adapter had.
    for (const name of model.parameters.names)
      await model.parameters.write(name, new Float32Array((await model.parameters.read(name)).length));

    const shares: number[] = [];
    await saveModel(merged, folder, { onProgress: (share) => shares.push(share) });
    const file = await SafetensorsFile.open(join(folder, "model.safetensors"));
    for (const [i, name] of NAMES.entries()) {
      const bytes = await file.readBytes(name);
      expect(Buffer.compare(bytes, Buffer.from(expected[i].buffer))).toBe(0);
    }
    await file.close();
    expect(shares.length).toBeGreaterThan(merged.weights.parameters.size);
    expect(shares.at(-1)).toBe(1);
    expect(shares).toEqual([...shares].sort((one, other) => one - other));
  });
});
