import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { supportedModelTypes } from "../../src/models/architectures/index.js";
import { runModelsParity } from "./models.js";
import { ParityReport } from "./parity-report.js";

/**
 * One small model of each architecture, with the numbers that Transformers 5.23 and PEFT 0.21 give
 * for it.
 */
const folder = fileURLToPath(new URL("../fixtures/models", import.meta.url));

describe("runModelsParity", () => {
  it("finds Transformers' and PEFT's numbers in every architecture", async () => {
    const lines: string[] = [];
    const report = new ParityReport((line) => lines.push(line));
    await runModelsParity(folder, report, {});
    expect(lines.filter((line) => line.startsWith("FAIL"))).toEqual([]);
    // For each of the models at least: logits, hidden states, greedy tokens, log-probabilities,
    // with and without adapter.
    expect(report.passed).toBeGreaterThan(10 * supportedModelTypes.length);
  });

  it("reports that it skipped a folder without models", async () => {
    const lines: string[] = [];
    const report = new ParityReport((line) => lines.push(line));
    await runModelsParity(`${folder}/none`, report, {});
    expect([report.passed, report.failed]).toEqual([0, 0]);
    expect(lines).toHaveLength(1);
    expect(lines[0]).toMatch(/^skip models/);
  });
});
