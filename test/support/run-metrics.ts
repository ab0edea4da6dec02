import { readFileSync } from "node:fs";
import { join } from "node:path";

/** Reads the metrics of a run's updates without its times and the tokens that a service counted. */
export function readRunMetrics(folder: string): Record<string, number>[] {
  const lines = readFileSync(join(folder, "metrics.jsonl"), "utf8").trim().split("\n");
  return lines.map((line) => {
    const metrics = Object.entries(JSON.parse(line) as Record<string, number>);
    return Object.fromEntries(metrics.filter(([key]) => !/time|per_second|^service/u.test(key)));
  });
}

/**
 * Lists the metrics in which two runs differ by more than a tolerance, which is near their
 * rounding.
 */
export function listDifferences(actual: string, expected: string, tolerance = 1e-4): string[] {
  const [actualRun, expectedRun] = [readRunMetrics(actual), readRunMetrics(expected)];
  const updates = actualRun.length === expectedRun.length ? [] : [`${actualRun.length} updates`];
  const differences = expectedRun.flatMap((metrics, i) =>
    Object.entries(metrics).flatMap(([name, value]) =>
      // A service does not return the first. The second counts rewards above others, and before the
      // first step the policy is its reference, so that both rewards are rounding errors.
      name.endsWith("mean_token_accuracy") ||
      (i === 0 && name === "rewards/accuracies") ||
      Math.abs(actualRun[i]?.[name] - value) <= tolerance
        ? []
        : [`${name} of update ${i}: ${actualRun[i]?.[name]} and ${value}`],
    ),
  );
  return [...updates, ...differences];
}
