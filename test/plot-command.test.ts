import { mkdtemp, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { runCommand, runInHost } from "./support/command.js";

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "plot-command-"));
  for (const [name, offset] of [
    ["first", 0],
    ["second", 0.1],
  ] as const) {
    await mkdir(join(folder, name));
    await writeFile(join(folder, name, "config.json"), JSON.stringify({ version: 2, env: "Blackjack-v1" }));
    const records = Array.from({ length: 5 }, (_, i) => ({
      step: i + 1,
      num_turns: 100 * (i + 1),
      "rollout/ep_rew_mean": offset - 0.4 + 0.05 * i,
      loss: 1 / (i + 1),
      huge: i % 2 === 0 ? 1e300 : null,
    }));
    await writeFile(join(folder, name, "metrics.jsonl"), records.map((record) => JSON.stringify(record)).join("\n"));
  }
});
afterAll(() => rm(folder, { recursive: true }));

describe("llamagym plot", () => {
  it("draws several runs over each other in the terminal, with the environment's references", async () => {
    const { status, out } = await runCommand(["plot", "first", "second"], { cwd: folder });
    expect(status).toBe(0);
    expect(out).toMatch(
      /^Blackjack-v1: mean return during training\n● first\n○ second\n┄ random actions \(-0\.394\d*\)\n/,
    );
    const lines = out.split("\n");
    // Both curves rise from left to right, the second above the first.
    const [topFirst, topSecond] = ["●", "○"].map((mark) => lines.findIndex((line, i) => i > 5 && line.includes(mark)));
    expect(topSecond).toBeLessThan(topFirst);
    expect(lines[topFirst].indexOf("●")).toBeGreaterThan(lines.findLast((line) => line.includes("●"))!.indexOf("●"));
    expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(80);
  });

  it("writes an SVG of another metric", async () => {
    const args = ["plot", "first", "--metric", "loss", "--output", "loss.svg"];
    expect(await runInHost(args, { cwd: folder })).toMatchObject({ out: "Saved loss.svg.\n" });
    const svg = await readFile(join(folder, "loss.svg"), "utf8");
    expect(svg).toContain(">Blackjack-v1: loss during training</text>");
    expect(svg).not.toContain("random actions");
  });

  it.each([
    [["missing"], 1, /There is no run in missing/],
    [["first", "--metric", "los"], 1, /The run first records no "los"\. Did you mean loss\?/],
    [["first", "--metric", "huge"], 1, /No value of "huge" in the run first can be drawn/],
    [[], 2, /RUN is missing/],
  ])("rejects %j", async (args, status, message) => {
    const result = await runInHost(["plot", ...args], { cwd: folder });
    expect(result.err).toMatch(message);
    expect(result.status).toBe(status);
  });
});
