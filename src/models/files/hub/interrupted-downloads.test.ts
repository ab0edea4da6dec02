import { existsSync } from "node:fs";
import { mkdir, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { blobName } from "../../../../test/support/fake-hub.js";
import { HubModels, large } from "../../../../test/support/hub-models.js";
import { getProcessIdentity } from "../../../core/files/process-identity.js";

const models = new HubModels();
const { resolve, fail, repo, blob } = models;

describe("a bad connection", () => {
  it("that breaks midway is resumed", async () => {
    fail({ path: /storage/u, breakAfter: 100_000, times: 2 });
    await resolve("someone/tiny");
    expect(large.equals(await readFile(blob(large)))).toBe(true);
    const ranges = models.hub.requests.filter(({ server }) => server === "storage").map(({ range }) => range);
    expect(ranges).toEqual([undefined, "bytes=100000-", "bytes=200000-"]);
  });

  it("that stalls is aborted and retried", async () => {
    fail({ path: /storage/u, stallAfter: 50_000 });
    await resolve("someone/tiny", { config: { stallTimeoutMs: 1000 } });
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
    expect(models.hub.requests.filter(({ server }) => server === "storage").map(({ range }) => range)).toEqual([
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
    expect(await readdir(join(models.cacheDir, ".locks", "models--someone--tiny"))).toEqual([]);
  });

  it("to a hub with invalid responses is one error", async () => {
    fail({ path: /tree/u, body: "<html>proxy login</html>", times: 9 });
    await expect(resolve("someone/tiny")).rejects.toMatchObject({ code: "HUB_UNREACHABLE" });
    fail({ path: /revision/u, body: '{"sha": 7}', times: 9 });
    await expect(resolve("someone/tiny")).rejects.toThrowError(/names no commit/u);
  });

  it("to a hub whose responses stall is one error or succeeds on retry", async () => {
    fail({ path: /tree/u, stallAfter: 10 });
    await resolve("someone/tiny", { config: { responseTimeoutMs: 1000 } });
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
    await models.hub.stop();
    expect(await resolve("someone/tiny")).toEqual(online);
    expect(await resolve("someone/tiny", { config: { offline: true } })).toEqual(online);
    expect(await resolve("someone/sharded", { config: { offline: true } })).toMatchObject({ kind: "folder" });
    expect(await resolve("someone/quants#F16", { config: { offline: true } })).toMatchObject({ kind: "gguf" });
  });

  it("an uncached or partially cached model is one error", async () => {
    const { path } = await resolve("someone/sharded");
    await rm(join(path, "model-00002-of-00002.safetensors"));
    await models.hub.stop();
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
    await writeFile(join(models.cacheDir, "file"), "");
    await expect(
      resolve("someone/tiny", { config: { cacheDir: join(models.cacheDir, "file") } }),
    ).rejects.toMatchObject({
      code: "FILE_WRITE_FAILED",
    });
  });
});

describe("several at once", () => {
  it("download each file once", async () => {
    const locations = await Promise.all(Array.from({ length: 5 }, () => resolve("someone/tiny")));
    expect(new Set(locations.map(({ path }) => path)).size).toBe(1);
    expect(models.hub.downloads.filter((file) => file === "model.safetensors")).toHaveLength(1);
    expect(large.equals(await readFile(blob(large)))).toBe(true);
  });

  it("take over the lock of a dead process", async () => {
    const lock = join(models.cacheDir, ".locks", "models--someone--tiny", `${blobName(large)}.llamagym`);
    await mkdir(join(lock, ".."), { recursive: true });
    const owner = { token: crypto.randomUUID(), ...getProcessIdentity(), since: new Date().toISOString() };
    await writeFile(lock, JSON.stringify({ ...owner, pid: 999999999 }));
    await resolve("someone/tiny");
    expect(large.equals(await readFile(blob(large)))).toBe(true);
    expect(existsSync(lock)).toBe(false);
  });
});
