import { execFileSync } from "node:child_process";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { addAllChecksums, verifyAllChecksums, verifyChecksum, verifyChecksums, writeChecksums } from "./checksums.js";

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "checksums-"));
  await mkdir(join(folder, "deeper"));
  await writeFile(join(folder, "a.json"), "{}");
  await writeFile(join(folder, "deeper", "b.bin"), Buffer.alloc(5_000_000, 7));
  await writeFile(join(folder, "README.md"), "# Model");
});
afterEach(() => rm(folder, { recursive: true }));

const list = () => join(folder, "SHA256SUMS");
const damaged = (path: string, fault: string) => ({
  code: "FILE_CORRUPT",
  message: expect.stringMatching(new RegExp(`${path} is damaged: .*${fault}`)) as string,
});

describe("checksums of a folder", () => {
  it.skipIf(process.platform !== "linux")("are accepted by sha256sum", async () => {
    await addAllChecksums(folder);
    const output = execFileSync("sha256sum", ["-c", "SHA256SUMS"], { cwd: folder }).toString();
    expect(output).toBe("a.json: OK\ndeeper/b.bin: OK\n");
  });

  it("are verified, without the model card", async () => {
    await addAllChecksums(folder);
    await writeFile(join(folder, "README.md"), "# Edited");
    await expect(verifyAllChecksums(folder)).resolves.toBeUndefined();
    await verifyChecksums(folder);
  });

  it("name a changed, a missing and an unlisted file", async () => {
    await addAllChecksums(folder);
    await writeFile(join(folder, "c"), "");
    await expect(verifyAllChecksums(folder)).rejects.toMatchObject(damaged("/c", "not listed"));
    await verifyChecksums(folder);
    await writeFile(join(folder, "a.json"), "{ }");
    await expect(verifyChecksums(folder)).rejects.toMatchObject(damaged("a.json", "SHA-256"));
    await expect(verifyChecksum(join(folder, "a.json"))).rejects.toMatchObject(damaged("a.json", "SHA-256"));
    await rm(join(folder, "a.json"));
    await expect(verifyChecksums(folder)).rejects.toMatchObject(damaged("a.json", "missing"));
  });

  it.each<[string, (text: string) => string]>([
    ["cut off between two lines", (text) => text.split("\n").slice(0, 2).join("\n") + "\n"],
    ["cut off in a line", (text) => text.slice(0, -5)],
    ["with a zeroed end", (text) => text.slice(0, -9) + "\0".repeat(9)],
    ["that is empty", () => ""],
    ["with another header", (text) => text.replace("#", "+")],
    [
      "with a capital letter in a hash",
      (text) => text.replace(/[a-f](?=[0-9a-f]{20})/, (digit) => digit.toUpperCase()),
    ],
  ])("refuse a list %s", async (_, change) => {
    await addAllChecksums(folder);
    await writeFile(list(), change(await readFile(list(), "utf8")));
    await expect(verifyChecksums(folder)).rejects.toMatchObject(damaged("SHA256SUMS", "not a complete list"));
  });

  it.each(["../secret", "/etc/hostname", "a/../../b", "./a.json", "c:/a", "a\\b", "..", ""])(
    "refuse a list that names %j",
    async (name) => {
      await writeFile(list(), `# SHA-256 of 1 files\n${"0".repeat(64)}  ${name}\n`);
      await expect(verifyChecksums(folder)).rejects.toMatchObject(damaged("SHA256SUMS", "not a complete list"));
    },
  );

  it("refuse a list that is too large, or a folder", async () => {
    await writeFile(list(), "#".repeat(2 ** 20 + 1));
    await expect(verifyChecksums(folder)).rejects.toMatchObject(damaged("SHA256SUMS", "not a list"));
    await rm(list());
    await mkdir(list());
    await expect(verifyChecksums(folder)).rejects.toMatchObject(damaged("SHA256SUMS", "not a list"));
  });

  it("are optional in a folder of another tool", async () => {
    await verifyChecksums(folder);
    await expect(verifyAllChecksums(folder)).rejects.toMatchObject(damaged(folder, "no SHA256SUMS"));
    await writeFile(list(), `${"0".repeat(64)} *a.json\n`);
    await verifyChecksums(folder);
  });

  it("replace those of an earlier save", async () => {
    await addAllChecksums(folder);
    await writeFile(join(folder, "a.json"), "{ }");
    await writeChecksums(folder, ["a.json"]);
    await verifyChecksums(folder);
    expect(await readFile(list(), "utf8")).toMatch(/^# SHA-256 of 1 files\n[0-9a-f]{64} {2}a\.json\n$/);
  });
});
