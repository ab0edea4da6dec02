import { spawn } from "node:child_process";
import { readFileSync, rmSync } from "node:fs";
import { join, resolve } from "node:path";
import { gunzipSync } from "node:zlib";
import type { RandomStream } from "../../../src/index.js";
import type { RolloutRecord } from "../../../src/rl/tracking/rollouts/chunk.js";
import type { Driver } from "../driver.js";

const COMMAND = resolve("dist", "app", "cli", "main.js");
const DEVICE = ["--device", "cpu", "--threads", "1", "--save-steps", "1", "--seed", "3", "--r", "2"];
const SMALL = ["--turns", "64", "--batch-size", "16", "--num-envs", "4"];
const EPISODES = ["--episodes", "24", "--batch-size", "8", "--num-envs", "4", "--num-generations", "4"];

/** Runs of a few seconds, with a checkpoint after each update. */
const RUNS: Readonly<Record<string, readonly string[]>> = {
  ppo: ["train", "blackjack", ...DEVICE, ...SMALL],
  choices: ["train", "frozenlake", "--action-mode", "choices", ...DEVICE, ...SMALL],
  grpo: ["train", "blackjack", "--algorithm", "grpo", ...DEVICE, ...EPISODES],
  rloo: ["train", "blackjack", "--algorithm", "rloo", ...DEVICE, ...EPISODES],
  warmStart: ["train", "blackjack", "--sft-warm-start", "8", "--sft-steps", "3", ...DEVICE, ...SMALL],
  sft: ["sft", "--data", "demos.jsonl", "--max-steps", "8", "--batch-size", "4", ...DEVICE],
};

/** Records the data of `RUNS.sft`. */
const DEMOS = ["demos", "blackjack", "--episodes", "12", "--seed", "1", "--output", "demos.jsonl"];

interface Result {
  readonly metrics: readonly unknown[];
  readonly completions: readonly unknown[];
  readonly adapter: string;
}

const KILLED = 137;

/** Runs the command in a folder, killing it after a time; returns its exit status. */
function runCommand(args: readonly string[], cwd: string, killAfterMs?: number): Promise<number> {
  return new Promise((done, reject) => {
    const child = spawn(process.execPath, [COMMAND, ...args], { cwd, env: { ...process.env, WANDB_PROJECT: "" } });
    let output = "";
    child.stdout.on("data", (data: Buffer) => (output += data.toString()));
    child.stderr.on("data", (data: Buffer) => (output += data.toString()));
    const timer = killAfterMs === undefined ? undefined : setTimeout(() => child.kill("SIGKILL"), killAfterMs);
    child.on("close", (status) => {
      clearTimeout(timer);
      if (status === 0 || status === null) done(status ?? KILLED);
      else reject(new Error(`llamagym ${args.join(" ")} ended with status ${status}:\n${output.slice(-1500)}`));
    });
  });
}

const isTime = (key: string) => /^time\/|_time$|per_second$/.test(key);

/** Reads what must be equal, without measured times. */
function readResult(folder: string): Result {
  const read = (...names: string[]) => readFileSync(join(folder, ...names));
  const lines = read("metrics.jsonl").toString().trim().split("\n");
  const withoutTimes = (line: string) =>
    Object.fromEntries(Object.entries(JSON.parse(line) as object).filter(([key]) => !isTime(key)));
  const isSft = folder.endsWith("sft");
  return {
    metrics: lines.map(withoutTimes),
    completions: isSft ? [] : readCompletions(read("rollouts.jsonl").toString()),
    adapter: read(isSft ? "model" : "adapter", "adapter_model.safetensors").toString("base64"),
  };
}

/** Reads the recorded turns; a resumed run renders no state before its first turn. */
function readCompletions(rollouts: string): unknown[] {
  return rollouts
    .trim()
    .split("\n")
    .flatMap((line) => {
      const { step, data } = JSON.parse(line) as { step: number; data: string };
      const [, ...episodes] = gunzipSync(Buffer.from(data, "base64")).toString().split("\n");
      const parsed = episodes.map((episode) => JSON.parse(episode) as RolloutRecord["episodes"][number]);
      return parsed.flatMap(({ turns }) => turns.map(({ prompt, tokens, reward }) => [step, prompt, tokens, reward]));
    });
}

function checkEqual(name: string, actual: Result, expected: Result): void {
  for (const key of ["metrics", "completions", "adapter"] as const) {
    if (JSON.stringify(actual[key]) !== JSON.stringify(expected[key]))
      throw new Error(`${name}: ${key} differ after the kill.`);
  }
}

/** kill -9 of runs at random moments: the resumed run must equal an uninterrupted one. */
export const kills: Driver = {
  timeLimitMs: 100_000,
  share: 0.02,
  async start(scratch) {
    const expected = new Map<string, { result: Result; durationMs: number }>();
    const runWhole = async (name: string) => {
      const folder = join(scratch, `whole-${name}`);
      if (name === "sft") await runCommand(DEMOS, scratch);
      const start = performance.now();
      await runCommand([...RUNS[name], "--output", folder], scratch);
      return { result: readResult(folder), durationMs: performance.now() - start };
    };
    return async (random: RandomStream) => {
      const name = random.choice(Object.keys(RUNS));
      if (!expected.has(name)) expected.set(name, await runWhole(name));
      const { result, durationMs } = expected.get(name)!;
      const folder = join(scratch, `killed-${name}`);
      rmSync(folder, { recursive: true, force: true });
      const [command] = RUNS[name];
      let args = [...RUNS[name], "--output", folder];
      for (let kill = 1 + random.integers(3); kill > 0; kill--) {
        const status = await runCommand(args, scratch, random.uniform(0.1, 1) * durationMs);
        if (status === 0) break;
        // A run that was killed before it wrote its settings starts anew.
        if (isStarted(folder)) args = [command, "--resume", folder];
      }
      await runCommand(args[1] === "--resume" || !isStarted(folder) ? args : [command, "--resume", folder], scratch);
      checkEqual(name, readResult(folder), result);
    };
  },
};

function isStarted(folder: string): boolean {
  try {
    return readFileSync(join(folder, "config.json")).length > 0;
  } catch {
    return false;
  }
}
