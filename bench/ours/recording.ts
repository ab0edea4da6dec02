import { spawn } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import type { Readable } from "node:stream";
import { fileURLToPath } from "node:url";
import type { Result } from "../framework.js";
import type { RecordingWork } from "../recording.js";
import { serve } from "../serve.js";

// Compiled, this file is bench/.build/bench/ours/recording.js.
const command = fileURLToPath(new URL("../../../../dist/app/cli/bin.js", import.meta.url));
/**
 * Preloaded into a run: writes the processor time of all its threads to file descriptor 3 at its
 * end.
 */
const reportUsage = `
  import { writeSync } from "node:fs";
  import { isMainThread } from "node:worker_threads";
  if (isMainThread) process.once("exit", () => writeSync(3, JSON.stringify(process.cpuUsage())));
`;
const preload = `--import=data:text/javascript,${encodeURIComponent(reportUsage)}`;

interface Run {
  readonly cpu: number;
  readonly wall: number;
  /** Seconds of `time/recording`. */
  readonly recording: number;
}

async function train(args: readonly string[], rollouts: string): Promise<Run> {
  const folder = await mkdtemp(join(tmpdir(), "bench-recording-"));
  try {
    const output = join(folder, "run");
    const options = ["--rollouts", rollouts, "--seed", "1", "--eval-episodes", "0", "--threads", "1"];
    const start = performance.now();
    const child = spawn(process.execPath, [preload, command, "train", ...args, ...options, "--output", output], {
      stdio: ["ignore", "ignore", "ignore", "pipe"],
      env: { ...process.env, WANDB_PROJECT: "", OMP_NUM_THREADS: "1" },
    });
    const usage = JSON.parse(await text(child.stdio[3] as Readable)) as NodeJS.CpuUsage;
    const wall = (performance.now() - start) / 1000;
    const lines = (await readFile(join(output, "metrics.jsonl"), "utf8")).trim().split("\n");
    const recorded = lines.map((line) => (JSON.parse(line) as Record<string, number>)["time/recording"] ?? 0);
    return { cpu: (usage.user + usage.system) / 1e6, wall, recording: recorded.reduce((a, b) => a + b, 0) };
  } finally {
    await rm(folder, { recursive: true });
  }
}

const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;

/** Mean of what the pairs add, in percent, with its standard error. */
function addedPercent(pairs: readonly (readonly [Run, Run])[], name: "cpu" | "wall"): Record<string, number> {
  const percents = pairs.map(([samples, none]) => 100 * (samples[name] / none[name] - 1));
  const center = mean(percents);
  const variance = percents.reduce((sum, value) => sum + (value - center) ** 2, 0) / (percents.length - 1);
  return { [`${name}_percent`]: center, [`${name}_percent_error`]: Math.sqrt(variance / percents.length) };
}

await serve<RecordingWork>(async ({ pairs: count, args }): Promise<Result> => {
  const pairs: (readonly [Run, Run])[] = [];
  // Side by side, both runs have the same share of a machine that slows down or has other work.
  while (pairs.length < count) {
    // Each kind starts first in half of the pairs.
    const none = pairs.length % 2 === 0 ? train(args, "none") : undefined;
    const samples = train(args, "samples");
    pairs.push(await Promise.all([samples, none ?? train(args, "none")]));
  }
  const recorded = pairs.map(([samples]) => samples);
  const values = {
    ...addedPercent(pairs, "cpu"),
    ...addedPercent(pairs, "wall"),
    counter_percent: mean(recorded.map(({ recording, wall }) => (100 * recording) / wall)),
  };
  return { seconds: [mean(recorded.map(({ cpu }) => cpu))], count: 1, values };
});
