import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ParityReport } from "./parity-report.js";
import { runTextWorldParity } from "./text-world.js";

const FIXTURES = new URL("../fixtures/textworld/", import.meta.url);

describe("runTextWorldParity", () => {
  let directory = "";
  let folder = "";

  beforeAll(() => {
    directory = mkdtempSync(join(tmpdir(), "textworld-"));
    folder = join(directory, "textworld");
    mkdirSync(folder);
    for (const name of readdirSync(FIXTURES).filter((file) => file.startsWith("custom_game"))) {
      writeFileSync(join(folder, name.replace(/\.gz$/, "")), gunzipSync(readFileSync(new URL(name, FIXTURES))));
    }
  });
  afterAll(() => rmSync(directory, { recursive: true }));

  const run = async () => {
    const lines: string[] = [];
    const report = new ParityReport((line) => lines.push(line));
    await runTextWorldParity(directory, report, {});
    return { passed: report.passed, failed: report.failed, lines };
  };

  it("reproduces a game that TextWorld recorded", async () => {
    const { passed, failed, lines } = await run();
    expect([passed, failed]).toEqual([6, 0]);
    expect(lines[0]).toContain("textworld/custom_game game");
  });

  it("reports where a transcript differs", async () => {
    const path = join(folder, "custom_game.transcript.json");
    const transcript = JSON.parse(readFileSync(path, "utf8"));
    transcript.walkthrough.states[2].intermediate_reward = -1;
    transcript.plain.rows[1][1] = 5;
    transcript.game.verbs.push("fly");
    writeFileSync(path, JSON.stringify(transcript));
    const { passed, failed, lines } = await run();
    expect([passed, failed]).toEqual([3, 3]);
    expect(lines.find((line) => line.includes("walkthrough"))).toContain("at state 2, intermediate_reward: 1 for -1");
  });

  it("continues after a broken game", async () => {
    writeFileSync(join(folder, "a.transcript.json"), JSON.stringify({ game_file: "custom_game.z8x", game: {} }));
    writeFileSync(join(folder, "b.transcript.json"), "{");
    const { failed, lines } = await run();
    expect(failed).toBe(5);
    expect(lines[0]).toContain("Cannot read");
  });
});
