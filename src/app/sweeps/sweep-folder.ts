import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { z } from "zod";
import { LlamaGymError } from "../../core/errors.js";
import { describeIssue } from "../../core/schema-issue.js";
import { checkSavable, readJsonIfExists, writeJson } from "../../core/files/json-file.js";
import type { FolderLock } from "../../core/files/folder-lock.js";
import type { JsonObject } from "../../core/json.js";
import { checkFormatVersion, readRunConfig } from "../../rl/train/index.js";
import type { SweepPlan } from "./sweep-plan.js";
import { rankTrials, summarizeTrial, type RungResult, type TrialResult, type TrialRun } from "./trial-result.js";
import type { SweepConfig, SweepOptions } from "./sweep-settings.js";

const SWEEP_VERSION = 2;
const CONFIG_FILE = "sweep.json";
const RESULTS_FILE = "results.json";
const RUNS_FOLDER = "runs";

/**
 * Reads the settings of the sweep in a folder; undefined if there is none. @throws FILE_CORRUPT,
 * RUN_INCOMPATIBLE
 */
export async function readSweepOptions(folder: string): Promise<SweepOptions | undefined> {
  const saved = await readJsonIfExists(join(folder, CONFIG_FILE));
  if (saved === undefined) return undefined;
  const advice = "Resume it with the version that wrote it, or choose another folder.";
  return checkFormatVersion(saved, SWEEP_VERSION, `The sweep in ${folder}`, advice) as unknown as SweepOptions;
}

/** The settings and results in a sweep's folder. */
export class SweepFolder {
  private constructor(
    private readonly lock: FolderLock,
    private readonly config: SweepConfig,
    private readonly plan: SweepPlan,
    private readonly runs: Map<string, TrialRun>,
  ) {}

  /**
   * Opens the folder of a new sweep, or of the same sweep to resume it.
   * @throws INVALID_STATE if it contains other runs, FILE_CORRUPT, RUN_INCOMPATIBLE,
   * FILE_WRITE_FAILED.
   */
  static async open(lock: FolderLock, config: SweepConfig, plan: SweepPlan): Promise<SweepFolder> {
    const { folder: path } = lock;
    const saved = await readSweepOptions(path);
    checkSavable(join(path, CONFIG_FILE), config);
    const requested = JSON.parse(JSON.stringify(config)) as JsonObject;
    if ((await readRunConfig(path)) !== undefined)
      throw new LlamaGymError("INVALID_STATE", `${path} contains a run. Choose another folder for the sweep.`);
    const runs = await readRuns(path);
    const difference =
      saved === undefined ? undefined : findDifference(saved as unknown as JsonObject, requested, runs.size > 0);
    const isEmpty = (await readdir(join(path, RUNS_FOLDER)).catch(() => [])).length === 0;
    if (!isEmpty && (saved === undefined || difference !== undefined))
      throw new LlamaGymError(
        "INVALID_STATE",
        `${path} contains ${saved === undefined ? "other runs" : `another sweep: ${difference!}`}. ` +
          "Choose another folder, or resume the sweep there with its settings.",
      );
    await writeJson(join(path, CONFIG_FILE), { version: SWEEP_VERSION, ...requested });
    return new SweepFolder(lock, config, plan, runs);
  }

  get path(): string {
    return this.lock.folder;
  }

  /** Returns the folder of a trial's run with a seed, relative to the sweep's. */
  getRunFolder(trial: number, seed: number): string {
    const width = Math.max(2, String(this.plan.trials.length).length);
    return `${RUNS_FOLDER}/trial-${String(trial).padStart(width, "0")}-seed-${seed}`;
  }

  /** Returns the results of a run so far. */
  getRun(trial: number, seed: number): TrialRun {
    const folder = this.getRunFolder(trial, seed);
    return this.runs.get(folder) ?? { seed, folder, rungResults: [] };
  }

  async recordOutcome(trial: number, seed: number, outcome: RungResult | { readonly failure: string }): Promise<void> {
    const current = this.getRun(trial, seed);
    const updated =
      "failure" in outcome
        ? { ...current, ...outcome }
        : { ...current, rungResults: [...current.rungResults, outcome] };
    this.runs.set(current.folder, updated);
    await this.write(false);
  }

  /** Returns all trials in their order. */
  get trials(): TrialResult[] {
    const { seeds } = this.config;
    return this.plan.trials.map((trial) => {
      const runs = seeds.map((seed) => this.getRun(trial.number, seed));
      return summarizeTrial(
        trial,
        runs.filter(({ rungResults, failure }) => rungResults.length > 0 || failure !== undefined),
        seeds,
      );
    });
  }

  /** Writes results.json: the trials so far, from best to worst. */
  async write(isFinished: boolean): Promise<void> {
    const { env, metric, goal, method } = this.config;
    await this.lock.verify();
    await writeJson(join(this.path, RESULTS_FILE), {
      version: SWEEP_VERSION,
      env,
      method,
      metric,
      goal,
      finished: isFinished,
      rungs: this.plan.rungs,
      trials: rankTrials(this.trials, goal),
    });
  }
}

const count = z.int().min(0);
const rungResult = z.object({ rung: count, value: z.number(), updates: count, turns: count, episodes: count });
const savedTrials = z.array(
  z.object({
    runs: z.array(
      z.object({
        seed: z.int(),
        folder: z.string(),
        rungResults: z.array(rungResult),
        failure: z.string().optional(),
      }),
    ),
  }),
);

async function readRuns(path: string): Promise<Map<string, TrialRun>> {
  const saved = await readJsonIfExists(join(path, RESULTS_FILE));
  const { data: trials, error } = savedTrials.safeParse(saved?.trials ?? []);
  if (error === undefined) return new Map(trials.flatMap(({ runs }) => runs.map((run) => [run.folder, run] as const)));
  throw new LlamaGymError(
    "FILE_CORRUPT",
    `${join(path, RESULTS_FILE)} is damaged: trials${describeIssue(error.issues)}. Start the sweep in another folder.`,
  );
}

/** Settings of the comparison, which may change before the first result. */
const COMPARISON_SETTINGS: readonly string[] = ["metric", "goal", "metricUpdates", "evalEpisodes", "evalSeed"];

/** Describes the first difference between two sweeps; undefined if they are equal. */
function findDifference(saved: JsonObject, requested: JsonObject, isCompared: boolean): string | undefined {
  const all = [...new Set([...Object.keys(saved), ...Object.keys(requested)])];
  const names = all.filter((name) => isCompared || !COMPARISON_SETTINGS.includes(name));
  // The order of searched settings determines the order of trials and draws.
  const ordered = (name: string, value: unknown) => (name === "search" ? Object.entries(value ?? {}) : value);
  const name = names.find((name) => !isDeepStrictEqual(ordered(name, saved[name]), ordered(name, requested[name])));
  if (name === undefined) return undefined;
  const [before, after] = [saved[name], requested[name]].map((value) => JSON.stringify(value) ?? "nothing");
  return `its ${name} is ${before}, not ${after}`;
}
