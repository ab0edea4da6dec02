import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { runInHost } from "./support/command.js";

const PAGE = fileURLToPath(new URL("../docs/seed-systems.md", import.meta.url));
/** A row of the flags: a flag with its value, and llamagym's own name of it. */
const FLAG_ROW = /^\| `(--[^`]+)` +\| `(--[^`]+)` +\|/gm;
const VALUES: Readonly<Record<string, string>> = { ID: "embedded", FILE: "2", NAME: "project" };

let folder: string;
let rows: readonly (readonly [flag: string, ownFlag: string])[];
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "seed-systems-"));
  const page = await readFile(PAGE, "utf8");
  rows = Array.from(page.matchAll(FLAG_ROW), ([, flag, ownFlag]) => [flag, ownFlag] as const);
});
afterAll(() => rm(folder, { recursive: true }));

/** The config of a run that is given these flags. */
async function resolveConfig(name: string, flags: readonly string[]): Promise<Record<string, unknown>> {
  const args = flags.flatMap((flag) => flag.split(" ").map((part) => VALUES[part] ?? part));
  const output = join(folder, name);
  const { status, err } = await runInHost(["train", "frozen-lake", ...args, "--turns", "0", "--output", output]);
  expect([err, status]).toEqual([expect.not.stringMatching(/Error/), 0]);
  return JSON.parse(await readFile(join(output, "config.json"), "utf8")) as Record<string, unknown>;
}

describe("docs/seed-systems.md", () => {
  it("names flags that mean the same as llamagym's own", async () => {
    expect(rows.length).toBeGreaterThan(15);
    const seeds = await resolveConfig(
      "seed",
      rows.map(([flag]) => flag),
    );
    const own = await resolveConfig(
      "own",
      rows.map(([, ownFlag]) => ownFlag),
    );
    expect(seeds).toEqual(own);
    expect(seeds).toMatchObject({ quantize: "8", maxCompletionLength: 128, replayTopFraction: 0.2, targetKl: 0.02 });
  });
});
