import { existsSync } from "node:fs";
import { join } from "node:path";
import { readJson } from "../files/index.js";
import { Runtime } from "../runtime/runtime.js";
import { compareGrpoAdvantages, compareGrpoLoss, type GrpoFixture } from "./rl/grpo.js";
import { comparePpo } from "./rl/ppo.js";
import type { PpoFixture } from "./rl/ppo-fixture.js";
import { compareAdaptiveKl, compareMaskedStatistics } from "./rl/ppo-statistics.js";
import { compareDiscounted, compareTurns, type ReturnsFixture } from "./rl/returns.js";
import { compareRlooAdvantages, compareRlooLoss, type RlooFixture } from "./rl/rloo.js";
import type { ParityOptions, Reporter } from "./report.js";

/** A named comparison; one that breaks is a failed case. */
interface Case {
  readonly name: string;
  readonly run: () => Promise<void> | void;
}

type CasesOf = (fixture: never, runtime: Runtime, report: Reporter) => Case[];

const files: Readonly<Record<string, CasesOf>> = {
  "ppo.json": ({ cases, masked_statistics, adaptive_kl }: PpoFixture, runtime, report) => [
    ...cases.map((fixture) => ({ name: fixture.name, run: () => comparePpo(fixture, runtime, report) })),
    ...numbered("masked statistics", masked_statistics, (fixture, name) =>
      compareMaskedStatistics(fixture, name, report),
    ),
    ...numbered("adaptive KL", adaptive_kl, (fixture, name) => compareAdaptiveKl(fixture, name, report)),
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
    ...numbered("discounted", discounted_returns, (fixture, name) => compareDiscounted(fixture, name, report)),
    ...numbered("turn GAE", turn_gae, (fixture, name) => compareTurns(fixture, name, report)),
  ],
};

/** Losses, advantages and returns: `directory` is the fixtures' rl/ folder. */
export async function runRlParity(directory: string, report: Reporter, _options: ParityOptions): Promise<void> {
  const runtime = new Runtime({ device: "cpu", threads: 1 });
  try {
    for (const [file, casesOf] of Object.entries(files)) {
      const path = join(directory, file);
      if (!existsSync(path)) {
        report.skip(`rl/${file}`, `there is no ${path}`);
        continue;
      }
      // Fixtures are written by the generator beside them; a wrong one shows as a failed case.
      for (const { name, run } of casesOf((await readJson(path)) as never, runtime, report)) {
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

function numbered<T>(name: string, fixtures: readonly T[], run: (fixture: T, name: string) => void): Case[] {
  return fixtures.map((fixture, i) => {
    const label = `${name} ${i + 1}`;
    return { name: label, run: () => run(fixture, label) };
  });
}
