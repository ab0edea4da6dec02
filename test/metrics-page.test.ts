import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";

const root = fileURLToPath(new URL("..", import.meta.url));

/** Where trainers and what they call name their metrics. */
const FOLDERS = ["rl", "app/runs"];
const GROUPS =
  "rollout|completions|objective|policy|val|returns|loss|clip_ratio|vespo|time|sft|replay|extraction|rewards|eval";

async function findMetricNames(folder: string): Promise<string[]> {
  const path = join(root, "src", folder);
  const files = (await readdir(path, { recursive: true })).filter((name) => /(?<!\.test)\.ts$/.test(name));
  const sources = await Promise.all(files.map((name) => readFile(join(path, name), "utf8")));
  const metricName = new RegExp(`"((?:${GROUPS})/[a-z_/]+)"`, "g");
  return sources.flatMap((source) => Array.from(source.matchAll(metricName), ([, name]) => name));
}

describe("docs/metrics.md", () => {
  it("explains every metric that the trainers log", async () => {
    const page = await readFile(join(root, "docs", "metrics.md"), "utf8");
    const names = new Set((await Promise.all(FOLDERS.map(findMetricNames))).flat());
    expect(names.size).toBeGreaterThan(20);
    expect([...names].filter((name) => !page.includes(`\`${name}\``))).toEqual([]);
  });
});
