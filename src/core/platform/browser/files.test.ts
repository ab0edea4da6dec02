import { createHash, randomBytes } from "node:crypto";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { mkdtempSync, rmSync } from "node:fs";
import { gunzipSync } from "node:zlib";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as fc from "fast-check";
import { afterAll, describe, expect, it } from "vitest";
import { nodeFileSystem } from "../node/files.js";
import type { FileSystem } from "../ports.js";
import { MemoryFileSystem } from "./files.js";

const root = mkdtempSync(join(tmpdir(), "files-"));
afterAll(() => rmSync(root, { recursive: true }));

type Step = readonly [operation: keyof typeof operations, a: string, b: string, bytes: Uint8Array, position: number];

const text = (bytes: Uint8Array) => Buffer.from(bytes).toString("hex");

/** What a file system does, with a result that can be compared. */
const operations = {
  exists: async (fs: FileSystem, a: string) => [await fs.exists(a), fs.existsSync(a)],
  stat: async (fs: FileSystem, a: string) => {
    const { isFile, isFolder, size } = await fs.stat(a);
    return { isFile, isFolder, size: isFile ? size : 0 };
  },
  list: async (fs: FileSystem, a: string) => (await fs.list(a)).sort(),
  listAll: async (fs: FileSystem, a: string) => (await fs.list(a, { recursive: true })).sort(),
  read: async (fs: FileSystem, a: string) => text(await fs.readBytes(a)),
  readSync: async (fs: FileSystem, a: string) => text(fs.readBytesSync(a)),
  lines: async (fs: FileSystem, a: string) => {
    const lines: string[] = [];
    for await (const line of fs.readLines(a)) lines.push(line);
    return lines.length;
  },
  create: async (fs: FileSystem, a: string, _: string, bytes: Uint8Array) => {
    const file = await fs.open(a, "create");
    await file.write(bytes);
    await file.write(bytes);
    await file.close();
  },
  update: async (fs: FileSystem, a: string, _: string, bytes: Uint8Array, position: number) => {
    const file = await fs.open(a, "update");
    await file.write(bytes, position);
    const target = new Uint8Array(8);
    const count = await file.read(target, position);
    await file.close();
    return [count, text(target)];
  },
  truncate: async (fs: FileSystem, a: string, _: string, __: Uint8Array, position: number) => {
    const file = await fs.open(a, "update");
    await file.truncate(position);
    const size = await file.size();
    await file.close();
    return size;
  },
  append: async (fs: FileSystem, a: string, _: string, bytes: Uint8Array) => {
    const file = fs.openAppend(a, "append");
    file.append(bytes);
    const before = file.isLinked();
    await fs.remove(a);
    const after = file.isLinked();
    file.close();
    return [before, after];
  },
  folder: (fs: FileSystem, a: string) => fs.makeFolder(a),
  rename: (fs: FileSystem, a: string, b: string) => fs.rename(a, b),
  copy: async (fs: FileSystem, a: string, b: string) => {
    // Node removes the target when it cannot copy a folder.
    if ((await fs.stat(a)).isFolder) throw new Error("a folder");
    await fs.copy(a, b);
  },
  // Node fails below a file; no one else needs to.
  remove: (fs: FileSystem, a: string) => fs.remove(a).catch(() => {}),
  removeEmpty: (fs: FileSystem, a: string) => fs.removeEmptyFolder(a),
} as const;

const NAMES = ["x", "y", "x/z", "y/z", "x/z/w"];
const step = fc.tuple(
  fc.constantFrom(...(Object.keys(operations) as (keyof typeof operations)[])),
  fc.constantFrom(...NAMES),
  fc.constantFrom(...NAMES),
  fc.uint8Array({ maxLength: 6 }),
  fc.nat({ max: 9 }),
);

/** The result of a step, or that it failed. */
async function tryStep(fs: FileSystem, folder: string, [operation, a, b, bytes, position]: Step): Promise<unknown> {
  try {
    return (await operations[operation](fs, join(folder, a), join(folder, b), bytes, position)) ?? "done";
  } catch {
    return "error";
  }
}

describe("the memory of a page", () => {
  it("behaves as a disk does", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 12 }), async (steps) => {
        const memory = new MemoryFileSystem();
        const folder = mkdtempSync(join(root, "run-"));
        await memory.makeFolder(folder);
        for (const each of steps)
          expect([each[0], await tryStep(memory, folder, each)]).toEqual([
            each[0],
            await tryStep(nodeFileSystem, folder, each),
          ]);
      }),
      { numRuns: 200 },
    );
  });

  it("names missing files by code and path", async () => {
    const memory = new MemoryFileSystem();
    await expect(memory.readBytes("/a/b")).rejects.toMatchObject({
      code: "ENOENT",
      message: expect.stringContaining("/a/b"),
    });
  });

  it("fetches a file of the package when it is first read", async () => {
    let requests = 0;
    const server = createServer((_, response) => response.end(`answer ${++requests}`)).listen(0);
    const { port } = server.address() as AddressInfo;
    const memory = new MemoryFileSystem({ "/llamagym/config.json": new URL(`http://127.0.0.1:${port}/`) });
    expect(await memory.list("/llamagym")).toEqual(["config.json"]);
    expect(requests).toBe(0);
    expect(await memory.stat("/llamagym/config.json")).toMatchObject({ isFile: true, size: 8 });
    expect(await memory.readText("/llamagym/config.json")).toBe("answer 1");
    server.close();
  });
});

describe("the platform of a browser", () => {
  it("hashes and compresses as Node does", async () => {
    const platform = await import("./index.js");
    const bytes = randomBytes(1000);
    for (const algorithm of ["sha1", "sha256"] as const) {
      const running = platform.createHash(algorithm).update(bytes);
      const copy = running.copy().update("é");
      expect(running.hex()).toBe(createHash(algorithm).update(bytes).digest("hex"));
      expect(copy.hex()).toBe(createHash(algorithm).update(bytes).update("é").digest("hex"));
    }
    expect(gunzipSync(await platform.gzip("wörter")).toString()).toBe("wörter");
  });
});
