import { join } from "node:path";
import { writeFileAtomic } from "../../core/files/write-file-atomic.js";
import {
  renderDotChart,
  renderLearningCurve,
  readMetricCurve,
  computeSeedBand,
  type CurveSeries,
} from "../tracking/index.js";
import { listReferences, MEAN_REWARD } from "../runs/run-curve.js";
import { findRunEnv } from "../runs/run-env.js";
import { findExampleAlgorithm } from "./search-space.js";
import type { TrialResult } from "./trial-result.js";
import type { SweepConfig } from "./sweep-settings.js";
import type { TrialSettings } from "./trial-settings.js";

/** Number of trials whose curves are drawn. */
const MAX_CURVES = 5;

/** Formats settings as "learningRate 0.003, entropyCoef 0.1". */
export function formatSettings(settings: TrialSettings): string {
  return Object.entries(settings)
    .map(([name, value]) => `${name} ${typeof value === "number" ? formatSignificant(value) : String(value)}`)
    .join(", ");
}

/** Formats a number to four significant digits. */
export function formatSignificant(value: number): string {
  return String(Number(value.toPrecision(4)));
}

/**
 * Writes trials.svg with the metric of each trial, and curves.svg with the mean return of the best
 * trials during training. Omits a chart without data. `trials` are sorted from best to worst.
 */
export async function writeCharts(folder: string, config: SweepConfig, trials: readonly TrialResult[]): Promise<void> {
  const compared = trials.filter(({ failure, value }) => failure === undefined && value !== undefined);
  if (compared.length === 0) return;
  await writeFileAtomic(join(folder, "trials.svg"), renderTrialsChart(config, compared));
  const curves = await readBestCurves(folder, compared, config);
  if (curves.length === 0) return;
  const { env, envOptions } = config;
  const svg = renderLearningCurve({
    title: `${env ?? runsOn(config)}: the best trials, mean and range over seeds`,
    xLabel: env === undefined ? "updates" : "turns",
    yLabel: env === undefined ? updateMetric(config) : "mean return while training",
    series: curves,
    references: listReferences(findRunEnv({ ...config.train, env, envOptions })),
  });
  await writeFileAtomic(join(folder, "curves.svg"), svg);
}

/** Names what runs on a file train on. */
const runsOn = ({ train }: SweepConfig) => (findExampleAlgorithm(train) === undefined ? "prompts" : "examples");

/** Returns the metric of the updates of runs on a file. */
function updateMetric({ train }: SweepConfig): string {
  const algorithm = findExampleAlgorithm(train);
  return algorithm === undefined ? MEAN_REWARD : `${algorithm}/loss`;
}

function renderTrialsChart(config: SweepConfig, trials: readonly TrialResult[]): string {
  const { env, metric, seeds } = config;
  const rungs = [...new Set(trials.map(({ rung }) => rung))];
  const errorNote = seeds.length > 1 ? `; mean ± standard error over ${seeds.length} seeds` : "";
  return renderDotChart({
    title: `${env ?? runsOn(config)}: ${metric} of each trial`,
    xLabel: `trials, the best first${errorNote}`,
    yLabel: metric,
    series: rungs.map((rung) => ({
      name: rungs.length === 1 ? "trials" : `compared last at rung ${rung}`,
      dots: trials
        .filter((trial) => trial.rung === rung)
        .map(({ trial, settings, value, standardError, runs }) => ({
          label: String(trial),
          y: value!,
          error: standardError,
          values: runs.flatMap(({ rungResults }) =>
            rungResults.filter((result) => result.rung === rung).map(({ value }) => value),
          ),
          tooltip: `trial ${trial}: ${formatSettings(settings)}`,
        })),
    })),
  });
}

/** Computes a curve for each of the best trials whose runs have at least two points. */
async function readBestCurves(
  folder: string,
  trials: readonly TrialResult[],
  config: SweepConfig,
): Promise<CurveSeries[]> {
  const curve = config.env === undefined ? ([updateMetric(config), "step"] as const) : [];
  const curves: CurveSeries[] = [];
  for (const { trial, settings, runs } of trials.slice(0, MAX_CURVES)) {
    const seeds = await Promise.all(runs.map((run) => readMetricCurve(join(folder, run.folder), ...curve)));
    const hasCurves = seeds.every(({ x }) => x.length > 1);
    if (hasCurves) curves.push(computeSeedBand(`${trial}: ${formatSettings(settings)}`, seeds));
  }
  return curves;
}
