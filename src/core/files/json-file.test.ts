import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { encodeUtf8 } from "../bytes.js";
import { replaceFileAtomic, writeFileAtomic } from "./write-file-atomic.js";
import { toReadError, toWriteError } from "./file-errors.js";
import { readJson, writeJson } from "./json-file.js";

let folder = "";
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "json-"));
});
afterEach(async () => {
  await rm(folder, { recursive: true });
});

describe("a JSON file", () => {
  it("is read as it was written", async () => {
    const path = join(folder, "deep", "config.json");
    await writeJson(path, { a: [1, null, "x"] });
    expect(await readJson(path)).toEqual({ a: [1, null, "x"] });
    expect(await readFile(path, "utf8")).toBe('{\n  "a": [\n    1,\n    null,\n    "x"\n  ]\n}\n');
  });

  it("may be 100 levels deep and have brackets and escaped quotes in strings", async () => {
    const path = join(folder, "config.json");
    const text = String.raw`\"[{`.repeat(200);
    await writeFile(path, `{"a": ${"[".repeat(99)}${JSON.stringify(text)}${"]".repeat(99)}}`);
    expect(JSON.stringify(await readJson(path))).toContain(JSON.stringify(text));
  });

  it.each([
    ["half of it", '{"a": [1, 2', /not valid JSON .*\. Correct the file/u],
    ["nothing", "", /it is empty/u],
    ["bytes that are no text", Uint8Array.of(0x7b, 0xff, 0x7d), /not valid JSON/u],
    ["101 levels", `{"a": ${"[".repeat(100)}${"]".repeat(100)}}`, /nested more than 100 levels/u],
    ["20,000 levels", `{"a":`.repeat(20_000) + "1" + "}".repeat(20_000), /nested more than 100 levels/u],
    ["5 million levels that do not end", "[".repeat(5_000_000), /nested more than 100 levels/u],
    ["a list", "[1]", /does not contain a JSON object\. Correct the file/u],
  ])("that contains %s is rejected by name", async (_, content, message) => {
    const path = join(folder, "config.json");
    await writeFile(path, content);
    const error: unknown = await readJson(path).catch((reason: unknown) => reason);
    expect(error).toMatchObject({ code: "FILE_CORRUPT", message: expect.stringMatching(message) as string });
    expect(String(error)).toContain(path);
  });

  it("that is missing is named", async () => {
    const path = join(folder, "none.json");
    await expect(readJson(path)).rejects.toMatchObject({ code: "FILE_NOT_FOUND" });
    await expect(readJson(folder)).rejects.toMatchObject({ code: "FILE_READ_FAILED" });
  });
});

describe("replaceFileAtomic", () => {
  it("leaves the old file and no other when writing fails", async () => {
    const path = join(folder, "state.bin");
    await writeFileAtomic(path, "old");
    const failing = replaceFileAtomic(path, async (file) => {
      await file.write(encodeUtf8("half"));
      throw Object.assign(new Error("ENOSPC: no space left on device"), { code: "ENOSPC" });
    });
    await expect(failing).rejects.toMatchObject({
      code: "FILE_WRITE_FAILED",
      message: expect.stringMatching(/disk is full: free some space/u) as string,
    });
    expect(await readFile(path, "utf8")).toBe("old");
    expect(await readdir(folder)).toEqual(["state.bin"]);
  });

  it("reports a folder that is a file", async () => {
    await writeFile(join(folder, "file"), "");
    await expect(writeFileAtomic(join(folder, "file", "x"), "")).rejects.toMatchObject({ code: "FILE_WRITE_FAILED" });
  });
});

describe("failures of the system", () => {
  it("keep their cause and advise", () => {
    const denied = Object.assign(new Error("EACCES: permission denied"), { code: "EACCES" });
    expect(toReadError("a.bin", denied)).toMatchObject({ code: "FILE_READ_FAILED", cause: denied });
    expect(toReadError("a.bin", denied).message).toMatch(/a\.bin.*permissions/u);
    expect(toWriteError("a.bin", Object.assign(new Error("EROFS"), { code: "EROFS" })).message).toMatch(/read-only/u);
  });
});
