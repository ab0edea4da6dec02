import { join } from "node:path";
import type { RunCommand } from "../../runs/find-run-command.js";
import { resolvePromptRunConfig, type PromptRunOptions } from "../../runs/prompt-run-settings.js";
import { resolveTrainConfig, type TrainOptions } from "../../runs/run-settings.js";
import { formatSettings, formatSignificant } from "../../sweeps/charts.js";
import { findExampleAlgorithm } from "../../sweeps/search-space.js";
import { BEST_FILE, type SweepCallbacks, type SweepResult, type SweepRun } from "../../sweeps/run-sweep.js";
import type { SweepPlan } from "../../sweeps/sweep-plan.js";
import type { SweepConfig } from "../../sweeps/sweep-settings.js";
import type { TrialResult } from "../../sweeps/trial-result.js";
import { formatCommandLine, quoteArg } from "../command-line.js";
import { toOptionName } from "../options/option-names.js";
import type { Reporter } from "../reporter.js";
import { formatTable } from "./format-table.js";
import { reportDownloads } from "./report-downloads.js";
import { reportEpisodes } from "./report-episodes.js";
import { TrainingReport } from "./report-training.js";

/** Rows of the final table; results.json lists all trials. */
const MAX_TABLE_ROWS = 20;
/** Length of the run that the report suggests for the best trial, relative to a trial. */
const FULL_TRAINING_FACTOR = 10;

/**
 * Reports a sweep: its plan and the metric of each run on standard output, the current run on the
 * progress line.
 */
export class SweepReport {
  private readonly downloads: ReturnType<typeof reportDownloads>;
  private readonly shownMessages = new Set<string>();
  private training: TrainingReport | undefined;
  private evaluation: ReturnType<typeof reportEpisodes> | undefined;
  private plan: SweepPlan | undefined;
  private metric = "";

  constructor(
    private readonly reporter: Reporter,
    private readonly folder: string,
  ) {
    this.downloads = reportDownloads(reporter);
  }

  get callbacks(): SweepCallbacks {
    const { reporter } = this;
    return {
      onDownload: this.downloads.update,
      onWarning: (message) => this.once(message, reporter.warn),
      onInfo: (message) => this.once(message, reporter.info),
      onPlan: (plan, config) => {
        this.plan = plan;
        this.metric = config.metric;
        reporter.print(formatPlan(plan, config, this.folder));
      },
      onRunStart: (run) => {
        this.end();
        reporter.info(`${this.runLabel(run)}: ${formatSettings(run.settings)}`);
      },
      onProgress: (event, { share }) => {
        this.training ??= new TrainingReport(reporter);
        this.training.update({ ...event, progress: Math.min(1, event.progress / share) });
      },
      onEvaluation: (finished, total) => {
        this.evaluation ??= reportEpisodes(reporter, total, "Greedy evaluation");
        this.evaluation.add(finished);
      },
      onRungResult: ({ value }, run) => {
        this.end();
        reporter.print(`${this.runLabel(run)}: ${this.metric} ${formatSignificant(value)}`);
      },
      onFailure: (reason, run) => {
        this.end();
        reporter.print(`${this.runLabel(run)} failed: ${reason}`);
      },
    };
  }

  end(): void {
    this.downloads.end();
    this.evaluation?.end();
    this.training?.end();
    this.evaluation = undefined;
    this.training = undefined;
  }

  /** Prints messages that every run repeats once. */
  private once(message: string, print: (message: string) => void): void {
    if (this.shownMessages.has(message)) return;
    this.shownMessages.add(message);
    print(message);
  }

  private runLabel({ trial, seed, rung }: SweepRun): string {
    const rungs = this.plan?.rungs.length ?? 1;
    return `trial ${trial}, seed ${seed}${rungs > 1 ? `, rung ${rung}` : ""}`;
  }
}

function formatPlan({ trials, rungs }: SweepPlan, { seeds, method }: SweepConfig, folder: string): string {
  const seedCount = seeds.length === 1 ? "1 seed each" : `${seeds.length} seeds each`;
  const [first] = rungs;
  const stages = rungs.map(({ trials, share }) => `${trials} up to ${Number((100 * share).toPrecision(3))}% of a run`);
  return [
    `${first.trials} trials (${method}), ${seedCount}, in ${folder}.`,
    ...(rungs.length === 1 ? [] : [`Successive halving: ${stages.join(", then the best ")}.`]),
    ...trials.flatMap(({ number, failure }) =>
      failure === undefined ? [] : [`trial ${number} is invalid: ${failure}`],
    ),
  ].join("\n");
}

/**
 * Formats the results of a finished sweep: a table, the failed trials, and how to train the best
 * one.
 */
export function formatSweepReport({ config, trials, best }: SweepResult, folder: string): string {
  const compared = trials.filter(({ failure, value }) => failure === undefined && value !== undefined);
  const failed = trials.filter(({ failure }) => failure !== undefined);
  return [
    ...(compared.length === 0
      ? ["Every trial failed."]
      : ["", formatResultsTable(config, compared.slice(0, MAX_TABLE_ROWS))]),
    ...(compared.length > MAX_TABLE_ROWS
      ? [`... and ${compared.length - MAX_TABLE_ROWS} more in ${join(folder, "results.json")}`]
      : []),
    ...(failed.length > 0 ? [""] : []),
    ...failed.map(({ trial, settings, failure }) => `trial ${trial} (${formatSettings(settings)}) failed: ${failure!}`),
    ...(best === undefined ? [] : ["", describeNextSteps(config, best, folder)]),
  ].join("\n");
}

function formatResultsTable({ metric, search, method, seeds }: SweepConfig, trials: readonly TrialResult[]): string {
  const names = Object.keys(search);
  const isHalving = method === "halving";
  const header = [
    "TRIAL",
    ...names,
    metric,
    ...(seeds.length > 1 ? [""] : []),
    "SEEDS",
    ...(isHalving ? ["RUNG"] : []),
  ];
  const rows = trials.map(({ trial, settings, value, standardError, runs, rung }) => [
    String(trial),
    ...names.map((name) =>
      typeof settings[name] === "number" ? formatSignificant(settings[name]) : String(settings[name]),
    ),
    value!.toPrecision(4),
    ...(seeds.length > 1 ? [standardError === undefined ? "" : `± ${standardError.toPrecision(2)}`] : []),
    String(runs.length),
    ...(isHalving ? [String(rung)] : []),
  ]);
  const textColumns = names.flatMap((name, i) =>
    trials.every(({ settings }) => typeof settings[name] !== "number") ? [i + 1] : [],
  );
  return formatTable(
    [header, ...rows],
    header.map((_, i) => i).filter((i) => !textColumns.includes(i)),
  );
}

function describeNextSteps(
  { seeds, train, env, envOptions }: SweepConfig,
  { settings }: TrialResult,
  folder: string,
): string {
  const results = `All results: ${join(folder, "results.json")}; charts: trials.svg and curves.svg in the same folder.`;
  const example = env === undefined ? findExampleAlgorithm(train) : undefined;
  if (example !== undefined) {
    const { algorithm: _, ...given } = { ...train, ...settings } as Readonly<Record<string, unknown>>;
    const args = Object.entries(given).map(([name, value]) => formatArg(toOptionName(name), value));
    return `${results} Train the best trial again:\n${formatCommandLine(`${example} ${args.join(" ")}`)}`;
  }
  const { command, ...lengths } = describeLength({ env, envOptions, ...train, ...settings });
  const lengthArgs = Object.entries(lengths).flatMap(([name, value]) =>
    value === undefined ? [] : [` --${toOptionName(name)} ${FULL_TRAINING_FACTOR * value}`],
  );
  // A new seed: the best of many trials was also the luckiest with the seeds it ran with.
  const seed = Math.max(...seeds) + 1;
  const [config, output] = [BEST_FILE, "best"].map((name) => quoteArg(join(folder, name)));
  return [
    `${results} Train the best trial for longer:`,
    formatCommandLine(`${command} --config ${config}${lengthArgs.join("")} --seed ${seed} --output ${output}`),
  ].join("\n");
}

function formatArg(option: string, value: unknown): string {
  if (typeof value === "boolean") return `--${value ? "" : "no-"}${option}`;
  return `--${option} ${quoteArg(String(value))}`;
}

interface RunLength {
  readonly command: RunCommand;
  readonly episodes?: number;
  readonly turns?: number;
  readonly maxSteps?: number;
  readonly numTrainEpochs?: number;
}

/** Returns the command of a trial's runs and their length. */
function describeLength({ env, envOptions, ...options }: Partial<TrainOptions> & Partial<PromptRunOptions>): RunLength {
  if (env !== undefined) {
    const { episodes, turns } = resolveTrainConfig({ env, envOptions, ...options });
    return { command: "train", episodes, turns };
  }
  const { algorithm, maxSteps, numTrainEpochs } = resolvePromptRunConfig({ algorithm: "grpo", ...options });
  return { command: algorithm, ...(maxSteps === undefined ? { numTrainEpochs } : { maxSteps }) };
}
