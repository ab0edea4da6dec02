import { join } from "node:path";
import { LiveProgress } from "../tracking/index.js";
import { resolveTrainConfig } from "../training/settings.js";
import { settingsText, shortNumber } from "../training/sweep/pictures.js";
import type { SweepPlan } from "../training/sweep/plan.js";
import type { TrialResult } from "../training/sweep/results.js";
import type { SweepConfig } from "../training/sweep/settings.js";
import { BEST_FILE, type SweepResult, type SweepStage, type SweepWatch } from "../training/sweep/sweep.js";
import { EpisodeCounter } from "./episode-counter.js";
import { DownloadBars } from "./progress.js";
import { print, table } from "./output.js";

/** Rows of the table at the end; results.json has all. */
const ROWS = 20;
/** How many times longer the command for the best trial is than the sweep. */
const LONGER = 10;

/** What a person sees of a sweep: its plan and its values on standard output, the run under way on standard error. */
export class SweepDisplay {
  private readonly bars = new DownloadBars();
  private readonly told = new Set<string>();
  private progress = new LiveProgress();
  private counter: EpisodeCounter | undefined;
  private plan: SweepPlan | undefined;
  private metric = "";

  constructor(private readonly folder: string) {}

  readonly watch: SweepWatch = {
    onDownload: this.bars.update,
    warn: (message) => this.tell(message),
    note: (message) => this.tell(message),
    onPlan: (plan, config) => {
      this.plan = plan;
      this.metric = config.metric;
      print(planText(plan, config, this.folder));
    },
    onStage: (stage) => {
      this.end();
      this.progress = new LiveProgress();
      this.progress.print(`${this.name(stage)}: ${settingsText(stage.settings)}`);
    },
    onProgress: ({ progress: { updates, episodes }, done, metrics }, { share }) => {
      this.bars.end();
      this.progress.show({ done: Math.min(1, done / share), updates, episodes, metrics });
    },
    onEvaluation: (ended, total) => {
      this.progress.end();
      this.counter ??= new EpisodeCounter(total, "greedy play: ");
      this.counter.add(ended);
    },
    onMeasure: ({ value }, stage) => {
      this.end();
      print(`${this.name(stage)}: ${this.metric} ${shortNumber(value)}`);
    },
    onFailure: (reason, stage) => {
      this.end();
      print(`${this.name(stage)} failed: ${reason}`);
    },
  };

  end(): void {
    this.counter?.end();
    this.counter = undefined;
    this.progress.end();
  }

  /** A thing that holds for every run is said once. */
  private tell(message: string): void {
    if (this.told.has(message)) return;
    this.told.add(message);
    this.progress.print(message);
  }

  private name({ trial, seed, rung }: SweepStage): string {
    const rungs = this.plan?.rungs.length ?? 1;
    return `trial ${trial}, seed ${seed}${rungs > 1 ? `, rung ${rung}` : ""}`;
  }
}

function planText({ trials, rungs }: SweepPlan, { seeds, method }: SweepConfig, folder: string): string {
  const each = seeds.length === 1 ? `seed ${seeds[0]}` : `${seeds.length} seeds each`;
  const [first] = rungs;
  const parts = rungs.map(({ trials, share }) => `${trials} until ${percent(share)} of a run is done`);
  return [
    `${first.trials} trials (${method}) with ${each}, kept in ${folder}.`,
    ...(rungs.length === 1 ? [] : [`Successive halving: ${parts.join(", then the best ")}.`]),
    ...trials.flatMap(({ number, failure }) =>
      failure === undefined ? [] : [`trial ${number} cannot be: ${failure}`],
    ),
  ].join("\n");
}

function percent(share: number): string {
  return `${Number((100 * share).toPrecision(3))} %`;
}

/** The table of a finished sweep, what failed, where the pictures are, and what to do with the best. */
export function sweepReport({ config, trials, best }: SweepResult, folder: string): string {
  const compared = trials.filter(({ failure, value }) => failure === undefined && value !== undefined);
  const failed = trials.filter(({ failure }) => failure !== undefined);
  return [
    ...(compared.length === 0 ? ["Every trial failed."] : ["", resultsTable(config, compared.slice(0, ROWS))]),
    ...(compared.length > ROWS ? [`... and ${compared.length - ROWS} more in ${join(folder, "results.json")}`] : []),
    ...(failed.length > 0 ? [""] : []),
    ...failed.map(({ trial, settings, failure }) => `trial ${trial} (${settingsText(settings)}) failed: ${failure!}`),
    ...(best === undefined ? [] : ["", closing(config, best, folder)]),
  ].join("\n");
}

function resultsTable({ metric, search, method, seeds }: SweepConfig, trials: readonly TrialResult[]): string {
  const names = Object.keys(search);
  const isHalving = method === "halving";
  const head = ["TRIAL", ...names, metric, ...(seeds.length > 1 ? [""] : []), "SEEDS", ...(isHalving ? ["RUNG"] : [])];
  const rows = trials.map(({ trial, settings, value, standardError, runs, rung }) => [
    String(trial),
    ...names.map((name) => cell(settings[name])),
    value!.toPrecision(4),
    ...(seeds.length > 1 ? [standardError === undefined ? "" : `± ${standardError.toPrecision(2)}`] : []),
    String(runs.length),
    ...(isHalving ? [String(rung)] : []),
  ]);
  const texts = names.flatMap((name, i) =>
    trials.every(({ settings }) => typeof settings[name] !== "number") ? [i + 1] : [],
  );
  return table(
    [head, ...rows],
    head.map((_, i) => i).filter((i) => !texts.includes(i)),
  );
}

function cell(value: string | number | boolean): string {
  return typeof value === "number" ? shortNumber(value) : String(value);
}

function closing({ seeds, train, env, envOptions }: SweepConfig, { settings }: TrialResult, folder: string): string {
  const { turns, episodes } = resolveTrainConfig({ env, envOptions, ...train, ...settings });
  const lengths = Object.entries({ episodes, turns }).flatMap(([name, value]) =>
    value === undefined ? [] : [` --${name} ${LONGER * value}`],
  );
  // A seed that had no part in the choice: of many trials the best one was also lucky.
  const seed = Math.max(...seeds) + 1;
  return [
    `results.json has every value, ${join(folder, "trials.svg")} and curves.svg draw them. Train the best at length:`,
    `llamagym train --config ${join(folder, BEST_FILE)}${lengths.join("")} --seed ${seed} --output ${join(folder, "best")}`,
  ].join("\n");
}
