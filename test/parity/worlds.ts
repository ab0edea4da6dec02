import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import type { ParityOptions, ParityReport } from "./parity-report.js";
import { findDifference, type Comparison } from "./worlds/comparison.js";
import { replayBabyAi, type BabyAiCase } from "./worlds/replay-baby-ai.js";
import { replayPythonRandom, type PythonRandomCase } from "./worlds/replay-python-random.js";
import { isReasoningSupported, replayReasoning, type ReasoningCase } from "./worlds/replay-reasoning.js";
import { isTextArenaSupported, replayTextArena, type TextArenaCase } from "./worlds/replay-text-arena.js";

interface CaseRunner {
  readonly name: (recorded: never) => string;
  readonly run: (recorded: never) => Iterable<Comparison>;
  /** Whether llamagym has what the case is about; all cases, if it is left out. */
  readonly isSupported?: (recorded: never) => boolean;
}

const babyAiRunner: CaseRunner = {
  name: ({ level, kind, seed, moves }: BabyAiCase) => [level, kind, `seed ${seed}`, moves].filter(Boolean).join(" "),
  run: replayBabyAi,
};

const caseRunners: Readonly<Record<string, CaseRunner>> = {
  babyai: babyAiRunner,
  "babyai-mixed": babyAiRunner,
  "text-arena": {
    name: ({ game, seed }: TextArenaCase) => `${game} seed ${seed}`,
    run: replayTextArena,
    isSupported: isTextArenaSupported,
  },
  "python-random": {
    name: ({ seed }: PythonRandomCase) => `seed ${seed}`,
    run: (recorded: PythonRandomCase) => [
      { where: "the draws", actual: replayPythonRandom(recorded), expected: recorded },
    ],
  },
  "reasoning-gym": {
    name: ({ generator }: ReasoningCase) => generator,
    run: replayReasoning,
    isSupported: isReasoningSupported,
  },
};

/**
 * Replays the recordings of games, BabyAI and reasoning tasks in `directory`: one line for each
 * case.
 */
export async function runWorldsParity(directory: string, report: ParityReport, _options: ParityOptions): Promise<void> {
  const files = (await readdir(directory)).filter((file) => file.endsWith(".json")).sort();
  for (const file of files) {
    const text = await readFile(join(directory, file), "utf8");
    const { kind, cases } = JSON.parse(text) as { kind: string; cases: never[] };
    const runner = caseRunners[kind];
    if (runner === undefined) report.skip(`worlds/${file}`, `kind ${kind} is not known`);
    else for (const recorded of cases) runCase(`worlds/${file}`, runner, recorded, report);
  }
}

function runCase(file: string, { name, run, isSupported }: CaseRunner, recorded: never, report: ParityReport): void {
  let label = file;
  try {
    label = `${file} ${name(recorded)}`;
    if (isSupported !== undefined && !isSupported(recorded)) {
      report.skip(label, "llamagym does not have it");
      return;
    }
    const difference = findDifference(run(recorded));
    report.checkEqual(label, difference === undefined, difference);
  } catch (error) {
    report.error(label, error);
  }
}
