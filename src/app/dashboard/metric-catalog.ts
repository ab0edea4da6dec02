import { readFile } from "node:fs/promises";
import { assets } from "#platform";
import type { MetricGroup, MetricInfo } from "./api.js";

/**
 * Reads the groups and explanations of metrics from docs/metrics.md, which is part of the package.
 */
export async function readMetricCatalog(): Promise<readonly MetricGroup[]> {
  return parseMetricCatalog(await readFile(assets.path("docs/metrics.md"), "utf8"));
}

/** Parses the tables of a page of metrics by their headings. */
function parseMetricCatalog(markdown: string): readonly MetricGroup[] {
  const groups = markdown
    .split(/^## /m)
    .slice(1)
    .map((section): MetricGroup => {
      const [title, ...lines] = section.split("\n");
      return { title, metrics: lines.filter((line) => line.startsWith("| `")).map(parseRow) };
    });
  return groups.filter(({ metrics }) => metrics.length > 0);
}

function parseRow(line: string): MetricInfo {
  const [names, meaning, healthy = "", unhealthy = ""] = line
    .split(/(?<!\\)\|/)
    .slice(1, -1)
    .map((cell) => cell.trim());
  return { names: Array.from(names.matchAll(/`([^`]+)`/g), ([, name]) => name), meaning, healthy, unhealthy };
}
