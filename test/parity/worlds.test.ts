import { describe, expect, it } from "vitest";
import { withChangedFixture, withFiles } from "../support/changed-fixture.js";
import { ParityReport } from "./parity-report.js";
import { runWorldsParity } from "./worlds.js";

const fixtures = new URL("../fixtures/worlds/", import.meta.url).pathname;

async function run(directory: string): Promise<{ report: ParityReport; lines: string[] }> {
  const lines: string[] = [];
  const report = new ParityReport((line) => lines.push(line));
  await runWorldsParity(directory, report, {});
  return { report, lines };
}

/** Runs a fixture file after one of its values was set to another. */
async function runChanged(file: string, path: readonly (string | number)[], value: unknown): Promise<ParityReport> {
  const { report } = await withChangedFixture(fixtures, { file, path: ["cases", ...path], change: () => value }, run);
  return report;
}

describe("recordings of BabyAI, TextArena, Reasoning Gym and Python's random numbers", () => {
  it("are reproduced, every case", async () => {
    const { report, lines } = await run(fixtures);
    expect(lines.filter((line) => !line.startsWith("ok"))).toEqual([]);
    expect(report.passed).toBeGreaterThan(50);
  });

  it("of games that llamagym does not have are skipped", async () => {
    const cases = [{ game: "Chess-v0", seed: 1 }];
    const { lines } = await withFiles({ "text_arena.json": { kind: "text-arena", cases } }, run);
    expect(lines).toEqual(["skip worlds/text_arena.json Chess-v0 seed 1  llamagym does not have it"]);
  });
});

describe("a recording that was tampered with", () => {
  it.each<[string, string, (string | number)[], unknown]>([
    ["a cell of the grid", "babyai.json", [0, "episodes", 0, "grid", 1], 1],
    ["a mission", "babyai.json", [1, "episodes", 1, "mission"], "go to the blue ball"],
    ["a reward", "babyai.json", [2, "episodes", 0, "steps", 0, 3], 0.5],
    ["a distance in a sentence", "babyai.json", [0, "episodes", 0, "text", 0], "You see a wall 3 steps forward"],
    ["a limit", "babyai_mixed.json", [2, "episodes", 0, "max_steps"], 64],
    ["a player", "text_arena.json", [2, "players", 0], 0],
    ["a move", "text_arena.json", [0, "moves", 0], "[0]"],
    ["an outcome", "text_arena.json", [4, "rewards", 0], 0],
    ["a draw", "python_random.json", [3, "randint_1_6", 2], 2],
    ["a score", "reasoning_gym.json", [2, "items", 0, "scores", 0, 1], 0.9],
    ["the length of answers", "reasoning_gym.json", [0, "shape", "answer_chars", "mean"], 30],
  ])("fails: %s", async (_, file, path, value) => {
    const report = await runChanged(file, path, value);
    expect(report.failed).toBe(1);
  });
});
