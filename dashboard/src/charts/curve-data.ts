import uPlot from "uplot";
import { computeSeedBand } from "../../../src/app/tracking/charts/seed-band.js";
import type { CurveSeries } from "../../../src/app/tracking/charts/learning-curve.js";
import type { MetricSeries } from "../../../src/app/dashboard/api.js";
import { seriesColor } from "./colors.js";
import type { PlotSeries } from "./plot.js";
import { smooth } from "./smooth.js";

/** A metric of a run with the name and color of the run. */
export interface RunSeries {
  readonly run: string;
  readonly index: number;
  readonly data: MetricSeries;
}

/** Runs that differ in their seed alone: their name and members. */
export interface SeedGroup {
  readonly name: string;
  readonly runs: readonly string[];
}

/** What a plot shows: x values for all series, and the series. */
export interface AlignedSeries {
  readonly x: readonly number[];
  readonly series: readonly PlotSeries[];
}

/**
 * Aligns a metric of several runs on common x values, smoothed by `weight` over pale raw values.
 */
export function alignRuns(runs: readonly RunSeries[], weight: number): AlignedSeries {
  const lines = runs.flatMap(({ run, index, data: { x, y } }) => {
    const color = seriesColor(index);
    if (weight === 0) return [{ name: run, color, x, y, faint: false }];
    return [
      { name: `${run}, raw`, color, x, y, faint: true },
      { name: run, color, x, y: smooth(y, weight), faint: false },
    ];
  });
  return joinLines(lines);
}

/** Averages the runs of each group, with a band from the lowest to the highest. */
export function alignGroups(runs: readonly RunSeries[], groups: readonly SeedGroup[], weight: number): AlignedSeries {
  const lines = groups.flatMap((group, index) => {
    const members = runs.filter(({ run }) => group.runs.includes(run)).map(({ data }) => dropGaps(data, weight));
    const color = seriesColor(index);
    const band = members.length > 1 ? tryBand(group.name, members) : undefined;
    const { x, y, low, high } = band ?? { ...members[0], low: undefined, high: undefined };
    return x === undefined ? [] : [{ name: group.name, color, x, y, low, high, faint: false }];
  });
  return joinLines(lines);
}

function dropGaps({ x, y }: MetricSeries, weight: number): { x: number[]; y: number[] } {
  const values = smooth(y, weight);
  const kept = x.map((_, i) => i).filter((i) => values[i] !== null);
  return { x: kept.map((i) => x[i]), y: kept.map((i) => values[i]!) };
}

/** Seeds that have just started have no common range yet. */
function tryBand(name: string, members: readonly { x: number[]; y: number[] }[]): CurveSeries | undefined {
  const start = Math.max(...members.map(({ x }) => x[0] ?? Infinity));
  const end = Math.min(...members.map(({ x }) => x[x.length - 1] ?? -Infinity));
  return start < end ? computeSeedBand(name, members, 200) : undefined;
}

interface Line extends PlotSeries {
  readonly x: readonly number[];
}

function joinLines(lines: readonly Line[]): AlignedSeries {
  if (lines.length === 0) return { x: [], series: [] };
  const tables = lines.map(({ x, y, low, high }) => [x, y, ...(low && high ? [low, high] : [])]);
  const [x, ...columns] = uPlot.join(tables as unknown as uPlot.AlignedData[]) as (number | null)[][];
  let next = 0;
  const series = lines.map(({ x: _x, y: _y, low, high, ...rest }) => ({
    ...rest,
    y: columns[next++],
    ...(low && high ? { low: columns[next++], high: columns[next++] } : {}),
  }));
  return { x: x as number[], series };
}
