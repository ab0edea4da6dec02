import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { interruptAt, runCommand, runInHost, type CommandOptions, type CommandResult } from "./support/command.js";
import { writeRandomModel } from "./support/random-model.js";

let model: string;
let removeModel: () => Promise<void>;
let folder: string;
beforeAll(async () => {
  ({ folder: model, remove: removeModel } = await writeRandomModel({ maxPositions: 256, scale: 0.2 }));
  folder = await mkdtemp(join(tmpdir(), "sweep-command-"));
});
afterAll(async () => {
  await removeModel();
  await rm(folder, { recursive: true });
});

const path = (name: string) => join(folder, name);
const sweep = (args: readonly string[]) => runInHost(["sweep", ...args]);
const sweepInProcess = (args: readonly string[], options?: CommandOptions) => runCommand(["sweep", ...args], options);

/** Three updates of eight turns. */
const fixedArgs = () => {
  const run = ["--turns", "24", "--batch-size", "8", "--num-envs", "4", "--save-steps", "1", "--num-ppo-epochs", "1"];
  return ["--model", model, "--device", "cpu", "--threads", "1", "--action-mode", "choices", "--r", "2", ...run];
};

/** Several commands, each with several runs, on a busy machine. */
const SLOW_TIMEOUT_MS = 180_000;

/** Four runs: two trials with two seeds each. */
const fourRunArgs = (name: string) => {
  const search = ["-s", "learning-rate=0.001..0.1:log:2", "--search", "entropyCoef=0.1"];
  return ["blackjack", ...fixedArgs(), ...search, "--seeds", "2", "--output", path(name)];
};

const readResults = (name: string) => readFile(join(path(name), "results.json"), "utf8");
const RUN_LINE = /^trial (\d), seed (\d): rollout\/ep_rew_mean -?[\d.]+$/gm;
const listRuns = (out: string) => Array.from(out.matchAll(RUN_LINE), ([, trial, seed]) => `${trial}/${seed}`);
const ALL_RUNS = [1, 2].flatMap((trial) => [`${trial}/1`, `${trial}/2`]);

describe("llamagym sweep", () => {
  let whole: CommandResult;
  beforeAll(async () => {
    whole = await sweepInProcess(fourRunArgs("whole"));
  }, SLOW_TIMEOUT_MS);

  it("prints its plan, the metric of each run, and a table with the best trial first", () => {
    const { status, out, err } = whole;
    expect({ status, failed: err.includes("Error") }).toEqual({ status: 0, failed: false });
    expect(out).toMatch(/^2 trials \(grid\), 2 seeds each, in .*whole\.$/m);
    expect(listRuns(out)).toEqual(ALL_RUNS);
    expect(out).toMatch(/^TRIAL +learningRate +entropyCoef +rollout\/ep_rew_mean +SEEDS$/m);
    const rows = out.match(/^ +\d +0\.(001|1) +0\.1 +-?\d\.\d+ +± \d\.\d+ +2$/gm)!;
    const means = rows.map((row) => Number(row.trim().split(/ +/)[3]));
    expect(means).toHaveLength(2);
    expect(means).toEqual([...means].sort((a, b) => b - a));
  });

  it(
    "saves runs that other commands open, results, charts, and prints the command for the best trial",
    { timeout: SLOW_TIMEOUT_MS },
    async () => {
      const { best, command } = await printedCommand();
      expect((await readdir(path("whole"))).sort()).toEqual(
        ["best.json", "curves.svg", "results.json", "runs", "sweep.json", "trials.svg"].sort(),
      );
      expect(command).toMatch(/ --turns 240 --seed 3 --output .*whole\/best$/);
      expect(best).toMatchObject({ env: "Blackjack-v1", turns: 24, actionMode: "choices" });
      const longer = await runInHost([...command.split(" ").slice(0, -2), "--turns", "16", "--output", path("longer")]);
      expect(longer.status).toBe(0);
      const adapter = path("whole/runs/trial-01-seed-2/adapter");
      expect((await runInHost(["eval", "blackjack", "--adapter", adapter, "-n", "8"])).status).toBe(0);
    },
  );

  async function printedCommand() {
    const { out } = await sweep(["--output", path("whole")]);
    expect(listRuns(out)).toEqual([]);
    const best = JSON.parse(await readFile(path("whole/best.json"), "utf8")) as object;
    return { best, command: /^node \S*bin\.js (train .*)$/m.exec(out)![1] };
  }

  it.each([
    ["at Ctrl-C, saved", "SIGINT", 130],
    ["when it is killed", "SIGKILL", null],
  ] as const)(
    "stops half-way %s, and the same command resumes to the same end",
    { timeout: SLOW_TIMEOUT_MS },
    async (_, signal, status) => {
      const name = signal;
      const stopped = await sweepInProcess(fourRunArgs(name), interruptAt("trial 2, seed 1:", signal));
      expect(stopped.status).toBe(status);
      expect(listRuns(stopped.out)).toEqual(ALL_RUNS.slice(0, 2));
      expect(/^Stopped and saved\. Resume with: node \S*bin\.js sweep --output /m.test(stopped.out)).toBe(
        signal === "SIGINT",
      );
      const resumed = await sweep(fourRunArgs(name));
      expect(resumed.status).toBe(0);
      expect(listRuns(resumed.out)).toEqual(ALL_RUNS.slice(2));
      expect(await readResults(name)).toBe(await readResults("whole"));
    },
  );

  it("reads a config file, lets options override it, and halves the trials", { timeout: SLOW_TIMEOUT_MS }, async () => {
    const file = path("sweep.json");
    const own = {
      env: "Blackjack-v1",
      "env-options": { sab: true },
      train: { model, device: "cpu", threads: 1, actionMode: "choices", turns: 48, batch_size: 8, numEnvs: 4, r: 2 },
      method: "halving",
      search: { "learning-rate": { min: 1e-4, max: 1e-2, scale: "log" } },
      trials: 2,
      reduction: 2,
    };
    await writeFile(file, JSON.stringify(own));
    const args = ["--config", file, "--turns", "32", "--metric", "eval/mean_return", "--eval-episodes", "10"];
    const { status, out } = await sweep([...args, "--output", path("halved")]);
    expect(status).toBe(0);
    expect(out).toContain("Successive halving: 2 up to 50% of a run, then the best 1 up to 100% of a run.");
    expect(out).toMatch(/^TRIAL +learningRate +eval\/mean_return +SEEDS +RUNG$/m);
    const saved = JSON.parse(await readFile(path("halved/sweep.json"), "utf8")) as object;
    expect(saved).toMatchObject({ metric: "eval/mean_return", evalEpisodes: 10, train: { turns: 32, batchSize: 8 } });
  });

  it("exits with status 1 if every trial failed", async () => {
    const args = ["blackjack", ...fixedArgs(), "--turns", "80", "--search", "learningRate=1e30"];
    const { status, out } = await sweep([...args, "--output", path("failed")]);
    expect(status).toBe(1);
    expect(out).toMatch(/^trial 1, seed 1 failed: /m);
    expect(out).toMatch(/^Every trial failed\.$/m);
  });

  const search = ["--search", "learningRate=0.1,0.01"];
  it.each([
    [[], 2, /ENV is missing: name an environment, .* or the --output FOLDER of a sweep/],
    [["blackjack"], 1, /A sweep needs settings to search/],
    [["blackjack", "--search", "learningrat=1,2"], 1, /no setting "learningrat"\. Did you mean learningRate\?/],
    [["blackjack", "--search", "learningRate"], 2, /--search must be name=values/],
    [["blackjack", ...search, ...search], 2, /--search has learningRate twice/],
    [["blackjack", "--search", "seed=1,2"], 1, /seed cannot be searched/],
    [["blackjack", ...search, "--seed", "1"], 2, /no option --seed\. Did you mean --seeds\?/],
    [["blackjack", ...search, "--seeds", "many"], 2, /--seeds must be a number of seeds, or a list/],
    [["blackjack", ...search, "--method", "gird"], 2, /--method must be grid, random or halving/],
    [["blackjack", ...search, "--trials", "3"], 1, /about 2 combinations/],
    [["blackjack", ...search, "--reduction", "2"], 1, /reduction is a setting of the method halving/],
    [["blackjack", ...search, "--learning-rate", "1"], 1, /learningRate is both searched and fixed/],
    [["blackjak", ...search], 1, /ENV_UNKNOWN/],
    [["blackjack", ...search, "--output", "/dev/null/sweep"], 1, /FILE_WRITE_FAILED/],
    [["blackjack", ...search, "--config", "nowhere.json"], 1, /FILE_NOT_FOUND.*nowhere\.json/],
  ])("rejects %j with status %i, in one line, and writes nothing", async (args, status, message) => {
    const cwd = await mkdtemp(join(folder, "refused-"));
    const result = await runInHost(["sweep", ...args], { cwd });
    expect({ status: result.status, out: result.out }).toEqual({ status, out: "" });
    expect(result.err).toMatch(message);
    expect(result.err.trim()).not.toContain("\n");
    expect(await readdir(cwd)).toEqual([]);
  });

  it("rejects another sweep in its folder", async () => {
    const { status, err } = await sweep([...fourRunArgs("whole"), "--turns", "32"]);
    expect(status).toBe(1);
    expect(err).toMatch(/contains another sweep: its train is/);
  });
});

describe("llamagym sweep on a file of examples", () => {
  const small = ["--max-steps", "3", "--threads", "1", "--no-tensorboard"];
  beforeAll(async () => {
    const rows = [4, 9, 12, 18, 20].map((sum) => {
      const [chosen, rejected] = sum < 17 ? ["hit", "stay"] : ["stay", "hit"];
      return { prompt: `You have ${sum}. hit or stay?`, chosen, rejected };
    });
    const write = async (name: string, lines: readonly object[]) =>
      writeFile(path(name), lines.map((line) => JSON.stringify(line)).join("\n"));
    await write("pairs.jsonl", rows);
    await write(
      "examples.jsonl",
      rows.map(({ prompt, chosen }) => ({ prompt, completion: chosen })),
    );
  });

  it.each([
    ["dpo", ["pairs.jsonl", "-s", "beta=0.1,0.3"], "dpo/loss"],
    ["kto", ["pairs.jsonl", "-s", "beta=0.1,0.3", "--eval-split", "0.4"], "kto/eval_loss"],
    ["sft", ["examples.jsonl", "-s", "learningRate=0.001,0.01"], "sft/loss"],
  ])("compares runs of %s by their loss, the lowest first, and resumes", async (algorithm, [data, ...args], metric) => {
    const output = path(`sweep-${algorithm}`);
    const given = ["--data", path(data), "--algorithm", algorithm, ...args, ...small, "--output", output];
    const { status, out, err } = await sweep(given);
    expect([status, err]).toEqual([0, expect.not.stringMatching(/Error/)]);
    const results = JSON.parse(await readFile(join(output, "results.json"), "utf8")) as {
      readonly metric: string;
      readonly goal: string;
      readonly trials: readonly { readonly value: number }[];
    };
    expect(results).toMatchObject({ metric, goal: "minimize" });
    const [best, second] = results.trials.map(({ value }) => value);
    expect(best).toBeLessThanOrEqual(second);
    expect(out).toMatch(new RegExp(`Train the best trial again:\\n.*${algorithm} --data .*--max-steps 3`));
    expect(await sweep(["--output", output])).toMatchObject({ status: 0 });
  });

  it("halves runs of dpo", async () => {
    const search = ["-s", "beta=0.05..0.5", "--method", "halving", "--trials", "3", "--rungs", "2"];
    const given = [
      "--data",
      path("pairs.jsonl"),
      "--algorithm",
      "dpo",
      ...search,
      "--threads",
      "1",
      "--max-steps",
      "6",
    ];
    const { status, err } = await sweep([...given, "--no-tensorboard", "--output", path("halved-dpo")]);
    expect([status, err]).toEqual([0, expect.not.stringMatching(/Error/)]);
    const results = JSON.parse(await readFile(join(path("halved-dpo"), "results.json"), "utf8")) as {
      readonly trials: readonly {
        readonly runs: readonly { readonly rungResults: readonly { updates: number }[] }[];
      }[];
    };
    expect(results.trials[0].runs[0].rungResults.map(({ updates }) => updates)).toEqual([2, 6]);
  });

  it.each([
    [["--algorithm", "dpo", "-s", "data=a,b"], /data cannot be searched/],
    [["-s", "algorithm=dpo,kto"], /cannot be searched\. Set one of them/],
    [["--algorithm", "dpo", "-s", "beta=0.1,0.2", "--metric", "dpo/los"], /record no "dpo\/los".*dpo\/loss/],
    [["--algorithm", "dpo", "-s", "beta=0.1,0.2", "--metric", "eval/mean_return"], /Compare them by `dpo\/loss`/],
  ])("refuses %j", async (args, message) => {
    const output = path("refused-examples");
    const result = await sweep(["--data", path("pairs.jsonl"), ...args, ...small, "--output", output]);
    expect(result.status).not.toBe(0);
    expect(result.err).toMatch(message);
    await rm(output, { recursive: true, force: true });
  });
});
