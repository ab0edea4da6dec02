import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { writeRandomModel } from "../../../test/support/random-model.js";
import { compile, dim, input, quantizedMatmul, type NamedTensorType } from "../../engine/graph/index.js";
import type { SessionOptions } from "../../engine/runtime/index.js";
import { tensor } from "../../engine/tensor/index.js";
import { CausalLM } from "../causal-lm.js";
import { getQuantizedParts } from "./stored-parameter.js";
import { BLOCK_SIZE } from "./quantize.js";

const NAME = "model.layers.0.mlp.gate_proj.weight";
const WIDTH = 64;

let random: Awaited<ReturnType<typeof writeRandomModel>>;
let model: CausalLM;
let options: SessionOptions;
beforeAll(async () => {
  random = await writeRandomModel({ withTokenizer: false, config: { hidden_size: WIDTH, intermediate_size: 96 } });
  model = await CausalLM.open(random.folder, { device: "cpu", threads: 1, quantize: 4 });
  options = await model.weights.getSessionOptions({ weights: [] }, model.runtime);
});
afterAll(async () => {
  await model.close();
  await random.remove();
});

const graph = () => {
  const parts = getQuantizedParts(NAME, { kind: "quantized", shape: [96, WIDTH], bits: 4 });
  const x = input("x", "float32", [dim("rows"), WIDTH]);
  return compile({ y: quantizedMatmul(x, parts, { bits: 4, blockSize: BLOCK_SIZE }) });
};

async function multiply(packed: readonly string[] | undefined, packWeights: boolean): Promise<Float32Array> {
  const locate = (weight: NamedTensorType) => {
    const location = options.locate!(weight);
    return location.packed === undefined ? location : { ...location, packed };
  };
  const session = await model.runtime.createSession(graph(), { ...options, locate, packWeights });
  const x = tensor(
    "float32",
    [3, WIDTH],
    Float32Array.from({ length: 3 * WIDTH }, (_, i) => Math.cos(i)),
  );
  const { y } = await session.run({ x });
  await session.release();
  return y.data;
}

describe("packed forms of 4-bit matrices", () => {
  it("are stored with the weights, and give the products of weights that a session packs", async () => {
    const { packed } = options.locate!({ name: `${NAME}.bytes`, dtype: "uint8", shape: [] });
    expect(packed).toHaveLength(1);
    expect(packed![0]).toMatch(/^MatMulNBits\+\d+\|\d+;\d+/u);
    const expected = await multiply(undefined, true);
    expect(await multiply(packed, true)).toEqual(expected);
    expect(await multiply(packed, false)).toEqual(expected);
  });

  it("are ignored where the processor's kernel packs in another way", async () => {
    const { packed } = options.locate!({ name: `${NAME}.bytes`, dtype: "uint8", shape: [] });
    const other = packed!.map((entry) => entry.replace(/\+\d+/u, "+1").replace(/\|\d+;/u, "|0;"));
    expect(await multiply(other, true)).toEqual(await multiply(undefined, true));
  });

  it("leave other matrices unpacked in sessions without packing", () => {
    const embedding = options.locate!({ name: "model.embed_tokens.weight.int8", dtype: "int8", shape: [] });
    expect(embedding.isVariable).toBe(true);
    const norm = options.locate!({ name: "model.norm.weight", dtype: "float32", shape: [] });
    expect(norm.isVariable).toBeUndefined();
  });
});
