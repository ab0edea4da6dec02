import type { MetricGroup, MetricInfo, RunDetail } from "../../../src/app/dashboard/api.js";
import type { SeedGroup } from "../charts/curve-data.js";

/** Metrics of the runs by the groups of docs/metrics.md. */
export interface MetricGroups {
  readonly groups: readonly { readonly title: string; readonly metrics: readonly string[] }[];
  readonly infoOf: (name: string) => MetricInfo | undefined;
}

/**
 * Sorts recorded metrics into the groups of the documentation; metrics that it does not name come
 * last.
 */
export function groupMetrics(names: readonly string[], catalog: readonly MetricGroup[]): MetricGroups {
  const infos = new Map<string, MetricInfo>();
  const left = new Set(names);
  const groups = catalog.map(({ title, metrics }) => {
    const members = metrics.flatMap((info) =>
      info.names.flatMap((pattern) => {
        const found = [...left].filter((name) => matchesName(name, pattern));
        for (const name of found) {
          left.delete(name);
          infos.set(name, info);
        }
        return found;
      }),
    );
    return { title, metrics: members };
  });
  return {
    groups: [...groups, { title: "Other", metrics: [...left] }].filter(({ metrics }) => metrics.length > 0),
    infoOf: (name) => infos.get(name),
  };
}

/** NAME in a documented name stands for any name. */
function matchesName(name: string, pattern: string): boolean {
  if (!pattern.includes("NAME")) return name === pattern;
  const [before, after] = pattern.split("NAME", 2);
  return name.length > before.length + after.length && name.startsWith(before) && name.endsWith(after);
}

/** Settings that may differ between seeds of one experiment. */
const SEED_SETTINGS = new Set(["seed", "output", "runName", "checkpointDir"]);

/** Groups runs whose configurations differ in the seed alone. */
export function groupSeeds(details: readonly RunDetail[]): SeedGroup[] {
  const groups = new Map<string, string[]>();
  for (const { row, config } of details) {
    const key = JSON.stringify(Object.entries(config).filter(([name]) => !SEED_SETTINGS.has(name)));
    groups.set(key, [...(groups.get(key) ?? []), row.id]);
  }
  return [...groups.values()].map((runs) => ({
    name: runs.length === 1 ? runs[0] : `${runs[0]} and ${runs.length - 1} more`,
    runs,
  }));
}
