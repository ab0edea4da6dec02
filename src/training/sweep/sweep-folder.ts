import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { LlamaGymError } from "../../errors.js";
import { readJsonIfThere, writeJson, type JsonObject } from "../../files/index.js";
import { withoutVersion } from "../layout-version.js";
import { readRunConfig } from "../run-folder.js";
import type { SweepPlan } from "./plan.js";
import { ranked, trialResult, type Measure, type TrialResult, type TrialRun } from "./results.js";
import type { SweepConfig, SweepOptions } from "./settings.js";

/** The layout of a sweep's folder; another one is refused. */
const VERSION = 1;
const CONFIG_FILE = "sweep.json";
const RESULTS_FILE = "results.json";
const RUNS = "runs";

/** The sweep that a folder holds, as it can be given again; undefined where there is none. Throws FILE_CORRUPT, RUN_INCOMPATIBLE. */
export async function readSweepOptions(folder: string): Promise<SweepOptions | undefined> {
  const saved = await readJsonIfThere(join(folder, CONFIG_FILE));
  if (saved === undefined) return undefined;
  const advice = "Go on with the version that made it, or choose another folder.";
  return withoutVersion(saved, VERSION, `The sweep in ${folder}`, advice) as unknown as SweepOptions;
}

/** What a sweep's folder keeps beside its runs: what is tried, and what came of it so far. */
export class SweepFolder {
  private constructor(
    readonly path: string,
    private readonly config: SweepConfig,
    private readonly plan: SweepPlan,
    private readonly runs: Map<string, TrialRun>,
  ) {}

  /**
   * The folder of a new sweep, or of the same one that was begun before. Throws INVALID_STATE where another sweep has runs there,
   * FILE_CORRUPT, RUN_INCOMPATIBLE, FILE_WRITE_FAILED.
   */
  static async open(path: string, config: SweepConfig, plan: SweepPlan): Promise<SweepFolder> {
    const saved = await readSweepOptions(path);
    const wanted = JSON.parse(JSON.stringify(config)) as JsonObject;
    if ((await readRunConfig(path)) !== undefined)
      throw new LlamaGymError("INVALID_STATE", `${path} holds a run. Choose another folder for the sweep.`);
    const runs = await readRuns(path);
    const other = saved === undefined ? undefined : difference(saved as unknown as JsonObject, wanted, runs.size > 0);
    const isEmpty = (await readdir(join(path, RUNS)).catch(() => [])).length === 0;
    if (!isEmpty && (saved === undefined || other !== undefined)) {
      throw new LlamaGymError(
        "INVALID_STATE",
        `${path} holds ${saved === undefined ? "runs of something else" : `another sweep: ${other!}`}. ` +
          "Choose another folder for this one; the sweep there goes on with the settings that it had.",
      );
    }
    await writeJson(join(path, CONFIG_FILE), { version: VERSION, ...wanted });
    return new SweepFolder(path, config, plan, runs);
  }

  /** The folder of a trial's run with a seed, below the sweep's. */
  runFolder(trial: number, seed: number): string {
    const width = Math.max(2, String(this.plan.trials.length).length);
    return `${RUNS}/trial-${String(trial).padStart(width, "0")}-seed-${seed}`;
  }

  /** What came of a run so far. */
  run(trial: number, seed: number): TrialRun {
    const folder = this.runFolder(trial, seed);
    return this.runs.get(folder) ?? { seed, folder, measures: [] };
  }

  /** Keeps what a run had come to at the end of a rung, or why it ended before. */
  async keep(trial: number, seed: number, outcome: Measure | { readonly failure: string }): Promise<void> {
    const run = this.run(trial, seed);
    const now = "failure" in outcome ? { ...run, ...outcome } : { ...run, measures: [...run.measures, outcome] };
    this.runs.set(run.folder, now);
    await this.write(false);
  }

  /** All trials, in their order. */
  get trials(): TrialResult[] {
    const { seeds } = this.config;
    return this.plan.trials.map((trial) => {
      const runs = seeds.map((seed) => this.run(trial.number, seed));
      return trialResult(
        trial,
        runs.filter(({ measures, failure }) => measures.length > 0 || failure !== undefined),
        seeds,
      );
    });
  }

  /** Writes results.json: the trials so far, best first. */
  async write(isFinished: boolean): Promise<void> {
    const { env, metric, goal, method } = this.config;
    await writeJson(join(this.path, RESULTS_FILE), {
      version: VERSION,
      env,
      method,
      metric,
      goal,
      finished: isFinished,
      rungs: this.plan.rungs,
      trials: ranked(this.trials, goal),
    });
  }
}

async function readRuns(path: string): Promise<Map<string, TrialRun>> {
  const saved = await readJsonIfThere(join(path, RESULTS_FILE));
  const trials = (saved?.trials ?? []) as unknown as readonly TrialResult[];
  return new Map(trials.flatMap(({ runs }) => runs.map((run) => [run.folder, run] as const)));
}

/** What trials are compared by; before any is, it may change. */
const COMPARISON: readonly string[] = ["metric", "goal", "metricUpdates", "evalEpisodes", "evalSeed"];

/** The first thing in which two sweeps differ; undefined where they are the same. */
function difference(saved: JsonObject, wanted: JsonObject, isCompared: boolean): string | undefined {
  const all = [...new Set([...Object.keys(saved), ...Object.keys(wanted)])];
  const names = all.filter((name) => isCompared || !COMPARISON.includes(name));
  // The order of what is searched decides the order of trials and of draws.
  const ordered = (name: string, value: unknown) => (name === "search" ? Object.entries(value ?? {}) : value);
  const name = names.find((name) => !isDeepStrictEqual(ordered(name, saved[name]), ordered(name, wanted[name])));
  if (name === undefined) return undefined;
  const [had, has] = [saved[name], wanted[name]].map((value) => JSON.stringify(value) ?? "nothing");
  return `its ${name} is ${had}, not ${has}`;
}
