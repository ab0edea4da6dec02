import { existsSync } from "node:fs";
import { join } from "node:path";
import { readJson } from "../../src/core/files/json-file.js";
import { Runtime } from "../../src/engine/runtime/runtime.js";
import { compareGrpoAdvantages, compareGrpoLoss, type GrpoFixture } from "./rl/compare-grpo.js";
import { comparePpo } from "./rl/compare-ppo.js";
import type { PpoFixture } from "./rl/ppo-fixture.js";
import { compareAdaptiveKl, compareMaskedStatistics } from "./rl/compare-ppo-statistics.js";
import { compareDiscountedReturns, compareTurnGae, type ReturnsFixture } from "./rl/compare-returns.js";
import { compareRlooAdvantages, compareRlooLoss, type RlooFixture } from "./rl/compare-rloo.js";
import type { ParityOptions, ParityReport } from "./parity-report.js";

/** A named comparison; one that breaks is a failed case. */
interface ParityCase {
  readonly name: string;
  readonly run: () => Promise<void> | void;
}

type CaseBuilder = (fixture: never, runtime: Runtime, report: ParityReport) => ParityCase[];

const caseBuilders: Readonly<Record<string, CaseBuilder>> = {
  "ppo.json": ({ cases, masked_statistics, adaptive_kl }: PpoFixture, runtime, report) => [
    ...cases.map((fixture) => ({ name: fixture.name, run: () => comparePpo(fixture, runtime, report) })),
    ...numberCases("masked statistics", masked_statistics, (fixture, name) =>
      compareMaskedStatistics(fixture, name, report),
    ),
    ...numberCases("adaptive KL", adaptive_kl, (fixture, name) => compareAdaptiveKl(fixture, name, report)),
  ],
  "grpo.json": ({ loss, advantages }: GrpoFixture, runtime, report) => [
    ...loss.map((fixture) => ({ name: fixture.name, run: () => compareGrpoLoss(fixture, runtime, report) })),
    ...advantages.map((fixture) => ({ name: fixture.name, run: () => compareGrpoAdvantages(fixture, report) })),
  ],
  "rloo.json": ({ loss, advantages }: RlooFixture, runtime, report) => [
    ...loss.map((fixture) => ({ name: fixture.name, run: () => compareRlooLoss(fixture, runtime, report) })),
    ...advantages.map((fixture) => ({ name: fixture.name, run: () => compareRlooAdvantages(fixture, report) })),
  ],
  "returns.json": ({ discounted_returns, turn_gae }: ReturnsFixture, _, report) => [
    ...numberCases("discounted", discounted_returns, (fixture, name) =>
      compareDiscountedReturns(fixture, name, report),
    ),
    ...numberCases("turn GAE", turn_gae, (fixture, name) => compareTurnGae(fixture, name, report)),
  ],
};

/** Losses, advantages and returns: `directory` is the fixtures' rl/ folder. */
export async function runRlParity(
  directory: string,
  report: ParityReport,
  { device = "cpu" }: ParityOptions,
): Promise<void> {
  const runtime = new Runtime({ device, threads: 1 });
  try {
    for (const [file, buildCases] of Object.entries(caseBuilders)) {
      const path = join(directory, file);
      if (!existsSync(path)) {
        report.skip(`rl/${file}`, `there is no ${path}`);
        continue;
      }
      // Fixtures are written by the generator next to them; a wrong one shows as a failed case.
      for (const { name, run } of buildCases((await readJson(path)) as never, runtime, report)) {
        try {
          await run();
        } catch (error) {
          report.error(`rl/${file} ${name}`, error);
        }
      }
    }
  } finally {
    await runtime.close();
  }
}

function numberCases<T>(name: string, fixtures: readonly T[], run: (fixture: T, name: string) => void): ParityCase[] {
  return fixtures.map((fixture, i) => {
    const label = `${name} ${i + 1}`;
    return { name: label, run: () => run(fixture, label) };
  });
}
