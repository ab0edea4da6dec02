import { execFile, spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

/**
 * The official SDK 0.38.0 and recipes of tinker-cookbook 0.6.1, installed by pip and unchanged.
 * Never in CI: they take minutes.
 */
const python = process.env.LLAMAGYM_TINKER_PYTHON ?? join(tmpdir(), "llamagym-tinker", "bin", "python");
const isInstalled = existsSync(python) && process.env.CI === undefined;
const note = isInstalled ? "" : ": not tried, run `node test/tinker-recipes/install.mjs` first";
const command = fileURLToPath(new URL("../dist/app/cli/bin.js", import.meta.url));
const scripts = fileURLToPath(new URL("tinker-recipes/", import.meta.url));
const execute = promisify(execFile);

interface Server {
  readonly process: ChildProcess;
  readonly url: string;
  /** Folder of the model, which is its name in recipes. */
  readonly model: string;
}

type Metrics = Readonly<Record<string, number>>;

let folder = "";
const servers: Server[] = [];

/** Starts a server of a model folder. */
async function serve(model: string): Promise<Server> {
  const args = ["serve", "--tinker", "-m", model, "--port", "0", "--tinker-folder", `${model}-runs`];
  const process_ = spawn(process.execPath, [command, ...args]);
  const lines = createInterface({ input: process_.stdout });
  const [line] = (await once(lines, "line")) as [string];
  const server = { process: process_, url: line.replace(/.* at (.*)\/v1$/, "$1"), model };
  servers.push(server);
  return server;
}

/** Runs Python with a server's address. Returns the last line of its output. */
async function run({ url }: Server, ...args: readonly string[]): Promise<string> {
  const env = {
    ...process.env,
    TINKER_BASE_URL: url,
    TINKER_API_KEY: "tml-local",
    HF_HUB_OFFLINE: "1",
    TOKENIZERS_PARALLELISM: "false",
    OMP_NUM_THREADS: "1",
  };
  const { stdout } = await execute(python, [...args], { env, cwd: folder, maxBuffer: 2 ** 26 });
  return stdout.trim().split("\n").at(-1)!;
}

/** Runs a recipe with options of its command line. Returns the metrics of its steps. */
async function recipe(server: Server, name: string, options: Readonly<Record<string, unknown>>): Promise<Metrics[]> {
  const log = await mkdtemp(join(folder, "log-"));
  const shared = { model_name: server.model, renderer_name: "role_colon", log_path: log, eval_every: 0, save_every: 0 };
  const given = Object.entries({ ...shared, behavior_if_log_dir_exists: "delete", ...options });
  await run(server, "-m", `tinker_cookbook.recipes.${name}`, ...given.map(([key, value]) => `${key}=${String(value)}`));
  const metrics = await readMetrics(log);
  // Later substeps and stale samples are trained with other values than those that they were
  // sampled with.
  const isOnPolicy = !("num_substeps" in options) && !("max_steps_off_policy" in options);
  const divergences = column(metrics, "optim/kl_sample_train_v1").map(Math.abs);
  expect(isOnPolicy ? Math.max(0, ...divergences) : 0).toBeLessThan(1e-4);
  return metrics;
}

async function readMetrics(log: string): Promise<Metrics[]> {
  const lines = (await readFile(join(log, "metrics.jsonl"), "utf8")).trim().split("\n");
  return lines.map((line) => JSON.parse(line) as Metrics);
}

/** Returns the values of a metric in the steps that have it. */
const column = (metrics: readonly Metrics[], name: string) => metrics.flatMap((step) => step[name] ?? []);
const REWARD = "env/all/reward/total";

/** Returns the paths of the last checkpoint of a run of supervised learning. */
async function findCheckpoint(server: Server, kind: string): Promise<string> {
  const { training_runs: runs } = (await (await fetch(`${server.url}/api/v1/training_runs`)).json()) as {
    training_runs: { training_run_id: string }[];
  };
  return `tinker://${runs[0].training_run_id}/${kind}/final`;
}

describe.skipIf(!isInstalled)(`recipes of the Tinker cookbook${note}`, { timeout: 900_000 }, () => {
  let base: Server;
  let warm: Server;
  /** Checkpoints of the model that was warmed up. */
  let state = "";
  let teacher = "";

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "tinker-recipes-"));
    const model = join(folder, "model");
    await execute(process.execPath, [command, "export", "embedded", "--format", "merged", "--output", model]);
    base = await serve(model);
    await run(base, join(scripts, "make_data.py"), folder);
  }, 120_000);

  afterAll(async () => {
    for (const { process: each } of servers) {
      each.kill("SIGINT");
      await once(each, "exit");
    }
    await rm(folder, { recursive: true, force: true });
  });

  it("chat_sl fits conversations, and their model becomes the base of another server", async () => {
    const file = join(folder, "conversations.jsonl");
    const sft = { dataset: file, lora_rank: 16, batch_size: 16, learning_rate: 3e-3, max_length: 900, num_epochs: 2 };
    const losses = column(await recipe(base, "chat_sl.train", sft), "train_mean_nll");
    expect(losses[0]).toBeGreaterThan(5);
    expect(losses.at(-1)!).toBeLessThan(1);
    state = await findCheckpoint(base, "weights");
    teacher = await findCheckpoint(base, "sampler_weights");
    const saved = join(`${base.model}-runs`, teacher.slice("tinker://".length).replaceAll(":", "_"));
    const merged = join(folder, "warm");
    const options = ["export", saved, "-m", base.model, "--format", "merged", "--output", merged];
    await execute(process.execPath, [command, ...options]);
    warm = await serve(merged);
  });

  it("prompt_distillation fits a file", async () => {
    const file_path = join(folder, "conversations.jsonl");
    const options = { file_path, lora_rank: 8, batch_size: 16, num_epochs: 1, learning_rate: 3e-3, max_length: 128 };
    const losses = column(await recipe(base, "prompt_distillation.train", options), "train_mean_nll");
    expect(losses.at(-1)!).toBeLessThan(losses[0] / 3);
  });

  const arithmetic = { env: "arithmetic", group_size: 8, groups_per_batch: 16, lora_rank: 16, learning_rate: 1e-3 };
  it("math_rl raises the reward with importance sampling", async () => {
    const how = { loss_fn: "importance_sampling", load_checkpoint_path: state, max_tokens: 8, max_steps: 20 };
    const rewards = column(await recipe(base, "math_rl.train", { ...arithmetic, ...how }), REWARD);
    // -0.1 is an answer that does not end where it should.
    const [first, last] = [rewards.slice(0, 3), rewards.slice(-3)].map((values) => values.reduce((a, b) => a + b) / 3);
    expect(last).toBeGreaterThan(first + 0.03);
  });

  it.each([
    ["ppo in substeps", { loss_fn: "ppo", num_substeps: 2, compute_post_kl: true }],
    ["cispo off policy", { loss_fn: "cispo", max_steps_off_policy: 1 }],
    [
      "minibatches as they come",
      {
        loss_fn: "importance_sampling",
        "stream_minibatch_config.groups_per_batch": 8,
        "stream_minibatch_config.num_minibatches": 2,
      },
    ],
  ])("math_rl runs %s", async (_, more) => {
    const options = {
      ...arithmetic,
      groups_per_batch: 8,
      load_checkpoint_path: state,
      max_tokens: 8,
      max_steps: 3,
      ...more,
    };
    expect(column(await recipe(base, "math_rl.train", options), REWARD)).toHaveLength(3);
  });

  it("guess_number and TicTacToe run", async () => {
    const guess = { group_size: 4, batch_size: 2, learning_rate: 1e-3, max_tokens: 8, max_steps: 3 };
    const guesses = column(await recipe(warm, "multiplayer_rl.guess_number.train", guess), REWARD);
    expect(guesses).toHaveLength(3);
    // Each of ten guesses without the right form costs 1.
    expect(Math.max(...guesses)).toBeGreaterThan(-10);
    const game = { batch_size: 16, num_train_datapoints: 48, num_test_datapoints: 2, max_tokens: 8, max_steps: 2 };
    const moves = column(
      await recipe(warm, "multiplayer_rl.text_arena.train", { ...game, learning_rate: 1e-3 }),
      REWARD,
    );
    expect(moves).toHaveLength(2);
  });

  it("preference.dpo lowers its loss from log 2", async () => {
    const log = join(folder, "log-dpo");
    await run(base, join(scripts, "preference_dpo.py"), base.model, join(folder, "comparisons.jsonl"), log);
    const losses = column(await readMetrics(log), "dpo_loss");
    expect(losses[0]).toBeCloseTo(Math.log(2), 5);
    expect(losses.at(-1)!).toBeLessThan(0.1);
  });

  it("decisions raise the probability of the right choice", async () => {
    const result = JSON.parse(await run(base, join(scripts, "decisions.py"), base.model)) as Record<string, number[]>;
    for (const [before, after] of [result.cross_entropy, result.custom]) expect(after).toBeGreaterThan(before + 0.1);
  });

  it("a loop of 20 lines distills a teacher on the student's samples", async () => {
    const divergences = JSON.parse(await run(base, join(scripts, "distillation.py"), base.model, teacher)) as number[];
    expect(divergences.at(-1)!).toBeLessThan(0.7 * divergences[0]);
  });

  it("a loop with the SDK alone raises the reward, with equal log-probabilities in sampling and training", async () => {
    const line = await run(base, join(scripts, "even_tokens.py"), base.model);
    const { rewards, difference } = JSON.parse(line) as { rewards: number[]; difference: number };
    expect(difference).toBeLessThan(1e-4);
    expect(rewards.at(-1)!).toBeGreaterThan(rewards[0]);
    expect(rewards.at(-1)!).toBeGreaterThan(0.9);
  });
});
