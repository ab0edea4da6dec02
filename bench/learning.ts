import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { solveWorld, type WorldReturns } from "../test/learning-worlds/solve-world.js";
import type { World } from "../test/learning-worlds/world.js";
import { worlds } from "../test/learning-worlds/worlds.js";
import { runStatePpo, type CurvePoint } from "./learning/state-ppo.js";

export interface LearningOptions {
  readonly root: string;
  readonly seeds: number;
  readonly threads: number;
  /** Only these environments, by id or name. */
  readonly cases?: readonly string[];
  /** Further arguments of `llamagym train`. */
  readonly trainArgs: readonly string[];
  readonly progress: (text: string) => void;
}

/** How a learner did in an environment. */
interface LearningResult {
  /** Part of the way from random actions to the best policy that the last episodes went. */
  readonly share: number;
  /**
   * Turns until the mean return of the last 100 episodes went 0.9 of that way; undefined if it
   * never did.
   */
  readonly turnsTo90: number | undefined;
  readonly turns: number;
  readonly minutes: number;
}

/** Results by learner, one for each seed. */
export interface WorldReport {
  readonly world: string;
  readonly tests: string;
  readonly results: Readonly<Record<"llamagym" | "table" | "network", readonly LearningResult[]>>;
}

const SOLVED = 0.9;
const STATE_LEARNERS = {
  table: { hiddenSize: 0, learningRate: 0.1 },
  network: { hiddenSize: 64, learningRate: 0.01 },
} as const;

/**
 * Trains in each learning world with the defaults of `llamagym train`, and with PPO on one-hot
 * states.
 */
export async function measureLearning(options: LearningOptions): Promise<readonly WorldReport[]> {
  const reports: WorldReport[] = [];
  for (const world of worlds) {
    if (options.cases !== undefined && !options.cases.some((name) => world.id === name || world.id === `${name}-v0`))
      continue;
    const returns = solveWorld(world);
    const results = {
      llamagym: [] as LearningResult[],
      table: [] as LearningResult[],
      network: [] as LearningResult[],
    };
    for (let seed = 1; seed <= options.seeds; seed++) {
      const trained = train(world, returns, seed, options);
      results.llamagym.push(trained);
      for (const name of ["table", "network"] as const) {
        const start = performance.now();
        const settings = { batchSize: 256, numEnvs: 16, seed, turns: trained.turns, ...STATE_LEARNERS[name] };
        results[name].push(summarize(await runStatePpo(world, settings), returns, start));
      }
    }
    options.progress(formatRow({ world: world.id, tests: world.tests, results }));
    reports.push({ world: world.id, tests: world.tests, results });
  }
  return reports;
}

/** Runs the command as a user would, apart from the folder, the seed and the threads. */
function train(
  world: World,
  returns: WorldReturns,
  seed: number,
  { root, threads, trainArgs }: LearningOptions,
): LearningResult {
  const folder = mkdtempSync(join(tmpdir(), "llamagym-learning-"));
  const start = performance.now();
  const module = join(root, "bench", ".build", "test", "learning-worlds", "worlds.js");
  const output = join(folder, "run");
  try {
    const args = [
      "train",
      `${module}:${world.id}`,
      "--output",
      output,
      "--seed",
      String(seed),
      "--threads",
      String(threads),
    ];
    const { status, stderr } = spawnSync(
      process.execPath,
      [join(root, "dist", "app", "cli", "bin.js"), ...args, ...trainArgs],
      {
        encoding: "utf8",
        stdio: ["ignore", "ignore", "pipe"],
      },
    );
    if (status !== 0) throw new Error(`training in ${world.id} failed: ${stderr.slice(-2000)}`);
    const rows = readFileSync(join(output, "metrics.jsonl"), "utf8").trim().split("\n");
    const curve = rows.map((row): CurvePoint => {
      const metrics = JSON.parse(row) as Record<string, number>;
      return { turns: metrics.num_turns, meanReturn: metrics["rollout/ep_rew_mean"] };
    });
    return summarize(curve, returns, start);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function summarize(curve: readonly CurvePoint[], { best, random }: WorldReturns, start: number): LearningResult {
  const toShare = (meanReturn: number) => (meanReturn - random) / (best - random);
  const last = curve[curve.length - 1];
  return {
    share: toShare(last.meanReturn),
    turnsTo90: curve.find(({ meanReturn }) => toShare(meanReturn) >= SOLVED)?.turns,
    turns: last.turns,
    minutes: (performance.now() - start) / 60_000,
  };
}

/** Formats the reports as a table: medians of the seeds. */
export function formatLearning(reports: readonly WorldReport[]): string {
  const solved = reports.filter(({ results }) => median(results.llamagym.map(({ share }) => share)) >= SOLVED).length;
  const header =
    "environment    share  worst  turns to 0.9     of turns  minutes   table: share, turns   network: share, turns";
  return [header, ...reports.map(formatRow), `${solved} of ${reports.length} at ${SOLVED} or above`].join("\n");
}

function formatRow({ world, results }: WorldReport): string {
  const { llamagym, table, network } = results;
  const shares = llamagym.map(({ share }) => share);
  const minutes = median(llamagym.map((result) => result.minutes));
  const state = (learner: readonly LearningResult[]) =>
    `${median(learner.map(({ share }) => share))
      .toFixed(2)
      .padStart(15)} ${formatTurns(learner).padStart(7)}`;
  return [
    world.padEnd(13),
    median(shares).toFixed(2).padStart(6),
    Math.min(...shares)
      .toFixed(2)
      .padStart(6),
    formatTurns(llamagym).padStart(13),
    String(llamagym[0].turns).padStart(12),
    minutes.toFixed(1).padStart(8),
    state(table),
    state(network),
  ].join(" ");
}

function formatTurns(results: readonly LearningResult[]): string {
  const turns = median(results.map(({ turnsTo90 = Infinity }) => turnsTo90));
  return Number.isFinite(turns) ? String(turns) : "-";
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor((values.length - 1) / 2)];
}
