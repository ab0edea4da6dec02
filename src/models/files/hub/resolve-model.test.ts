import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readdir, readFile, readlink, rm, symlink, writeFile } from "node:fs/promises";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { blobName, FakeHub, type Fault } from "../../../../test/support/fake-hub.js";
import type { DownloadProgress } from "./fetch-into-cache.js";
import type { ModelLocation } from "./model-location.js";
import { resolveModel, resolveFromHub, type ResolveOptions } from "./resolve-model.js";
import type { HubConfig } from "./hub-config.js";

const commit = "0123456789abcdef0123456789abcdef01234567";
const large = Buffer.from(Array.from({ length: 300_000 }, (_, i) => (i * 31 + (i >> 8)) % 251));

const tiny = {
  commit,
  revisions: ["v1", "refs/pr/1"],
  files: {
    ".gitattributes": "x",
    "README.md": "# Tiny",
    "config.json": '{"model_type":"llama"}',
    "generation_config.json": "{}",
    "tokenizer.json": "{}",
    "tokenizer_config.json": "{}",
    "model.safetensors": large,
    "pytorch_model.bin": Buffer.alloc(5000, 1),
    "onnx/model.onnx": Buffer.alloc(5000, 2),
    "original/consolidated.safetensors": Buffer.alloc(5000, 3),
  },
};
const needed = [
  "config.json",
  "generation_config.json",
  "model.safetensors",
  "tokenizer.json",
  "tokenizer_config.json",
];

const shard = (n: number): Buffer => Buffer.alloc(2000, n);
const repositories = {
  "someone/tiny": tiny,
  "someone/sharded": {
    commit,
    files: {
      "config.json": "{}",
      "model.safetensors.index.json": JSON.stringify({
        weight_map: { a: "model-00001-of-00002.safetensors", b: "model-00002-of-00002.safetensors" },
      }),
      "model-00001-of-00002.safetensors": shard(1),
      "model-00002-of-00002.safetensors": shard(2),
      "model.fp32-00001-of-00009.safetensors": shard(3),
    },
  },
  "someone/quants": {
    commit,
    files: {
      "tiny-Q4_K_M.gguf": shard(4),
      "tiny-Q8_0.gguf": shard(5),
      "mmproj-tiny.gguf": shard(6),
      "big/tiny-F16-00001-of-00002.gguf": shard(7),
      "big/tiny-F16-00002-of-00002.gguf": shard(8),
    },
  },
  "someone/one-gguf": { commit, files: { "only.gguf": shard(9), "README.md": "" } },
  "someone/adapter": {
    commit,
    files: { "adapter_config.json": "{}", "adapter_model.safetensors": shard(10), "adapter_model.bin": shard(11) },
  },
  "someone/pickle": { commit, files: { "config.json": "{}", "pytorch_model.bin": shard(12) } },
  "someone/private": { ...tiny, token: "secret" },
  "someone/gated": { ...tiny, gated: true },
  gpt2: tiny,
};

let hub: FakeHub;
let cacheDir = "";
beforeEach(async () => {
  hub = await FakeHub.start(repositories);
  cacheDir = await mkdtemp(join(tmpdir(), "hub-"));
});
afterEach(async () => {
  await hub.stop();
  await rm(cacheDir, { recursive: true });
});

interface Case extends ResolveOptions {
  readonly config?: Partial<HubConfig>;
}

function resolve(id: string, { config, ...options }: Case = {}): Promise<ModelLocation> {
  const base = {
    endpoint: hub.endpoint,
    cacheDir,
    token: undefined,
    offline: false,
    responseTimeoutMs: 2000,
    stallTimeoutMs: 300,
  };
  return resolveFromHub(id, options, { ...base, retryDelayMs: 1, ...config });
}

function fail(fault: Omit<Fault, "times"> & { times?: number }): void {
  hub.faults.push({ times: 1, ...fault });
}

const repo = (id = "someone/tiny"): string => join(cacheDir, `models--${id.replace("/", "--")}`);
const blob = (content: Uint8Array | string): string => join(repo(), "blobs", blobName(content));

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
    const before = hub.downloads.length;
    expect(before).toBe(3);
    await resolve("someone/tiny");
    await resolve("someone/tiny", { revision: "v1" });
    expect(hub.downloads.length).toBe(before);
    expect(await readFile(join(repo(), "refs", "v1"), "utf8")).toBe(commit);
    const requests = hub.requests.length;
    await resolve("someone/tiny", { revision: commit });
    expect(hub.requests.length).toBe(requests);
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
    expect(hub.downloads).toEqual([]);
  });
});

describe("a login", () => {
  it("is sent to the hub and never to the storage", async () => {
    await resolve("someone/private", { config: { token: "secret" } });
    const shown = hub.requests.map(({ server, authorization }) => `${server} ${authorization ?? "none"}`);
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

describe("a bad connection", () => {
  it("that breaks midway is resumed", async () => {
    fail({ path: /storage/u, breakAfter: 100_000, times: 2 });
    await resolve("someone/tiny");
    expect(large.equals(await readFile(blob(large)))).toBe(true);
    const ranges = hub.requests.filter(({ server }) => server === "storage").map(({ range }) => range);
    expect(ranges).toEqual([undefined, "bytes=100000-", "bytes=200000-"]);
  });

  it("that stalls is aborted and retried", async () => {
    fail({ path: /storage/u, stallAfter: 50_000 });
    await resolve("someone/tiny");
    expect(large.equals(await readFile(blob(large)))).toBe(true);
  });

  it("to a server that ignores ranges starts over", async () => {
    fail({ path: /storage/u, breakAfter: 100_000 });
    fail({ path: /storage/u, ignoreRange: true });
    await resolve("someone/tiny");
    expect(large.equals(await readFile(blob(large)))).toBe(true);
  });

  it("to a busy hub is retried", async () => {
    fail({ path: /revision/u, status: 429, headers: { "Retry-After": "0" } });
    fail({ path: /tree/u, status: 503 });
    fail({ path: /config\.json/u, status: 500, times: 3 });
    await resolve("someone/tiny");
    expect(large.equals(await readFile(blob(large)))).toBe(true);
  });

  it("resumes a partial file of an earlier process and discards one that does not match", async () => {
    await mkdir(join(repo(), "blobs"), { recursive: true });
    await writeFile(`${blob(large)}.incomplete`, large.subarray(0, 123_456));
    await resolve("someone/tiny");
    expect(hub.requests.filter(({ server }) => server === "storage").map(({ range }) => range)).toEqual([
      "bytes=123456-",
    ]);
    expect(large.equals(await readFile(blob(large)))).toBe(true);

    await rm(repo(), { recursive: true });
    await mkdir(join(repo(), "blobs"), { recursive: true });
    await writeFile(`${blob(large)}.incomplete`, Buffer.alloc(123_456, 9));
    await resolve("someone/tiny");
    expect(large.equals(await readFile(blob(large)))).toBe(true);
  });

  it("that delivers other bytes leaves no file behind", async () => {
    fail({ path: /storage/u, corrupt: true });
    await expect(resolve("someone/tiny")).rejects.toMatchObject({
      code: "FILE_CORRUPT",
      message: expect.stringContaining("does not have the hash") as string,
    });
    expect(existsSync(blob(large))).toBe(false);
    expect(existsSync(`${blob(large)}.incomplete`)).toBe(false);
    expect(existsSync(join(repo(), "refs", "main"))).toBe(false);
    await resolve("someone/tiny");
    expect(large.equals(await readFile(blob(large)))).toBe(true);
  });

  it("that keeps failing is one error and keeps the partial file", async () => {
    fail({ path: /storage/u, breakAfter: 0, times: 100 });
    await expect(resolve("someone/tiny")).rejects.toMatchObject({
      code: "HUB_UNREACHABLE",
      message: expect.stringMatching(/model\.safetensors of someone\/tiny.*could not be fetched from http/u) as string,
    });
    expect(existsSync(blob(large))).toBe(false);
    expect(await readdir(join(cacheDir, ".locks", "models--someone--tiny"))).toEqual([]);
  });

  it("to a hub with invalid responses is one error", async () => {
    fail({ path: /tree/u, body: "<html>proxy login</html>", times: 9 });
    await expect(resolve("someone/tiny")).rejects.toMatchObject({ code: "HUB_UNREACHABLE" });
    fail({ path: /revision/u, body: '{"sha": 7}', times: 9 });
    await expect(resolve("someone/tiny")).rejects.toThrowError(/names no commit/u);
  });

  it("to a hub whose responses stall is one error or succeeds on retry", async () => {
    fail({ path: /tree/u, stallAfter: 10 });
    await resolve("someone/tiny", { config: { responseTimeoutMs: 100 } });
    fail({ path: /revision/u, stallAfter: 10, times: 9 });
    await rm(repo(), { recursive: true });
    await expect(resolve("someone/tiny", { config: { responseTimeoutMs: 50 } })).rejects.toMatchObject({
      code: "HUB_UNREACHABLE",
    });
  });

  it("to a hub that lists paths outside the cache is rejected", async () => {
    const entry = { type: "file", size: 1, oid: "a".repeat(40), path: "../../evil.json" };
    fail({ path: /tree/u, body: JSON.stringify([entry]) });
    await expect(resolve("someone/tiny")).rejects.toMatchObject({ code: "HUB_UNREACHABLE" });
  });
});

describe("without a network", () => {
  it("a completely cached model is found", async () => {
    const online = await resolve("someone/tiny");
    await resolve("someone/sharded");
    await resolve("someone/quants:F16");
    await hub.stop();
    expect(await resolve("someone/tiny")).toEqual(online);
    expect(await resolve("someone/tiny", { config: { offline: true } })).toEqual(online);
    expect(await resolve("someone/sharded", { config: { offline: true } })).toMatchObject({ kind: "folder" });
    expect(await resolve("someone/quants#F16", { config: { offline: true } })).toMatchObject({ kind: "gguf" });
  });

  it("an uncached or partially cached model is one error", async () => {
    const { path } = await resolve("someone/sharded");
    await rm(join(path, "model-00002-of-00002.safetensors"));
    await hub.stop();
    await expect(resolve("someone/sharded", { config: { offline: true } })).rejects.toMatchObject({
      code: "HUB_OFFLINE",
      message: expect.stringContaining("HF_HUB_OFFLINE") as string,
    });
    await expect(resolve("someone/tiny")).rejects.toMatchObject({ code: "HUB_UNREACHABLE" });
  });
});

describe("the disk", () => {
  it.runIf(existsSync("/dev/full"))("that is full is one clear error, and no file stays", async () => {
    await mkdir(join(repo(), "blobs"), { recursive: true });
    await symlink("/dev/full", `${blob(large)}.incomplete`);
    await expect(resolve("someone/tiny")).rejects.toMatchObject({
      code: "FILE_WRITE_FAILED",
      message: expect.stringContaining("disk is full") as string,
    });
    expect(existsSync(blob(large))).toBe(false);
  });

  it("without a writable cache is one error", async () => {
    await writeFile(join(cacheDir, "file"), "");
    await expect(resolve("someone/tiny", { config: { cacheDir: join(cacheDir, "file") } })).rejects.toMatchObject({
      code: "FILE_WRITE_FAILED",
    });
  });
});

describe("several at once", () => {
  it("download each file once", async () => {
    const locations = await Promise.all(Array.from({ length: 5 }, () => resolve("someone/tiny")));
    expect(new Set(locations.map(({ path }) => path)).size).toBe(1);
    expect(hub.downloads.filter((file) => file === "model.safetensors")).toHaveLength(1);
    expect(large.equals(await readFile(blob(large)))).toBe(true);
  });

  it("take over the lock of a dead process", async () => {
    const lock = join(cacheDir, ".locks", "models--someone--tiny", `${blobName(large)}.llamagym`);
    await mkdir(join(lock, ".."), { recursive: true });
    await writeFile(lock, `999999999 ${hostname()}`);
    await resolve("someone/tiny");
    expect(large.equals(await readFile(blob(large)))).toBe(true);
    expect(existsSync(lock)).toBe(false);
  });
});

describe("a path", () => {
  it("may be a folder, a GGUF file or a GGUF file in a folder", async () => {
    await writeFile(join(cacheDir, "config.json"), "{}");
    await writeFile(join(cacheDir, "a-Q4_0.gguf"), "GGUF");
    await writeFile(join(cacheDir, "b-Q8_0.gguf"), "GGUF");
    await writeFile(join(cacheDir, "weights"), "GGUFx");
    expect(await resolveModel(cacheDir)).toEqual({ kind: "folder", path: cacheDir });
    expect(await resolveModel(join(cacheDir, "weights"))).toEqual({ kind: "gguf", path: join(cacheDir, "weights") });
    expect(await resolveModel(`${cacheDir}:b-Q8_0.gguf`)).toMatchObject({ path: join(cacheDir, "b-Q8_0.gguf") });
    expect(await resolveModel(cacheDir, { file: "Q4_0" })).toMatchObject({ path: join(cacheDir, "a-Q4_0.gguf") });
    expect(hub.requests).toEqual([]);
  });

  it.each([
    ["./nothing/here", {}, "FILE_NOT_FOUND"],
    ["a/b/c", {}, "FILE_NOT_FOUND"],
    ["model.gguf", {}, "FILE_NOT_FOUND"],
    ["CACHE", { file: "Q4_0" }, "FILE_NOT_FOUND"],
    ["CACHE/config.json", {}, "INVALID_ARGUMENT"],
  ])("that is invalid is rejected: %s", async (path, options, code) => {
    await writeFile(join(cacheDir, "config.json"), "{}");
    await expect(resolveModel(path.replace("CACHE", cacheDir), options)).rejects.toMatchObject({ code });
  });
});
