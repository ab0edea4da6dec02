import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { openWeightFolder } from "./open-weight-folder.js";
import { SafetensorsFile } from "./safetensors-file.js";
import { saveWeightFolder } from "./save-weight-folder.js";
import { writeSafetensors, type TensorToSave } from "./write-safetensors.js";

let folder = "";
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "weights-"));
});
afterEach(async () => {
  await rm(folder, { recursive: true });
});

const numbers = (count: number, from = 0): Float32Array => Float32Array.from({ length: count }, (_, i) => from + i / 8);

const tensors: readonly TensorToSave[] = [
  { name: "c", shape: [2, 3], data: numbers(6) },
  { name: "a.half", shape: [3], dtype: "F16", data: numbers(3, -1) },
  { name: "b", shape: [], data: async () => numbers(1, 7) },
  { name: "ids", shape: [2], dtype: "I32", data: Int32Array.of(-5, 9) },
  { name: "wide", shape: [600_000], dtype: "BF16", data: () => new Float32Array(600_000).fill(1.5) },
];

describe("writeSafetensors", () => {
  it("writes aligned tensors with PyTorch's metadata that read back equal", async () => {
    const path = join(folder, "deep", "model.safetensors");
    await writeSafetensors(path, tensors);
    const file = await SafetensorsFile.open(path);
    expect(file.metadata).toEqual({ format: "pt" });
    expect(Array.from(await file.readFloat32("c"))).toEqual(Array.from(numbers(6)));
    expect(Array.from(await file.readFloat32("a.half"))).toEqual([-1, -0.875, -0.75]);
    expect(Array.from(await file.readFloat32("b"))).toEqual([7]);
    expect(Array.from(await file.readFloat32("ids"))).toEqual([-5, 9]);
    expect((await file.readFloat32("wide")).every((value) => value === 1.5)).toBe(true);
    expect(file.entries.get("b")?.shape).toEqual([]);
    const first = Math.min(...[...file.entries.values()].map((entry) => entry.offset));
    expect(first % 8).toBe(0);
    await file.close();
    expect(await readdir(join(folder, "deep"))).toEqual(["model.safetensors"]);
  });

  it("leaves the old file and no partial one when it fails", async () => {
    const path = join(folder, "model.safetensors");
    await writeFile(path, "old");
    const failing = { name: "x", shape: [2], data: () => Promise.reject(new Error("gone")) };
    await expect(writeSafetensors(path, [failing])).rejects.toMatchObject({ code: "FILE_WRITE_FAILED" });
    await expect(writeSafetensors(path, [{ name: "x", shape: [2], data: numbers(3) }])).rejects.toMatchObject({
      code: "SHAPE_MISMATCH",
    });
    expect(await readFile(path, "utf8")).toBe("old");
    expect(await readdir(folder)).toEqual(["model.safetensors"]);
  });

  it("rejects duplicate names and data of the wrong type", async () => {
    const path = join(folder, "x.safetensors");
    const one = { name: "x", shape: [1], data: numbers(1) };
    await expect(writeSafetensors(path, [one, one])).rejects.toMatchObject({ code: "INVALID_ARGUMENT" });
    await expect(writeSafetensors(path, [{ ...one, dtype: "I32" }])).rejects.toMatchObject({
      code: "INVALID_ARGUMENT",
    });
  });

  it("reports an unwritable path", async () => {
    await writeFile(join(folder, "file"), "");
    await expect(writeSafetensors(join(folder, "file", "x.safetensors"), tensors)).rejects.toMatchObject({
      code: "FILE_WRITE_FAILED",
    });
  });
});

describe("saveWeightFolder", () => {
  it("writes one file, or shards with an index, and removes files of an earlier save", async () => {
    const small = tensors.filter(({ name }) => name !== "wide");
    await saveWeightFolder(folder, small, { maxShardBytes: 24 });
    expect((await readdir(folder)).sort()).toEqual([
      "model-00001-of-00002.safetensors",
      "model-00002-of-00002.safetensors",
      "model.safetensors.index.json",
    ]);
    const index: unknown = JSON.parse(await readFile(join(folder, "model.safetensors.index.json"), "utf8"));
    expect(index).toEqual({
      metadata: { total_parameters: 12, total_size: 42 },
      weight_map: {
        "a.half": "model-00002-of-00002.safetensors",
        b: "model-00002-of-00002.safetensors",
        c: "model-00001-of-00002.safetensors",
        ids: "model-00002-of-00002.safetensors",
      },
    });
    const sharded = await openWeightFolder(folder);
    expect(sharded.entries.size).toBe(4);
    expect(Array.from(await sharded.readFloat32("c"))).toEqual(Array.from(numbers(6)));
    expect(sharded.entries.get("ids")?.dtype).toBe("I32");
    await sharded.close();

    await saveWeightFolder(folder, small);
    expect(await readdir(folder)).toEqual(["model.safetensors"]);
    const single = await openWeightFolder(folder);
    expect(Array.from(await single.readFloat32("b"))).toEqual([7]);
    await single.close();
  });
});

describe("saveWeightFolder that fails", () => {
  it("leaves the earlier save unchanged", async () => {
    const [first] = tensors;
    await saveWeightFolder(folder, [first]);
    const failing = { name: "z", shape: [9], data: () => Promise.reject(new Error("gone")) };
    await expect(saveWeightFolder(folder, [first, failing], { maxShardBytes: 30 })).rejects.toMatchObject({
      code: "FILE_WRITE_FAILED",
    });
    expect(await readdir(folder)).toEqual(["model.safetensors"]);
    await expect(saveWeightFolder(folder, [first], { maxShardBytes: 0 })).rejects.toMatchObject({
      code: "INVALID_ARGUMENT",
    });
  });
});

describe("openWeightFolder", () => {
  it("reports missing weights and how to convert other formats", async () => {
    await expect(openWeightFolder(folder)).rejects.toMatchObject({ code: "FILE_NOT_FOUND" });
    await writeFile(join(folder, "pytorch_model.bin"), "");
    await expect(openWeightFolder(folder)).rejects.toMatchObject({ code: "FORMAT_UNSUPPORTED" });
    await expect(openWeightFolder(join(folder, "none"))).rejects.toMatchObject({ code: "FILE_NOT_FOUND" });
  });

  it("reads one file rather than the index of an earlier save", async () => {
    await writeFile(
      join(folder, "model.safetensors.index.json"),
      JSON.stringify({ weight_map: { a: "x.safetensors" } }),
    );
    await writeSafetensors(join(folder, "model.safetensors"), [{ name: "b", shape: [1], data: numbers(1) }]);
    const weights = await openWeightFolder(folder);
    expect([...weights.entries.keys()]).toEqual(["b"]);
    await weights.close();
  });

  it.each([
    ["a shard outside of the folder", { weight_map: { a: "../x.safetensors" } }, "FILE_CORRUPT"],
    ["a shard that is not there", { weight_map: { a: "x.safetensors" } }, "FILE_NOT_FOUND"],
    ["no map", { metadata: {} }, "FILE_CORRUPT"],
    ["a tensor that its shard lacks", { weight_map: { a: "model-1.safetensors" } }, "FILE_CORRUPT"],
  ])("refuses an index with %s", async (_, index, code) => {
    await writeSafetensors(join(folder, "model-1.safetensors"), [{ name: "b", shape: [1], data: numbers(1) }]);
    await writeFile(join(folder, "model.safetensors.index.json"), JSON.stringify(index));
    await expect(openWeightFolder(folder)).rejects.toMatchObject({ code });
  });
});
