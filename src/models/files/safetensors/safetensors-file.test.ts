import { mkdtemp, open, rm, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { SafetensorsFile } from "./safetensors-file.js";

const fixtures = new URL("../../../../test/fixtures/files/", import.meta.url).pathname;
let folder = "";

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "safetensors-"));
});
afterEach(async () => {
  await rm(folder, { recursive: true });
});

/** A file with the given header and as many bytes of data. */
async function writeFixture(header: unknown, dataBytes: number, length?: bigint): Promise<string> {
  const json = new TextEncoder().encode(typeof header === "string" ? header : JSON.stringify(header));
  const bytes = new Uint8Array(8 + json.length + dataBytes);
  new DataView(bytes.buffer).setBigUint64(0, length ?? BigInt(json.length), true);
  bytes.set(json, 8);
  const path = join(folder, "made.safetensors");
  await writeFile(path, bytes);
  return path;
}

const tensor = (begin: number, end: number, shape: unknown = [(end - begin) / 4], dtype: unknown = "F32"): unknown => ({
  dtype,
  shape,
  data_offsets: [begin, end],
});

describe("a safetensors file", () => {
  it("converts every type to float32 as NumPy does", async () => {
    const file = await SafetensorsFile.open(join(fixtures, "dtypes.safetensors"));
    const expected = await SafetensorsFile.open(join(fixtures, "dtypes.expected.safetensors"));
    expect(file.metadata).toEqual({ format: "pt" });
    for (const [name, entry] of expected.entries) {
      expect(file.entries.get(name)?.shape).toEqual(entry.shape);
      expect({ name, numbers: await file.readFloat32(name) }).toEqual({
        name,
        numbers: await expected.readFloat32(name),
      });
    }
    expect(file.entries.size).toBe(expected.entries.size);
    await file.close();
    await expected.close();
  });

  it("reads into a part of shared memory", async () => {
    const file = await SafetensorsFile.open(join(fixtures, "dtypes.safetensors"));
    const memory = new Float32Array(new SharedArrayBuffer(4 * 10));
    const target = memory.subarray(2, 9);
    await file.readFloat32("F16", target);
    expect(Array.from(target)).toEqual(Array.from(await file.readFloat32("F16")));
    expect(memory[0] + memory[1] + memory[9]).toBe(0);
    await file.close();
  });

  it("reads tensors of many chunks concurrently", async () => {
    const count = 700_001;
    const halves = Uint16Array.from({ length: count }, (_, i) => (i * 7919) % 0x7c00);
    const path = await writeFixture({ a: tensor(0, 2 * count, [count], "BF16") }, 2 * count);
    const file = await SafetensorsFile.open(path);
    const entry = file.entries.get("a");
    const handle = await open(path, "r+");
    await handle.write(new Uint8Array(halves.buffer), 0, halves.byteLength, entry?.offset);
    await handle.close();
    const expected = Uint8Array.from(Buffer.from(Uint32Array.from(halves, (half) => half << 16).buffer));
    for (const ours of await Promise.all([file.readFloat32("a"), file.readFloat32("a")])) {
      expect(Buffer.compare(new Uint8Array(ours.buffer), expected)).toBe(0);
    }
    await file.close();
  });

  it("rejects an unsupported type only when it is read", async () => {
    const file = await SafetensorsFile.open(await writeFixture({ a: tensor(0, 4, [4], "F8_E4M3") }, 4));
    await expect(file.readFloat32("a")).rejects.toMatchObject({ code: "FORMAT_UNSUPPORTED" });
    expect(await file.readBytes("a")).toEqual(new Uint8Array(4));
    await file.close();
  });

  it("reports a missing file and a folder", async () => {
    await expect(SafetensorsFile.open(join(folder, "none"))).rejects.toMatchObject({ code: "FILE_NOT_FOUND" });
    await expect(SafetensorsFile.open(folder)).rejects.toMatchObject({ code: "FILE_READ_FAILED" });
  });
});

describe("a damaged safetensors file", () => {
  const cases: readonly (readonly [string, unknown, number, RegExp])[] = [
    ["no JSON", "{nonsense", 0, /not valid JSON/u],
    ["no object", "[]", 0, /not a JSON object/u],
    ["an entry that is no object", { a: 1 }, 0, /"a" is not an object/u],
    ["metadata that are not strings", { __metadata__: { a: 1 } }, 0, /__metadata__/u],
    ["no dtype", { a: { shape: [], data_offsets: [0, 4] } }, 4, /"a" has no dtype/u],
    ["a negative size", { a: tensor(0, 4, [-1]) }, 4, /no valid shape/u],
    ["a fractional size", { a: tensor(0, 4, [0.5]) }, 4, /no valid shape/u],
    ["sizes whose product is too large", { a: tensor(0, 4, [2 ** 40, 2 ** 40]) }, 4, /too large/u],
    ["no offsets", { a: { dtype: "F32", shape: [1] } }, 4, /data_offsets/u],
    ["offsets outside of the file", { a: tensor(0, 400) }, 4, /outside the file/u],
    ["offsets in the wrong order", { a: tensor(8, 4, [1]) }, 8, /outside/u],
    ["too few bytes for the shape", { a: tensor(0, 4, [2]) }, 4, /has 4 bytes, not 8/u],
    ["an overlap", { a: tensor(0, 8), b: tensor(4, 12) }, 12, /"b" overlaps "a"/u],
    ["a gap", { a: tensor(0, 4), b: tensor(8, 12) }, 12, /gap of 4 bytes before tensor "b"/u],
    ["bytes after the last tensor", { a: tensor(0, 4) }, 9, /tensors end at byte/u],
    [
      "a repeated name",
      `{"a":${JSON.stringify(tensor(0, 4))}, "\\u0061" :${JSON.stringify(tensor(0, 4))}}`,
      4,
      /"a" twice/u,
    ],
  ];

  it.each(cases)("with %s is rejected", async (_, header, dataBytes, message) => {
    const path = await writeFixture(header, dataBytes);
    const error = await SafetensorsFile.open(path).catch((reason: unknown) => reason);
    expect(error).toMatchObject({ code: "FILE_CORRUPT", message: expect.stringMatching(message) as string });
    expect(String(error)).toContain(path);
  });

  it("with a header longer than the file, or none, is rejected", async () => {
    for (const length of [100n, 2n ** 40n, 2n ** 64n - 1n]) {
      const path = await writeFixture({}, 0, length);
      await expect(SafetensorsFile.open(path)).rejects.toMatchObject({ code: "FILE_CORRUPT" });
    }
    await writeFile(join(folder, "short"), "abc");
    await expect(SafetensorsFile.open(join(folder, "short"))).rejects.toThrowError(/3 bytes/u);
  });

  it("with an unknown type is rejected", async () => {
    const path = await writeFixture({ a: tensor(0, 4, [1], "F99") }, 4);
    await expect(SafetensorsFile.open(path)).rejects.toMatchObject({ code: "FORMAT_UNSUPPORTED" });
  });

  it("that shrank after it was opened is rejected on reading", async () => {
    const path = await writeFixture({ a: tensor(0, 40) }, 40);
    const file = await SafetensorsFile.open(path);
    await truncate(path, 60);
    await expect(file.readFloat32("a")).rejects.toMatchObject({ code: "FILE_CORRUPT" });
    await file.close();
  });
});
