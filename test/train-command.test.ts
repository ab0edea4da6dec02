import { cp, mkdir, mkdtemp, readFile, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { decodeChunk, parseRolloutLine } from "../src/rl/tracking/rollouts/chunk.js";
import { interruptAt, runCommand, runInHost, type CommandOptions } from "./support/command.js";
import { writeRandomModel } from "./support/random-model.js";

let model: string;
let removeModel: () => Promise<void>;
let folder: string;
beforeAll(async () => {
  ({ folder: model, remove: removeModel } = await writeRandomModel({ maxPositions: 256, scale: 0.2 }));
  folder = await mkdtemp(join(tmpdir(), "train-"));
});
afterAll(async () => {
  await removeModel();
  await rm(folder, { recursive: true });
});

/** Three updates of sixteen turns, a checkpoint after each. */
const trainArgs = () => {
  const run = ["--turns", "48", "--batch-size", "16", "--num-envs", "4", "--save-steps", "1", "--seed", "3"];
  const learning = ["--learning-rate", "0.01", "--num-ppo-epochs", "1", "--r", "2", "--action-mode", "choices"];
  return ["blackjack", "--model", model, "--device", "cpu", "--threads", "1", ...run, ...learning];
};

const trainInProcess = (args: readonly string[], options?: CommandOptions) => runCommand(["train", ...args], options);
const train = (args: readonly string[], options?: CommandOptions) => runInHost(["train", ...args], options);
const path = (name: string) => join(folder, name);
const listCheckpoints = async (name: string) => (await readdir(join(path(name), "checkpoints"))).sort();

/** The records of metrics.jsonl without measured times. */
async function readMetrics(name: string): Promise<Record<string, unknown>[]> {
  const text = await readFile(join(path(name), "metrics.jsonl"), "utf8");
  return text
    .trim()
    .split("\n")
    .map((line) => {
      const entries = Object.entries(JSON.parse(line) as Record<string, unknown>);
      return Object.fromEntries(entries.filter(([key]) => !/^time\/|_time$|per_second$/.test(key)));
    });
}

const readAdapter = (name: string) => readFile(join(path(name), "adapter", "adapter_model.safetensors"));

/** An uninterrupted run. */
beforeAll(async () => {
  await trainInProcess([...trainArgs(), "--output", path("whole")]);
});

async function expectUninterruptedResult(name: string): Promise<void> {
  expect(await readMetrics(name)).toEqual(await readMetrics("whole"));
  expect(await readAdapter(name)).toEqual(await readAdapter("whole"));
  expect(await listCheckpoints(name)).toEqual(await listCheckpoints("whole"));
}

describe("llamagym train", () => {
  it("saves settings, metrics, rollouts, the last two checkpoints and the adapter", async () => {
    const config = JSON.parse(await readFile(join(path("whole"), "config.json"), "utf8")) as Record<string, unknown>;
    expect(config).toMatchObject({
      version: 2,
      env: "Blackjack-v1",
      model,
      turns: 48,
      learningRate: 0.01,
      gamma: 0.99,
    });
    const metrics = await readMetrics("whole");
    expect(metrics.map((record) => [record.step, record.num_turns])).toEqual(
      [1, 2, 3].map((step) => [step, 16 * step]),
    );
    expect(await listCheckpoints("whole")).toEqual(["000002", "000003"]);
    const [line] = (await readFile(join(path("whole"), "rollouts.jsonl"), "utf8")).split("\n");
    const { episodes } = await decodeChunk(parseRolloutLine(line)!);
    expect(episodes[0].turns[0]).toMatchObject({ step: 1, text: expect.stringMatching(/^(hit|stay)$/) as string });
    expect(await readdir(join(path("whole"), "adapter"))).toContain("adapter_config.json");
  });

  it("draws the curve of the run with the reference policies", async () => {
    const svg = await readFile(join(path("whole"), "curve.svg"), "utf8");
    expect(svg).toMatch(/^<svg [^>]*aria-label="Blackjack-v1: mean return during training">/);
    expect(svg.trimEnd()).toMatch(/<\/svg>$/);
    const [, points] = /<path class="series"[^>]* d="M([^"]+)"/.exec(svg) ?? [];
    expect(points.split("L")).toHaveLength(3);
    for (const label of ["turns", "mean return", "best known", "random actions"]) expect(svg).toContain(`>${label}<`);
  });

  it("compares returns before and after training with known policies, and names the next commands", async () => {
    const { status, out, err } = await train([...trainArgs(), "--output", path("compared"), "--eval-episodes", "40"]);
    expect(status).toBe(0);
    expect(out).toMatch(/^Run folder: .*compared$/m);
    for (const row of ["random actions +-0.3942", "stick at 20 and above +-0.3501", "stick at 17 and above +-0.0759"])
      expect(out).toMatch(new RegExp(`^${row}$`, "m"));
    expect(out).toMatch(/^best policy +-0\.0431$/m);
    expect(out).toMatch(/^before training, greedy +-?\d\.\d{4} +± \d\.\d{4}$/m);
    expect(out).toMatch(/^after training, greedy +-?\d\.\d{4} +± \d\.\d{4}$/m);
    expect(out).toMatch(new RegExp(`node \\S*bin\\.js eval Blackjack-v1 --adapter ${path("compared")}/adapter$`, "m"));
    expect(err).toMatch(/update 1: ".*hit or stay\?.*" > "(hit|stay)" \(reward/);
    expect(err).toMatch(/^100% .*update 3$/m);
    // Evaluation draws no random numbers from training.
    await expectUninterruptedResult("compared");
  });

  it("stops after an update at Ctrl-C, and resumes to the same result", async () => {
    const output = path("stopped");
    const stopped = await trainInProcess([...trainArgs(), "--output", output], interruptAt("update 1:", "SIGINT"));
    expect(stopped.status).toBe(130);
    expect(stopped.err).toContain("Finishing this update, then saving. Press Ctrl-C again to quit now");
    expect(stopped.out).toMatch(
      /Stopped and saved after update [12]\. Resume with: node \S*bin\.js train --resume .*stopped$/m,
    );
    const resumed = await train(["--resume", output, "--eval-episodes", "40"]);
    expect(resumed.status).toBe(0);
    expect(resumed.out).toMatch(/^Resuming .*stopped from update [12]\.$/m);
    await expectUninterruptedResult("stopped");
  });

  it("exits immediately at a second Ctrl-C", async () => {
    let count = 0;
    const onStderr: CommandOptions["onStderr"] = (err, kill) => {
      if (count === 0 && err.includes("update 1:")) kill((count++, "SIGINT"));
      else if (count === 1 && err.includes("again to quit now")) kill((count++, "SIGINT"));
    };
    const args = [...trainArgs(), "--turns", "100000", "--output", path("quit")];
    const { status, out } = await trainInProcess(args, { onStderr });
    expect(status).toBe(130);
    expect(out).not.toContain("Stopped and saved");
  });

  // Renames of a run: its settings, the files and the folder of its first checkpoint, those of the
  // second.
  it.each([2, 6, 9, 10, 17])("survives kill -9 at rename %i, and resumes to the same result", async (at) => {
    const preload = fileURLToPath(new URL("support/kill-at-rename.mjs", import.meta.url));
    const name = `killed-${at}`;
    const killed = await trainInProcess([...trainArgs(), "--output", path(name)], {
      env: { NODE_OPTIONS: `--import ${preload}`, KILL_AT: String(at) },
    });
    expect(killed).toMatchObject({ status: null, signal: "SIGKILL" });
    const kept = await listCheckpoints(name).catch(() => []);
    const whole = kept.filter((each) => /^\d+$/.test(each));
    for (const each of whole)
      expect(await readdir(join(path(name), "checkpoints", each))).toEqual(
        expect.arrayContaining(["state.json", "optimizer.safetensors", "adapter_model.safetensors"]),
      );
    const resumed = await train(["--resume", path(name)]);
    expect({ status: resumed.status, err: resumed.err.includes("Error") }).toEqual({ status: 0, err: false });
    expect(resumed.out).toContain(whole.length > 0 ? `from update ${Number(whole.at(-1))}` : "Restarting");
    await expectUninterruptedResult(name);
  });

  it("can be extended", async () => {
    const output = path("longer");
    await train([...trainArgs(), "--turns", "32", "--output", output]);
    const { status, out } = await train(["--resume", output, "--turns", "48"]);
    expect({ status, isResumed: out.includes("from update 2") }).toEqual({ status: 0, isResumed: true });
    expect((await readMetrics("longer")).map(({ step }) => step)).toEqual([1, 2, 3]);
    expect((await train(["--resume", output])).out).toContain("already complete");
  });

  it("reads a config file and lets options override it", async () => {
    const file = path("settings.json");
    const own = {
      env: "Bandit-v0",
      model,
      turns: 1000,
      batchSize: 8,
      numEnvs: 2,
      actionMode: "choices",
      maxEpisodeSteps: 3,
      r: 2,
    };
    await writeFile(file, JSON.stringify(own));
    const { status, err } = await train(["--config", file, "--turns", "8", "--output", path("from-file")]);
    expect({ status, failed: err.includes("Error") }).toEqual({ status: 0, failed: false });
    const config = JSON.parse(await readFile(join(path("from-file"), "config.json"), "utf8")) as object;
    expect(config).toMatchObject({ env: "Bandit-v0", turns: 8, batchSize: 8, miniBatchSize: 8, maxEpisodeSteps: 3 });
  });

  it("trains on demonstrations alone, saves the result, and names the recipes of the environment", async () => {
    const args = ["FrozenLake-v1", "--sft-warm-start", "3", "--sft-steps", "2", "--turns", "0", "--r", "2"];
    const { status, out } = await train([...args, "--model", model, "--num-envs", "2", "--output", path("warm")]);
    expect(status).toBe(0);
    expect(out).toMatch(/^Saved .*warm.adapter\.$/m);
    expect(out).toMatch(/^Recipes: +frozenlake-layers, frozenlake-smollm2; run one: .*recipe NAME$/m);
    expect((await readMetrics("warm")).map(({ step }) => step)).toEqual([0]);
    expect((await readAdapter("warm")).length).toBeGreaterThan(0);
  });

  it("saves an interrupted warm start, and resumes it to the same result", async () => {
    const args = ["FrozenLake-v1", "--sft-warm-start", "3", "--sft-steps", "8", "--turns", "0", "--r", "2"];
    const small = ["--model", model, "--num-envs", "2", "--seed", "3", "--threads", "1", "--device", "cpu"];
    await train([...args, ...small, "--output", path("warm-whole")]);
    const interrupt = interruptAt("step 1/8", "SIGINT");
    const stopped = await trainInProcess([...args, ...small, "--output", path("warm-stopped")], interrupt);
    expect(stopped.status).toBe(130);
    expect(stopped.out).toMatch(
      /^Stopped and saved before the first update\. Resume with: .*--resume .*warm-stopped$/m,
    );
    expect(await listCheckpoints("warm-stopped")).toEqual(["warm_start"]);
    const resumed = await train(["--resume", path("warm-stopped")]);
    expect(resumed.status).toBe(0);
    expect(resumed.out).toMatch(/^Resuming .*warm-stopped from its warm start\.$/m);
    await expect(readMetrics("warm-stopped")).resolves.toEqual(await readMetrics("warm-whole"));
    expect(await readAdapter("warm-stopped")).toEqual(await readAdapter("warm-whole"));
  });

  it("trains with GRPO", async () => {
    const args = ["blackjack", "--model", model, "--algorithm", "grpo", "--action-mode", "choices", "--r", "2"];
    const sizes = ["--batch-size", "8", "--num-generations", "4", "--episodes", "16", "--num-envs", "4"];
    const { status } = await train([...args, ...sizes, "--output", path("grpo")]);
    expect(status).toBe(0);
    expect((await readMetrics("grpo")).length).toBeGreaterThan(0);
  });

  it.each([
    [["blackjak"], 1, /ENV_UNKNOWN.*Did you mean: `Blackjack`/],
    [["blackjack", "--learningrate", "1"], 2, /no option --learningrate. Did you mean --learning-rate\?/],
    [["blackjack", "--learning-rate", "-1"], 2, /--learning-rate must be a number >= 0, got -1/],
    [["blackjack", "--learning-rate=-1"], 2, /--learning-rate must be a number >= 0, got -1/],
    [["blackjack", "--batch-size", "0"], 2, /--batch-size must be an integer >= 1, got 0/],
    [["blackjack", "--batch-size", "8", "--mini-batch-size", "9"], 1, /a batch has only 8 samples/],
    [["blackjack", "--epsilon", "0.1"], 1, /epsilon is a setting of grpo, rloo, reinforce, but the algorithm is ppo/],
    [["blackjack", "--algorithm", "pppo"], 2, /--algorithm must be one of ppo/],
    [["blackjack", "--action-mode", "held"], 2, /--action-mode must be free, choices/],
    [["blackjack", "--action-mode", "regex"], 1, /actionMode "regex" requires actionRegex/],
    [["blackjack", "--action-mode", "regex", "--action-regex", "a\\b"], 1, /word boundaries \(\\b\) are not supported/],
    [["blackjack", "--action-mode", "regex", "--action-regex", "[a-z]{90}"], 1, /needs up to \d+ tokens.*Raise max/],
    [["blackjack", "--wandb-mode", "offline"], 1, /The W&B mode is "offline", but there is no project/],
    [["blackjack", "-o", "nonsense=1"], 1, /Blackjack has no option "nonsense"/],
    [["blackjack", "taxi"], 2, /Unexpected argument "taxi"/],
    [["blackjack", "--config", "nowhere.json"], 1, /FILE_NOT_FOUND.*nowhere\.json/],
    [["blackjack", "--output", "/dev/null/run"], 1, /FILE_WRITE_FAILED.*\/dev\/null is a file/],
    [["--resume", "nowhere"], 1, /There is no run in nowhere/],
    [["taxi", "--resume", "nowhere"], 2, /keeps its environment\. Leave "taxi" out/],
    [["--resume", "nowhere", "--gamma", "1"], 2, /keeps its --gamma\. Leave it out/],
    [[], 2, /ENV is missing/],
  ])("rejects %j with status %i, in one line, and writes nothing", async (args, status, message) => {
    const cwd = await mkdtemp(join(folder, "refused-"));
    const result = await runInHost(["train", ...args], { cwd, env: { HF_HUB_OFFLINE: "1" } });
    expect({ status: result.status, out: result.out }).toEqual({ status, out: "" });
    expect(result.err).toMatch(message);
    expect(result.err.trim()).not.toContain("\n");
    expect(await readdir(cwd)).toEqual([]);
  });

  it("suggests the nearest name for an unknown model", async () => {
    const offline = { env: { HF_HUB_OFFLINE: "1" } };
    expect((await train(["blackjack", "--model", "embeded"], offline)).err).toContain("Did you mean embedded?");
    expect((await train(["blackjack", "--model", "SmolLM2-135M-Instrct"], offline)).err).toContain(
      "Did you mean HuggingFaceTB/SmolLM2-135M-Instruct?",
    );
  });

  it("rejects the folder of another run and one of another version", async () => {
    const taken = await train([...trainArgs(), "--output", path("whole")]);
    expect(taken).toMatchObject({ status: 1, out: "" });
    expect(taken.err).toContain("already contains a run. Resume it with --resume");
    await mkdir(path("old"));
    await writeFile(join(path("old"), "config.json"), '{"version": 0, "env": "Blackjack-v1"}');
    const old = await train(["--resume", path("old")]);
    expect(old.status).toBe(1);
    expect(old.err).toMatch(/RUN_INCOMPATIBLE.*another version of llamagym \(format 0, expected 2\)/);
  });
});

describe("llamagym eval", () => {
  const evaluate = (args: readonly string[]) => runInHost(["eval", "blackjack", ...args]);

  it("evaluates an adapter with the settings of its run", async () => {
    const adapter = join(path("whole"), "adapter");
    const { status, out } = await evaluate(["--adapter", adapter, "--episodes", "60", "--json"]);
    expect(status).toBe(0);
    const result = JSON.parse(out) as Record<string, unknown>;
    expect(result).toMatchObject({
      env: "Blackjack-v1",
      model,
      adapter,
      actionMode: "choices",
      episodes: 60,
      invalidRatio: 0,
    });
    expect(result.references).toHaveLength(4);
    const again = await evaluate(["--adapter", adapter, "--episodes", "60", "--json", "--num-envs", "7"]);
    expect(JSON.parse(again.out)).toEqual(result);
  });

  it("warns that an adapter outside of its run brings no settings, unless some are given", async () => {
    const adapter = path("copied-adapter");
    await cp(join(path("whole"), "adapter"), adapter, { recursive: true });
    const copied = ["--adapter", adapter, "--model", model, "--episodes", "5"];
    const warning = `Warning: ${adapter} is not in a run folder, so completions have the settings of a new run.`;
    expect((await evaluate(copied)).err).toContain(warning);
    expect((await evaluate([...copied, "--action-mode", "choices"])).err).not.toContain(warning);
    expect((await evaluate(["--adapter", join(path("whole"), "adapter"), "--episodes", "5"])).err).not.toContain(
      warning,
    );
  });

  it("samples completions on request, and reports the share of invalid ones", async () => {
    const args = ["--model", model, "--episodes", "30", "--action-mode", "free", "--max-new-tokens", "2", "--sample"];
    const { status, out } = await evaluate(args);
    expect(status).toBe(0);
    expect(out).toMatch(/, sampled +-?\d\.\d{4} +± \d\.\d{4}$/m);
    expect(out).toMatch(/^30 episodes, [\d.]+ turns on average; \d+\.\d% of the completions had no valid action\.$/m);
  });

  it("reports how actions were extracted if the environment could not parse them", async () => {
    const pattern = ["--action-mode", "regex", "--action-regex", "stya", "--max-new-tokens", "8"];
    const { status, out } = await evaluate(["--model", model, "--episodes", "5", ...pattern]);
    expect(status).toBe(0);
    expect(out).toMatch(/^Action extraction: nearest 100\.0%\.$/m);
  });

  it("has no reference policies for a variant", async () => {
    const args = ["frozen-lake", "-o", "isSlippery=false", "--model", model, "-n", "2", "--json"];
    const { out } = await runInHost(["eval", ...args]);
    expect(JSON.parse(out)).toMatchObject({ references: [] });
  });

  it.each([
    [["eval"], 2, /ENV is missing/],
    [["eval", "blackjack", "--episodes", "0"], 2, /--episodes must be/],
    [["eval", "blackjack", "--adapter", "nowhere"], 1, /nowhere/],
  ])("rejects %j", async (args, status, message) => {
    const result = await runInHost(args);
    expect({ status: result.status, out: result.out }).toEqual({ status, out: "" });
    expect(result.err).toMatch(message);
  });
});
