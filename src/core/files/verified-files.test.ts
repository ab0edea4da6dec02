import { randomUUID } from "node:crypto";
import { mkdir, mkdtemp, readFile, rm, stat, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { hasHash, MIN_REMEMBERED_BYTES } from "./verified-files.js";

let folder: string;
let path: string;
const hashFile = vi.fn<(path: string) => Promise<string>>();
const records = () => join(folder, "cache", "verified.json");

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "verified-"));
  path = join(folder, "model.safetensors");
  vi.stubEnv("LLAMAGYM_CACHE", join(folder, "cache"));
  hashFile.mockReset().mockResolvedValue("right");
  await writeFile(path, Buffer.alloc(MIN_REMEMBERED_BYTES));
  // Files that have just changed are not remembered.
  const { ctimeMs } = await stat(path);
  vi.spyOn(Date, "now").mockReturnValue(ctimeMs + 10_000);
});
afterEach(async () => {
  vi.restoreAllMocks();
  vi.unstubAllEnvs();
  await rm(folder, { recursive: true });
});

const check = (expected = "right") => hasHash(path, expected, hashFile);

describe("a verified file", () => {
  it("is hashed once, and again after each change, also with the same size and time", async () => {
    expect(await check()).toBe(true);
    expect(await check()).toBe(true);
    expect(hashFile).toHaveBeenCalledTimes(1);
    const { atime, mtime } = await stat(path);
    await writeFile(path, Buffer.alloc(MIN_REMEMBERED_BYTES, 1));
    await utimes(path, atime, mtime);
    hashFile.mockResolvedValue("wrong");
    expect(await check()).toBe(false);
    expect(await check("wrong")).toBe(true);
    expect(hashFile).toHaveBeenCalledTimes(2);
  });

  it("is hashed for every other hash that is expected of it", async () => {
    await check();
    expect(await check("other")).toBe(false);
    expect(hashFile).toHaveBeenCalledTimes(2);
  });

  it("is not remembered if it is small, has just changed, or changes while it is hashed", async () => {
    const small = join(folder, "small");
    await writeFile(small, "x");
    await hasHash(small, "right", hashFile);
    hashFile.mockImplementationOnce(async () => {
      await writeFile(path, Buffer.alloc(MIN_REMEMBERED_BYTES, 2));
      return "right";
    });
    await check();
    vi.spyOn(Date, "now").mockReturnValue((await stat(path)).ctimeMs);
    await check();
    await expect(readFile(records())).rejects.toMatchObject({ code: "ENOENT" });
  });

  it.each(["", "[]", '{"/a": {"size": "large"}}', "\0".repeat(100), "{"])(
    "is hashed again if the records are %j",
    async (content) => {
      await mkdir(join(folder, "cache"));
      await writeFile(records(), content);
      expect(await check()).toBe(true);
      expect(hashFile).toHaveBeenCalledTimes(1);
      expect(await check()).toBe(true);
      expect(hashFile).toHaveBeenCalledTimes(1);
    },
  );

  it("is hashed again where the cache folder cannot be written", async () => {
    vi.stubEnv("LLAMAGYM_CACHE", join(path, "below-a-file"));
    expect([await check(), await check()]).toEqual([true, true]);
    expect(hashFile).toHaveBeenCalledTimes(2);
  });

  it("is among at most 1,000 records, the newest of which stay", async () => {
    const known = Array.from(
      { length: 1200 },
      () => [`/${randomUUID()}`, { size: 1, changedMs: 1, hash: "a" }] as const,
    );
    await mkdir(join(folder, "cache"));
    await writeFile(records(), JSON.stringify(Object.fromEntries(known)));
    await check();
    const names = Object.keys(JSON.parse(await readFile(records(), "utf8")) as object);
    expect(names).toHaveLength(1000);
    expect([names.at(-1), names[0]]).toEqual([path, known[201][0]]);
  });
});
