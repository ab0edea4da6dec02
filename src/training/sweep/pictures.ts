import { join } from "node:path";
import { knownReturns } from "../../envs/index.js";
import { writeFileAtomic } from "../../files/index.js";
import { dotChartSvg, learningCurveSvg, metricCurve, seedBand, type CurveSeries } from "../../tracking/index.js";
import type { TrialResult } from "./results.js";
import type { SweepConfig } from "./settings.js";
import type { TrialSettings } from "./trial-settings.js";

/** Trials whose curves are drawn. */
const CURVES = 5;

/** Settings in a line: "learningRate 0.003, entropyCoef 0.1". */
export function settingsText(settings: TrialSettings): string {
  return Object.entries(settings)
    .map(([name, value]) => `${name} ${typeof value === "number" ? shortNumber(value) : String(value)}`)
    .join(", ");
}

/** A number to four digits. */
export function shortNumber(value: number): string {
  return String(Number(value.toPrecision(4)));
}

/**
 * Draws a sweep: trials.svg has the metric of each trial, curves.svg the mean return while the best trained. What cannot be drawn,
 * because no trial has it, is left out. `trials` are the best first.
 */
export async function writePictures(
  folder: string,
  config: SweepConfig,
  trials: readonly TrialResult[],
): Promise<void> {
  const measured = trials.filter(({ failure, value }) => failure === undefined && value !== undefined);
  if (measured.length === 0) return;
  await writeFileAtomic(join(folder, "trials.svg"), trialsSvg(config, measured));
  const curves = await bestCurves(folder, measured);
  if (curves.length === 0) return;
  const { env, envOptions } = config;
  const { random, best } = Object.keys(envOptions).length === 0 ? (knownReturns[env] ?? {}) : {};
  const references = [
    ...(random === undefined ? [] : [{ name: "random actions", y: random }]),
    ...(best === undefined ? [] : [{ name: "best known", y: best }]),
  ];
  const svg = learningCurveSvg({
    title: `${env}: the best trials, mean and range over seeds`,
    xLabel: "turns",
    yLabel: "mean return while training",
    series: curves,
    references,
  });
  await writeFileAtomic(join(folder, "curves.svg"), svg);
}

function trialsSvg({ env, metric, seeds }: SweepConfig, trials: readonly TrialResult[]): string {
  const rungs = [...new Set(trials.map(({ rung }) => rung))];
  const spread = seeds.length > 1 ? `; mean ± standard error over ${seeds.length} seeds` : "";
  return dotChartSvg({
    title: `${env}: ${metric} of each trial`,
    xLabel: `trials, the best first${spread}`,
    yLabel: metric,
    series: rungs.map((rung) => ({
      name: rungs.length === 1 ? "trials" : `compared last at rung ${rung}`,
      dots: trials
        .filter((trial) => trial.rung === rung)
        .map(({ trial, settings, value, standardError, runs }) => ({
          label: String(trial),
          y: value!,
          error: standardError,
          values: runs.flatMap(({ measures }) =>
            measures.filter((measure) => measure.rung === rung).map(({ value }) => value),
          ),
          note: `trial ${trial}: ${settingsText(settings)}`,
        })),
    })),
  });
}

/** A curve for each of the best trials, where its runs have two points or more. */
async function bestCurves(folder: string, trials: readonly TrialResult[]): Promise<CurveSeries[]> {
  const curves: CurveSeries[] = [];
  for (const { trial, settings, runs } of trials.slice(0, CURVES)) {
    const seeds = await Promise.all(runs.map((run) => metricCurve(join(folder, run.folder))));
    const isDrawable = seeds.every(({ x }) => x.length > 1);
    if (isDrawable) curves.push(seedBand(`${trial}: ${settingsText(settings)}`, seeds));
  }
  return curves;
}
