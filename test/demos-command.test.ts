import { mkdtemp, readFile, readdir, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { choiceEnvSource } from "./support/choice-env.js";
import { runCommand, runInHost, startCommand } from "./support/command.js";

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "demos-"));
});
afterAll(() => rm(folder, { recursive: true }));

const path = (name: string) => join(folder, name);

interface DemonstrationLine {
  readonly env: string;
  readonly return: number;
  readonly messages: readonly { readonly role: string; readonly content: string }[];
  /** Of each turn. */
  readonly infos?: readonly Readonly<Record<string, unknown>>[];
}

async function recordDemos(
  name: string,
  args: readonly string[],
): Promise<{ out: string; lines: readonly DemonstrationLine[] }> {
  const { status, out, err } = await (name === "lake.jsonl" ? runCommand : runInHost)([
    "demos",
    ...args,
    "--output",
    path(name),
  ]);
  expect([status, err]).toEqual([0, ""]);
  const text = await readFile(path(name), "utf8");
  return {
    out,
    lines: text
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line) as DemonstrationLine),
  };
}

async function readConfig(name: string): Promise<Record<string, unknown>> {
  return JSON.parse(await readFile(join(path(name), "config.json"), "utf8")) as Record<string, unknown>;
}

async function readMetrics(name: string): Promise<readonly Record<string, number>[]> {
  const text = await readFile(join(path(name), "metrics.jsonl"), "utf8");
  return text
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Record<string, number>);
}

/** Writes gauge.js, an environment with episodes of one turn. */
async function writeGauge(reset: string): Promise<void> {
  const step = "return { observation: 0, reward: 0, terminated: true, truncated: false, info: {} };";
  await writeFile(path("package.json"), '{ "type": "module" }');
  await writeFile(path("gauge.js"), choiceEnvSource("Gauge", { reset, step }));
}

/** Small updates, so that a run of the embedded model is short. */
const SMALL_RUN_ARGS = ["--batch-size", "16", "--num-envs", "4", "--max-episode-steps", "4", "--num-ppo-epochs", "1"];

describe("llamagym demos", () => {
  it("records an expert's episodes as conversations with returns, the same for the same seed", async () => {
    const { out, lines } = await recordDemos("lake.jsonl", ["FrozenLake-v1", "--episodes", "20", "--seed", "4"]);
    expect(lines).toHaveLength(20);
    const wins = lines.filter((line) => line.return === 1).length;
    // The expert reaches the goal in 74 of 100 episodes.
    expect(wins).toBeGreaterThan(9);
    expect(out).toContain(
      `20 episodes, ${lines.reduce((sum, { messages }) => sum + (messages.length - 1) / 2, 0)} turns`,
    );
    expect(lines[0].env).toBe("FrozenLake-v1");
    expect(lines[0].messages.slice(0, 3).map(({ role }) => role)).toEqual(["system", "user", "assistant"]);
    await recordDemos("again.jsonl", ["FrozenLake-v1", "--episodes", "20", "--seed", "4"]);
    expect(await readFile(path("again.jsonl"))).toEqual(await readFile(path("lake.jsonl")));
  });

  it("records solved TextWorld quests, and leaves out episodes with a lower return", async () => {
    const { lines } = await recordDemos("world.jsonl", ["text-world", "--episodes", "3"]);
    expect(lines.map((line) => line.return)).toEqual([1, 1, 1]);
    // Observations read as in training; the solution is removed.
    expect(lines[0].messages[1].content).toMatch(/You are carrying nothing\.\n\nCommands that you can use: .*; look/);
    expect(Object.keys(lines[0].infos?.[0] ?? {})).toContain("admissibleCommands");
    expect(Object.keys(lines[0].infos?.[0] ?? {})).not.toContain("policyCommands");
    const { lines: wins } = await recordDemos("wins.jsonl", [
      "blackjack",
      "--policy",
      "random",
      "--episodes",
      "30",
      "--min-return",
      "1",
    ]);
    expect(wins.length).toBeLessThan(30);
    expect(wins.every((line) => line.return === 1)).toBe(true);
  });

  it("records a language model's episodes", async () => {
    const { lines } = await recordDemos("agent.jsonl", [
      "blackjack",
      "--policy",
      "agent",
      "--episodes",
      "4",
      "--temperature",
      "0",
    ]);
    for (const { messages } of lines) expect(["hit", "stay"]).toContain(messages.at(-1)!.content);
  });

  it.each(["NaN", "-Infinity", "[1, NaN]"])("writes no file with an info that is %s", async (value) => {
    await writeGauge(`return { observation: 0, info: { level: ${value} } };`);
    const output = path("gauge.jsonl");
    const args = ["demos", path("gauge.js"), "--policy", "random", "--episodes", "2", "--output", output];
    const { status, err } = await runCommand(args);
    expect(status).toBe(1);
    expect(err).toMatch(/ENV_INVALID.*infos\[0\]\.level.* is (NaN|-Infinity), and JSON/);
    expect(await readdir(folder)).not.toContain("gauge.jsonl");
  });

  it("saves the episodes that ended before the environment failed", async () => {
    await writeGauge(`if (this.resets++ === 3) throw new Error("no level"); return { observation: 0, info: {} };`);
    const output = path("failed.jsonl");
    const args = ["demos", path("gauge.js"), "--policy", "random", "--episodes", "9", "--output", output];
    const { status, out, err } = await runCommand(args);
    expect(status).toBe(1);
    expect(err).toMatch(/ENV_FAILED.*no level/);
    expect(out).toContain("failed.jsonl: 3 episodes");
    expect((await readFile(output, "utf8")).trimEnd().split("\n")).toHaveLength(3);
  });

  it("saves at Ctrl-C the episodes that ended", async () => {
    const output = path("stopped.jsonl");
    const child = startCommand(["demos", "cartpole", "--episodes", "1000000", "--output", output]);
    const closed = new Promise((resolve) => child.on("close", resolve));
    const partial = async () => (await readdir(folder)).find((name) => name.includes("stopped.jsonl"));
    await expect
      .poll(async () => (await stat(path((await partial()) ?? "none"))).size, { timeout: 60_000 })
      .not.toBe(0);
    child.kill("SIGINT");
    expect(await closed).toBe(130);
    const lines = (await readFile(output, "utf8")).trimEnd().split("\n");
    for (const line of lines) expect((JSON.parse(line) as DemonstrationLine).return).toBeGreaterThan(200);
  });

  it("rejects invalid arguments", async () => {
    const cases: readonly (readonly [readonly string[], RegExp])[] = [
      [["wordle"], /no expert.*FrozenLake-v1/],
      [["blackjack", "--model", "embedded"], /--model requires --policy agent/],
      [["blackjack", "--policy", "best"], /--policy must be expert, random or agent/],
      [["blackjack", "--min-return", "2", "--output", path("none.jsonl")], /No file written: none of the 100 episodes/],
      [
        ["blackjack", "--episodes", "1000000", "--output", "/dev/null/x"],
        /\/dev\/null\/x cannot be written.* is a file/,
      ],
      [
        ["blackjack", "--episodes", "1000000", "--output", folder],
        /cannot be written: .* is a folder\. Choose another/,
      ],
    ];
    for (const [args, message] of cases) {
      const { status, err } = await runInHost(["demos", ...args]);
      expect(status).not.toBe(0);
      expect(err).toMatch(message);
    }
  });
});

describe("llamagym train with demonstrations", () => {
  it("trains on a file first, then by reinforcement learning, and on successful episodes", async () => {
    await recordDemos("hands.jsonl", ["blackjack", "--episodes", "40"]);
    const args = ["--turns", "32", "--sft-warm-start", path("hands.jsonl"), "--sft-steps", "3", "--online-sft"];
    const { status } = await runInHost(["train", "blackjack", ...args, ...SMALL_RUN_ARGS, "--output", path("warm")]);
    expect(status).toBe(0);
    const records = await readMetrics("warm");
    expect(records.map((record) => record.step)).toEqual([0, 1, 2]);
    expect(Object.keys(records[0])).toContain("sft/loss");
    for (const record of records.slice(1)) expect(record["replay/size"]).toBeGreaterThan(20);
  });

  it("records the expert when given a number of episodes", async () => {
    const args = ["--turns", "16", "--sft-warm-start", "10", "--sft-steps", "2"];
    const { status } = await runInHost([
      "train",
      "FrozenLake-v1",
      ...args,
      ...SMALL_RUN_ARGS,
      "--output",
      path("expert"),
    ]);
    expect(status).toBe(0);
    expect((await readMetrics("expert")).map((record) => record.step)).toEqual([0, 1]);
  });

  it("names the line of an invalid demonstration before anything is written", async () => {
    await writeFile(path("bad.jsonl"), '{"prompt":"?","completion":"hit"}\n{"prompt":"?","completion":"no idea"}\n');
    const args = ["train", "blackjack", "--sft-warm-start", path("bad.jsonl"), "--turns", "16", ...SMALL_RUN_ARGS];
    const { status, err } = await runInHost([...args, "--output", path("bad")]);
    expect(status).toBe(1);
    expect(err).toMatch(/DEMONSTRATION_REJECTED.*bad\.jsonl, line 2.*"no idea".*no action/);
    expect(await readdir(folder)).not.toContain("bad");
    const skipped = await runInHost([
      ...args,
      "--on-invalid-line",
      "skip",
      "--sft-steps",
      "1",
      "--output",
      path("skipped"),
    ]);
    expect(skipped.status).toBe(0);
    expect(skipped.err).toMatch(/Skipped .*bad\.jsonl, line 2: .*no action \(.*\)\.$/m);
  });

  it("names the first skipped lines and counts the others", async () => {
    const rows = Array.from({ length: 40 }, (_, i) =>
      JSON.stringify({ prompt: "?", completion: i < 20 ? "hit" : "?" }),
    );
    await writeFile(path("many.jsonl"), rows.join("\n"));
    const flags = ["--on-invalid-line", "skip", "--output", path("many")];
    const warm = ["--sft-warm-start", path("many.jsonl"), "--sft-steps", "1", "--turns", "16", ...SMALL_RUN_ARGS];
    const { status, err } = await runInHost(["train", "blackjack", ...warm, ...flags]);
    expect(status).toBe(0);
    expect(err.match(/Skipped .*line/g)).toHaveLength(5);
    expect(err).toContain("Skipped 15 more, 20 in all.");
  });
});

describe("the command lines of LlamaGymEDU", () => {
  const given = "--load-in-8bit --online-sft --wandb-project P --wandb-mode offline --seed 1".split(" ");

  it.each(["blackjack", "text-world"])("work unchanged: %s", async (env) => {
    const name = `edu-${env}`;
    const args = [
      "train",
      env,
      "--episodes",
      "5",
      "--model",
      "embedded",
      ...given,
      ...SMALL_RUN_ARGS,
      "--output",
      path(name),
    ];
    const { status, err } = await runInHost(args);
    expect(err).not.toMatch(/Error/);
    expect(status).toBe(0);
    expect(await readConfig(name)).toMatchObject({
      episodes: 5,
      quantize: "8",
      onlineSft: true,
      wandbProject: "P",
      wandbMode: "offline",
      seed: 1,
    });
    expect((await readMetrics(name)).at(-1)!.num_episodes).toBeGreaterThanOrEqual(5);
    expect((await readdir(join(path(name), "wandb"))).length).toBeGreaterThan(0);
  });

  it("warn about the memory that a model needs before it is downloaded", async () => {
    const args = ["--episodes", "5", "--model", "TinyLlama/TinyLlama-1.1B-Chat-v1.0", ...given];
    const { status, err } = await runInHost(["train", "blackjack", ...args, "--output", path("tiny")], {
      env: { HF_HUB_OFFLINE: "1", HF_HOME: folder },
    });
    expect(status).toBe(1);
    expect(err).toMatch(
      /Training TinyLlama\/TinyLlama-1\.1B-Chat-v1\.0 needs about \d+\.\d GB of memory[^]*HUB_OFFLINE/,
    );
  });

  it("accept true and false, and only one number of bits", async () => {
    const off = [
      "--turns",
      "16",
      "--online-sft",
      "false",
      "--tensorboard=false",
      ...SMALL_RUN_ARGS,
      "--output",
      path("off"),
    ];
    expect((await runInHost(["train", "blackjack", ...off])).status).toBe(0);
    expect(await readConfig("off")).toMatchObject({ onlineSft: false, tensorboard: false });
    const { status, err } = await runInHost(["train", "blackjack", "--load-in-8bit", "--quantize", "4"]);
    expect([status, err]).toEqual([2, expect.stringContaining("--load-in-8bit sets --quantize, which is also given")]);
  });
});
