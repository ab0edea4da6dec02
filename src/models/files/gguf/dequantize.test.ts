import { describe, expect, it } from "vitest";
import { SafetensorsFile } from "../safetensors/index.js";
import { FileSource } from "../file-source.js";
import { GgufWeights } from "./gguf-weights.js";
import { getDequantizeFunction } from "./dequantize.js";
import { readGgufHeader } from "./gguf-header.js";

const folder = new URL("../../../../test/fixtures/files/", import.meta.url).pathname;
const types = ["F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K"];

describe("dequantize", () => {
  it.each([...types, "IQ4_NL", "IQ4_XS"])("matches the gguf package bit for bit: %s", async (type) => {
    const source = await FileSource.open(`${folder}quants.gguf`);
    const expected = await SafetensorsFile.open(`${folder}quants.expected.safetensors`);
    const tensor = (await readGgufHeader(source)).tensors.get(type);
    if (tensor === undefined) throw new Error(`${type} is missing from the fixture`);
    const numbers = await expected.readFloat32(type);
    const view = { name: type, tensor, shape: tensor.shape };
    const ours = await new GgufWeights(source.path, [view], () => source, []).readFloat32(type);
    expect(new Uint32Array(ours.buffer)).toEqual(new Uint32Array(numbers.buffer));
    expect(new Set(numbers).size).toBeGreaterThan(4);
    await source.close();
    await expected.close();
  });

  it("rejects unsupported types and names the supported ones", () => {
    expect(() => getDequantizeFunction("IQ2_XS", "a", "b.gguf")).toThrowError(/IQ2_XS.*Supported: F32.*Q6_K/u);
  });
});
