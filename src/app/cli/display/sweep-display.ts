import { join } from "node:path";
import { LiveProgress } from "../../tracking/index.js";
import { resolveTrainConfig } from "../../runs/run-settings.js";
import { formatSettings, formatSignificant } from "../../sweeps/charts.js";
import type { SweepPlan } from "../../sweeps/sweep-plan.js";
import type { TrialResult } from "../../sweeps/trial-result.js";
import type { SweepConfig } from "../../sweeps/sweep-settings.js";
import { BEST_FILE, type SweepResult, type SweepRun, type SweepCallbacks } from "../../sweeps/run-sweep.js";
import { EpisodeCounter } from "./episode-counter.js";
import { DownloadProgressBar } from "./download-progress-bar.js";
import { print, formatTable } from "./output.js";

/** Rows of the table at the end; results.json has all. */
const MAX_TABLE_ROWS = 20;
/** How many times longer the command for the best trial is than the sweep. */
const FULL_TRAINING_FACTOR = 10;

/** What a person sees of a sweep: its plan and its values on standard output, the run under way on standard error. */
export class SweepDisplay {
  private readonly progressBar = new DownloadProgressBar();
  private readonly shownMessages = new Set<string>();
  private progress = new LiveProgress();
  private counter: EpisodeCounter | undefined;
  private plan: SweepPlan | undefined;
  private metric = "";

  constructor(private readonly folder: string) {}

  readonly callbacks: SweepCallbacks = {
    onDownload: this.progressBar.update,
    onWarning: (message) => this.printOnce(message),
    onInfo: (message) => this.printOnce(message),
    onPlan: (plan, config) => {
      this.plan = plan;
      this.metric = config.metric;
      print(formatPlan(plan, config, this.folder));
    },
    onRunStart: (stage) => {
      this.end();
      this.progress = new LiveProgress();
      this.progress.print(`${this.stageLabel(stage)}: ${formatSettings(stage.settings)}`);
    },
    onProgress: ({ state: { updates, episodes }, progress: done, metrics }, { share }) => {
      this.progressBar.clear();
      this.progress.update({ progress: Math.min(1, done / share), updates, episodes, metrics });
    },
    onEvaluation: (ended, total) => {
      this.progress.end();
      this.counter ??= new EpisodeCounter(total, "greedy play: ");
      this.counter.add(ended);
    },
    onRungResult: ({ value }, stage) => {
      this.end();
      print(`${this.stageLabel(stage)}: ${this.metric} ${formatSignificant(value)}`);
    },
    onFailure: (reason, stage) => {
      this.end();
      print(`${this.stageLabel(stage)} failed: ${reason}`);
    },
  };

  end(): void {
    this.counter?.clear();
    this.counter = undefined;
    this.progress.end();
  }

  /** A thing that holds for every run is said once. */
  private printOnce(message: string): void {
    if (this.shownMessages.has(message)) return;
    this.shownMessages.add(message);
    this.progress.print(message);
  }

  private stageLabel({ trial, seed, rung }: SweepRun): string {
    const rungs = this.plan?.rungs.length ?? 1;
    return `trial ${trial}, seed ${seed}${rungs > 1 ? `, rung ${rung}` : ""}`;
  }
}

function formatPlan({ trials, rungs }: SweepPlan, { seeds, method }: SweepConfig, folder: string): string {
  const perTrial = seeds.length === 1 ? `seed ${seeds[0]}` : `${seeds.length} seeds each`;
  const [first] = rungs;
  const stages = rungs.map(({ trials, share }) => `${trials} until ${formatPercent(share)} of a run is done`);
  return [
    `${first.trials} trials (${method}) with ${perTrial}, kept in ${folder}.`,
    ...(rungs.length === 1 ? [] : [`Successive halving: ${stages.join(", then the best ")}.`]),
    ...trials.flatMap(({ number, failure }) =>
      failure === undefined ? [] : [`trial ${number} cannot be: ${failure}`],
    ),
  ].join("\n");
}

function formatPercent(share: number): string {
  return `${Number((100 * share).toPrecision(3))} %`;
}

/** The table of a finished sweep, what failed, where the pictures are, and what to do with the best. */
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
    ...names.map((name) => formatCell(settings[name])),
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

function formatCell(value: string | number | boolean): string {
  return typeof value === "number" ? formatSignificant(value) : String(value);
}

function describeNextSteps(
  { seeds, train, env, envOptions }: SweepConfig,
  { settings }: TrialResult,
  folder: string,
): string {
  const { turns, episodes } = resolveTrainConfig({ env, envOptions, ...train, ...settings });
  const lengthArgs = Object.entries({ episodes, turns }).flatMap(([name, value]) =>
    value === undefined ? [] : [` --${name} ${FULL_TRAINING_FACTOR * value}`],
  );
  // A seed that had no part in the choice: of many trials the best one was also lucky.
  const seed = Math.max(...seeds) + 1;
  return [
    `results.json has every value, ${join(folder, "trials.svg")} and curves.svg draw them. Train the best at length:`,
    `llamagym train --config ${join(folder, BEST_FILE)}${lengthArgs.join("")} --seed ${seed} --output ${join(folder, "best")}`,
  ].join("\n");
}
