import { execFile, execFileSync } from "node:child_process";
import { promisify } from "node:util";
import { beforeAll, describe, expect, it } from "vitest";

const MAIN = "test/.build/test/fuzz/main.js";

interface RunResult {
  readonly stdout: string;
  readonly code?: number;
}

/** Runs drivers as `npm run fuzz` does. */
const fuzz = (...args: string[]): Promise<RunResult> =>
  promisify(execFile)(process.execPath, [MAIN, ...args]).catch((error: unknown) => error as RunResult);

beforeAll(() => {
  execFileSync(process.execPath, ["scripts/compile.mjs", "test", "--keep-dist"]);
}, 120_000);

describe("npm run fuzz", () => {
  it.each([
    ["readers", 40],
    ["templates", 80],
    ["specifications", 40],
    ["schemas", 20],
    ["hub", 4],
    ["kills", 1],
    ["checkpoints", 6],
    ["sampler", 30],
  ])(
    "%s: each of %i mutants is accepted or refused with a code",
    async (name, count) => {
      const { stdout } = await fuzz("--only", name, "--mutants", String(count), "--seed", "1");
      const [tried, refused, accepted] = stdout.trim().split("\n").at(-1)!.split(/\s+/).slice(1).map(Number);
      expect({ tried, handled: refused + accepted, stdout }).toEqual({ tried: count, handled: count, stdout });
    },
    600_000,
  );

  it("rejects unknown drivers", async () => {
    expect(await fuzz("--only", "nothing")).toMatchObject({ code: 2 });
  });
});
