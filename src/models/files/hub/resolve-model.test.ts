import { existsSync } from "node:fs";
import { readdir, readFile, readlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { blobName } from "../../../../test/support/fake-hub.js";
import { commit, HubModels, large, tiny } from "../../../../test/support/hub-models.js";
import type { DownloadProgress } from "./fetch-into-cache.js";
import { resolveModel } from "./resolve-model.js";

const needed = [
  "config.json",
  "generation_config.json",
  "model.safetensors",
  "tokenizer.json",
  "tokenizer_config.json",
];

const models = new HubModels();
const { resolve, repo } = models;

describe("a model on the hub", () => {
  it("is downloaded into the standard cache, only the files needed", async () => {
    const location = await resolve("someone/tiny");
    const snapshot = join(repo(), "snapshots", commit);
    expect(location).toEqual({ kind: "folder", path: snapshot, id: "someone/tiny", revision: commit });
    expect((await readdir(snapshot)).sort()).toEqual(needed);
    expect(large.equals(await readFile(join(snapshot, "model.safetensors")))).toBe(true);
    expect(await readlink(join(snapshot, "model.safetensors"))).toBe(`../../blobs/${blobName(large)}`);
    expect(await readlink(join(snapshot, "config.json"))).toBe(`../../blobs/${blobName(tiny.files["config.json"])}`);
    expect(await readFile(join(repo(), "refs", "main"), "utf8")).toBe(commit);
    // Three of the files are "{}": one blob.
    expect((await readdir(join(repo(), "blobs"))).length).toBe(3);
  });

  it("is not downloaded again", async () => {
    await resolve("someone/tiny");
    const before = models.hub.downloads.length;
    expect(before).toBe(3);
    await resolve("someone/tiny");
    await resolve("someone/tiny", { revision: "v1" });
    expect(models.hub.downloads.length).toBe(before);
    expect(await readFile(join(repo(), "refs", "v1"), "utf8")).toBe(commit);
    const requests = models.hub.requests.length;
    await resolve("someone/tiny", { revision: commit });
    expect(models.hub.requests.length).toBe(requests);
  });

  it("reports each file's progress", async () => {
    const seen: DownloadProgress[] = [];
    await resolve("someone/tiny", { onProgress: (progress) => seen.push(progress) });
    const weights = seen.filter(({ file }) => file === "model.safetensors");
    expect(weights[0]).toEqual({ file: "model.safetensors", loadedBytes: 0, totalBytes: large.length });
    expect(weights.at(-1)).toEqual({ file: "model.safetensors", loadedBytes: large.length, totalBytes: large.length });
  });

  it("includes the shards of its index", async () => {
    const { path } = await resolve("someone/sharded");
    expect((await readdir(path)).sort()).toEqual([
      "config.json",
      "model-00001-of-00002.safetensors",
      "model-00002-of-00002.safetensors",
      "model.safetensors.index.json",
    ]);
  });

  it("is one GGUF file by name, by quantization or because it is the only one", async () => {
    const quants = join(repo("someone/quants"), "snapshots", commit);
    expect(await resolve("someone/quants:tiny-Q8_0.gguf")).toMatchObject({
      kind: "gguf",
      path: join(quants, "tiny-Q8_0.gguf"),
    });
    expect((await resolve("someone/quants#q4_k_m")).path).toBe(join(quants, "tiny-Q4_K_M.gguf"));
    expect((await resolve("someone/quants", { file: "Q8_0" })).path).toBe(join(quants, "tiny-Q8_0.gguf"));
    expect((await resolve("someone/one-gguf")).path).toMatch(/only\.gguf$/u);
    expect((await resolve("someone/quants:F16")).path).toBe(join(quants, "big", "tiny-F16-00001-of-00002.gguf"));
    expect(await readdir(join(quants, "big"))).toHaveLength(2);
    await expect(resolve("someone/quants")).rejects.toMatchObject({
      code: "INVALID_ARGUMENT",
      message: expect.stringContaining("tiny-Q4_K_M.gguf, tiny-Q8_0.gguf") as string,
    });
    await expect(resolve("someone/quants#Q2_K")).rejects.toMatchObject({ code: "HUB_NOT_FOUND" });
  });

  it("may be an adapter, and an id without an owner", async () => {
    const { path } = await resolve("someone/adapter");
    expect((await readdir(path)).sort()).toEqual(["adapter_config.json", "adapter_model.safetensors"]);
    expect(await resolve("gpt2")).toMatchObject({ kind: "folder", id: "gpt2" });
  });

  it("without safetensors or GGUF is rejected before any download", async () => {
    await expect(resolve("someone/pickle")).rejects.toMatchObject({ code: "FORMAT_UNSUPPORTED" });
    expect(models.hub.downloads).toEqual([]);
  });
});

describe("a login", () => {
  it("is sent to the hub and never to the storage", async () => {
    await resolve("someone/private", { config: { token: "secret" } });
    const shown = models.hub.requests.map(({ server, authorization }) => `${server} ${authorization ?? "none"}`);
    expect(new Set(shown)).toEqual(new Set(["hub Bearer secret", "storage none"]));
  });

  it.each([
    ["no token for a private model", "someone/private", undefined, "HUB_NOT_FOUND", /HF_TOKEN/u],
    ["a wrong token", "someone/private", "wrong", "HUB_UNAUTHORIZED", /token was refused/u],
    [
      "conditions that were not accepted",
      "someone/gated",
      "secret",
      "HUB_UNAUTHORIZED",
      /Accept the model's conditions at/u,
    ],
    ["a model that does not exist", "someone/none", undefined, "HUB_NOT_FOUND", /no model "someone\/none"/u],
  ])("fails clearly: %s", async (_, id, token, code, message) => {
    await expect(resolve(id, { config: { token } })).rejects.toMatchObject({
      code,
      message: expect.stringMatching(message) as string,
    });
    expect(existsSync(repo(id))).toBe(false);
  });

  it("fails clearly: a revision that does not exist", async () => {
    await expect(resolve("someone/tiny", { revision: "v9" })).rejects.toMatchObject({
      code: "HUB_NOT_FOUND",
      message: expect.stringContaining('no revision "v9"') as string,
    });
  });
});

describe("a path", () => {
  it("may be a folder, a GGUF file or a GGUF file in a folder", async () => {
    await writeFile(join(models.cacheDir, "config.json"), "{}");
    await writeFile(join(models.cacheDir, "a-Q4_0.gguf"), "GGUF");
    await writeFile(join(models.cacheDir, "b-Q8_0.gguf"), "GGUF");
    await writeFile(join(models.cacheDir, "weights"), "GGUFx");
    expect(await resolveModel(models.cacheDir)).toEqual({ kind: "folder", path: models.cacheDir });
    expect(await resolveModel(join(models.cacheDir, "weights"))).toEqual({
      kind: "gguf",
      path: join(models.cacheDir, "weights"),
    });
    expect(await resolveModel(`${models.cacheDir}:b-Q8_0.gguf`)).toMatchObject({
      path: join(models.cacheDir, "b-Q8_0.gguf"),
    });
    expect(await resolveModel(models.cacheDir, { file: "Q4_0" })).toMatchObject({
      path: join(models.cacheDir, "a-Q4_0.gguf"),
    });
    expect(models.hub.requests).toEqual([]);
  });

  it.each([
    ["./nothing/here", {}, "FILE_NOT_FOUND"],
    ["a/b/c", {}, "FILE_NOT_FOUND"],
    ["model.gguf", {}, "FILE_NOT_FOUND"],
    ["CACHE", { file: "Q4_0" }, "FILE_NOT_FOUND"],
    ["CACHE/config.json", {}, "INVALID_ARGUMENT"],
  ])("that is invalid is rejected: %s", async (path, options, code) => {
    await writeFile(join(models.cacheDir, "config.json"), "{}");
    await expect(resolveModel(path.replace("CACHE", models.cacheDir), options)).rejects.toMatchObject({ code });
  });
});
