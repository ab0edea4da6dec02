import { describe, expect, it } from "vitest";
import { bfloat16ToFloat32, float16ToFloat32, float32ToBfloat16, float32ToFloat16 } from "./float16.js";
import { SafetensorsFile } from "./safetensors/index.js";

const fixture = new URL("../../../test/fixtures/files/rounding.safetensors", import.meta.url).pathname;
const patterns = Uint16Array.from({ length: 65_536 }, (_, i) => i);

/** The number of an IEEE binary16 pattern, by the definition of the format. */
function halfByDefinition(bits: number): number {
  const sign = bits >> 15 === 1 ? -1 : 1;
  const exponent = (bits >> 10) & 31;
  const fraction = bits & 1023;
  if (exponent === 31) return fraction === 0 ? sign * Infinity : NaN;
  return exponent === 0 ? sign * fraction * 2 ** -24 : sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
}

describe("16-bit numbers", () => {
  it("widens every binary16 pattern by the definition of the format", () => {
    const ours = new Float32Array(65_536);
    float16ToFloat32(patterns, ours);
    expect(ours).toEqual(Float32Array.from(patterns, halfByDefinition));
  });

  it("rounds every widened pattern back to itself", () => {
    const floats = new Float32Array(65_536);
    const back = new Uint16Array(65_536);
    float16ToFloat32(patterns, floats);
    float32ToFloat16(floats, back);
    const notNaN = patterns.filter((_, i) => !Number.isNaN(floats[i]));
    expect(notNaN.filter((i) => back[i] !== i)).toEqual(new Uint16Array(0));
    bfloat16ToFloat32(patterns, floats);
    float32ToBfloat16(floats, back);
    expect(patterns.filter((i) => !Number.isNaN(floats[i]) && back[i] !== i)).toEqual(new Uint16Array(0));
  });

  it("rounds as NumPy does: ties to even, subnormals, overflow", async () => {
    const file = await SafetensorsFile.open(fixture);
    const values = await file.readFloat32("values");
    const ours = new Uint16Array(values.length);
    float32ToFloat16(values, ours);
    expect(new Uint8Array(ours.buffer)).toEqual(await file.readBytes("F16"));
    float32ToBfloat16(values, ours);
    expect(new Uint8Array(ours.buffer)).toEqual(await file.readBytes("BF16"));
    await file.close();
  });

  it("converts NaN to NaN", () => {
    const nan = new Float32Array(Uint32Array.of(0x7f800001, 0xffffffff, 0x7fc00000).buffer);
    const bits = new Uint16Array(3);
    const back = new Float32Array(3);
    float32ToFloat16(nan, bits);
    float16ToFloat32(bits, back);
    expect(Array.from(back)).toEqual([NaN, NaN, NaN]);
    float32ToBfloat16(nan, bits);
    bfloat16ToFloat32(bits, back);
    expect(Array.from(back)).toEqual([NaN, NaN, NaN]);
  });
});
