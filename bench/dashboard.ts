import type { Bench, BenchCase } from "./framework.js";

/**
 * The list of a folder of runs; a run's curves, opened, scrolled, zoomed and followed; the tokens
 * of an episode. Count: 1.
 */
export type DashboardWork =
  | { work: "list"; runs: number; updates: number }
  | { work: "curves"; updates: number; metrics: number; points: number }
  | { work: "tokens"; tokens: number };

const openCase = (name: string, parameters: DashboardWork): BenchCase => ({
  name,
  parameters,
  metric: { kind: "seconds" },
  warmup: 0,
  freshProcess: true,
});

export const bench: Bench = {
  name: "dashboard",
  description:
    "The dashboard's page in headless Chromium with a server that was just started: seconds until a view is complete; also  " +
    "frames and tasks over 50 ms of the page's main thread while it scrolls and zooms, and its heap after garbage collection.",
  ours: { module: "ours/dashboard.js" },
  peers: {},
  cases: [
    openCase("open_500_runs", { work: "list", runs: 500, updates: 20 }),
    openCase("open_100000_updates", { work: "curves", updates: 100_000, metrics: 30, points: 20 }),
    openCase("open_1000000_tokens", { work: "tokens", tokens: 1_000_000 }),
  ],
};
