import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { withChangedFixture } from "../support/changed-fixture.js";
import { ParityReport } from "./parity-report.js";
import { runRlParity } from "./rl.js";

/**
 * Numbers of TRL 0.7.11, TRL 1.16 and a plain reference, for settings that differ from case to
 * case.
 */
const fixtures = fileURLToPath(new URL("../fixtures/rl/", import.meta.url));

async function run(directory: string): Promise<{ report: ParityReport; lines: string[] }> {
  const lines: string[] = [];
  const report = new ParityReport((line) => lines.push(line));
  await runRlParity(directory, report, {});
  return { report, lines };
}

/** Runs a fixture file after one of its values was changed. */
async function runChanged(
  file: string,
  path: readonly (string | number)[],
  change: (value: never) => unknown,
): Promise<string[]> {
  const { lines } = await withChangedFixture(fixtures, { file, path, change }, run);
  return lines.filter((line) => line.startsWith("FAIL"));
}

const negated = (row: number[]): number[] => row.map((value) => -value);
const flipped = (rows: number[][]): number[][] => rows.map(negated);

describe("runRlParity", () => {
  it("finds the numbers of every case", async () => {
    const { report, lines } = await run(fixtures);
    expect(lines.filter((line) => !line.startsWith("ok"))).toEqual([]);
    expect(report.passed).toBeGreaterThan(220);
  });

  it.each<[string, string, (string | number)[], (value: never) => unknown]>([
    ["PPO's gradient with its sign flipped", "ppo.json", ["cases", 0, "loss", "grad_logprobs"], flipped],
    ["the value's gradient with its sign flipped", "ppo.json", ["cases", 0, "loss", "grad_vpreds"], flipped],
    ["advantages with their sign flipped", "ppo.json", ["cases", 2, "compute_advantages", "advantages"], flipped],
    ["a divergence with its sign flipped", "ppo.json", ["cases", 1, "compute_rewards", "kls"], flipped],
    ["a clipped share", "ppo.json", ["cases", 4, "loss", "stats", "policy/clipfrac"], () => 0.5],
    ["a whitened value", "ppo.json", ["masked_statistics", 0, "masked_whiten"], flipped],
    ["a KL coefficient", "ppo.json", ["adaptive_kl", 0, "values"], negated],
    ["GRPO's gradient with its sign flipped", "grpo.json", ["loss", 0, "grad_per_token_logps"], flipped],
    ["cispo's gradient with its sign flipped", "grpo.json", ["loss", 10, "grad_per_token_logps"], flipped],
    ["sapo's gradient with its sign flipped", "grpo.json", ["loss", 12, "grad_per_token_logps"], flipped],
    ["luspo's advantages with their sign flipped", "grpo.json", ["loss", 14, "inputs", "advantages"], negated],
    ["vespo's advantages with their sign flipped", "grpo.json", ["loss", 16, "inputs", "advantages"], negated],
    ["a divergence with its sign flipped", "grpo.json", ["loss", 2, "metrics", "kl"], (kl: number) => -kl],
    ["a share of clipped ratios", "grpo.json", ["loss", 3, "metrics", "clip_ratio/low_mean"], () => 0.5],
    ["group advantages with their sign flipped", "grpo.json", ["advantages", 0, "advantages"], negated],
    ["RLOO's gradient with its sign flipped", "rloo.json", ["loss", 1, "grad_per_token_logps"], flipped],
    ["leave-one-out advantages with their sign flipped", "rloo.json", ["advantages", 0, "advantages"], negated],
    ["a return", "returns.json", ["discounted_returns", 1, "returns"], negated],
    ["a turn's advantage", "returns.json", ["turn_gae", 1, "advantages"], negated],
    ["a turn's end", "returns.json", ["turn_gae", 2, "truncated"], (flags: boolean[]) => flags.map(() => false)],
  ])("fails for %s", async (_, file, path, change) => {
    expect(await runChanged(file, path, change)).not.toEqual([]);
  });

  it("counts a case that throws as failed and continues", async () => {
    const failed = await runChanged("ppo.json", ["cases", 0, "inputs"], () => ({}));
    expect(failed).toHaveLength(1);
    expect(failed[0]).toContain("FAIL rl/ppo.json defaults");
  });

  it("reports that it skipped a folder without fixtures", async () => {
    const { report, lines } = await run(join(fixtures, "none"));
    expect([report.passed, report.failed]).toEqual([0, 0]);
    expect(lines.every((line) => line.startsWith("skip rl/"))).toBe(true);
  });
});
