import { describe, expect, it } from "vitest";
import { runGymParity } from "./gym.js";
import { withChangedFixture } from "../support/changed-fixture.js";
import { ParityReport } from "./parity-report.js";

const fixtures = new URL("../fixtures/gym/", import.meta.url).pathname;

async function run(directory: string): Promise<{ report: ParityReport; lines: string[] }> {
  const lines: string[] = [];
  const report = new ParityReport((line) => lines.push(line));
  await runGymParity(directory, report, {});
  return { report, lines };
}

/** Runs a fixture file after one of its values was set to another. */
async function runChanged(file: string, path: readonly (string | number)[], value: unknown): Promise<ParityReport> {
  const { report } = await withChangedFixture(fixtures, { file, path: ["cases", ...path], change: () => value }, run);
  return report;
}

describe("Gymnasium's recordings", () => {
  it("are reproduced, every case", async () => {
    const { report, lines } = await run(fixtures);
    expect(lines.filter((line) => line.startsWith("FAIL"))).toEqual([]);
    expect(report.passed).toBeGreaterThan(180);
  });
});

describe("a recording that was tampered with", () => {
  it.each<[string, string, (string | number)[], unknown]>([
    ["an observation", "trajectories.json", [0, "steps", 3, 0, 1], 0.1234567],
    ["an action that was sampled", "trajectories.json", [0, "actions", 2], 9],
    ["a random state", "rng.json", [0, "state", "inc"], "1"],
    ["a space's text", "spaces.json", [0, "repr"], "Discrete(3)"],
    ["a reward in a wrapper", "wrappers.json", [0, "steps", 0, 1], 2],
    ["an autoreset mode", "vector.json", [0, "autoreset_mode"], "SameStep"],
    ["a map", "maps.json", [0, "p"], 0.1],
    ["a step limit", "registry.json", [1, "max_episode_steps"], 99],
    ["an error", "errors.json", [0, "error"], null],
  ])("fails: %s", async (_, file, path, value) => {
    const report = await runChanged(file, path, value);
    expect(report.failed).toBe(1);
  });
});
