import { mkdir, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { removeFolder } from "./remove-folder.js";

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "llamagym-remove-"));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

it("removes a folder and its content, and accepts one that is missing", async () => {
  await mkdir(join(folder, "run", "inner"), { recursive: true });
  await writeFile(join(folder, "run", "inner", "file"), "x");
  await removeFolder(join(folder, "run"));
  await removeFolder(join(folder, "run"));
  expect(await readdir(folder)).toEqual([]);
});

it("names a path that cannot be removed", async () => {
  const path = join(folder, "file", "run");
  await writeFile(join(folder, "file"), "x");
  await expect(removeFolder(path)).rejects.toMatchObject({
    code: "FILE_WRITE_FAILED",
    message: expect.stringContaining(path) as unknown,
  });
});
