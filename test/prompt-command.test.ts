import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { interruptAt, runCommand, runInHost } from "./support/command.js";

let folder: string;
/** The rule to learn, from chat prompts: stay from 17 on. */
const rows = Array.from({ length: 18 }, (_, i) => ({
  prompt: [
    { role: "system", content: "Blackjack. Answer hit or stay." },
    { role: "user", content: `Your current total is ${i + 4}. hit or stay?` },
  ],
  answer: i + 4 < 17 ? "hit" : "stay",
}));
const files: Readonly<Record<string, string>> = {
  "prompts.jsonl": rows.map((row) => JSON.stringify(row)).join("\n"),
  "rewards.js": `
    export const isRight = ({ completions, answer }) => completions.map((text, i) => text.trim() === answer[i]);
    export const isShort = async ({ completionIds }) => completionIds.map((ids) => -ids.length);`,
  "tools.js": `
    export const look = { name: "look", description: "Looks.", parameters: { type: "object" }, execute: () => "cards" };
    export const threshold = 1;`,
  "list.js": "export default [({ completions }) => completions.map(() => 1), ({ prompts }) => prompts.map(() => 2)];",
  "throws.js": "export default () => { throw new Error('no database'); };",
  "partial.js": "export default ({ completions }) => completions.map((text, i) => [1, NaN, null, 1e9][i % 4]);",
  "short.js": "export default ({ completions }) => completions.slice(1).map(() => 1);",
  "none.js": "export const threshold = 1;",
  "broken.js": "export default ({",
  "empty.jsonl": "\n",
  "no-prompt.jsonl": '{"prompt": "a"}\n{"question": "b"}\n',
  "broken.jsonl": '{"prompt": "a"}\n{"prompt": \n',
  "no-messages.jsonl": '{"prompt": [{"content": "a"}]}\n',
  "reserved.jsonl": '{"prompt": "a", "completions": ["b"]}\n',
  "rloo.json": JSON.stringify({ algorithm: "rloo", data: "prompts.jsonl" }),
  "package.json": '{"type": "module"}',
};
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "prompt-command-"));
  for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text);
});
afterAll(() => rm(folder, { recursive: true }));

const given = ["--data", "prompts.jsonl", "--reward-funcs", "rewards.js"];
const small = ["--device", "cpu", "--threads", "1", "--seed", "1"];
const run = async (...args: string[]) => runInHost(args, { cwd: folder });

async function readMetrics(name: string): Promise<readonly Readonly<Record<string, number>>[]> {
  const lines = (await readFile(join(folder, name, "metrics.jsonl"), "utf8")).trim().split("\n");
  return lines.map((line) => {
    const values = Object.entries(JSON.parse(line) as Record<string, number>);
    return Object.fromEntries(values.filter(([metric]) => !metric.includes("time")));
  });
}

const readConfig = async (name: string) =>
  JSON.parse(await readFile(join(folder, name, "config.json"), "utf8")) as Record<string, unknown>;

describe("llamagym grpo", () => {
  it("learns from weighted reward functions that receive the columns of the data", async () => {
    const weights = ["--reward-weights", "1,0.01"];
    const { status, out } = await run("grpo", ...given, ...weights, ...small, "--max-steps", "16", "-o", "learned");
    expect(status).toBe(0);
    expect(out).toMatch(/^Training embedded on 18 prompts with grpo: 16 updates of 64 completions\.$/m);
    const metrics = await readMetrics("learned");
    expect(metrics).toHaveLength(16);
    expect(metrics[0]["rewards/isRight/mean"]).toBeLessThan(0.6);
    expect(metrics.at(-1)!["rewards/isRight/mean"]).toBeGreaterThan(0.85);
    expect(metrics.at(-1)!["rewards/isShort/mean"]).toBeGreaterThan(-2.5);
    const question = "Your current total is 20. hit or stay?";
    const generated = await run("generate", "--model", "learned/adapter", "-p", question, "-t", "0");
    expect(generated.status).toBe(0);
    const adapter = ["--adapter", "learned/adapter", "--r", "4", "--use-dora", "--max-steps", "1", "-o", "continued"];
    const { err } = await run("grpo", ...given, ...small, ...adapter);
    expect(err).toContain("`r` 4 is not used: training continues the adapter learned/adapter, whose `r` is 16.");
    expect(err).toContain("`useDora` true is not used");
    const curve = await readFile(join(folder, "learned", "curve.svg"), "utf8");
    expect(curve).toContain("reward");
  });

  it("resumes to the same numbers as an uninterrupted run, from moved files", async () => {
    const args = ["grpo", ...given, ...small, "--max-steps", "5", "--save-steps", "2", "--batch-size", "16"];
    expect((await run(...args, "--output", "whole")).status).toBe(0);
    const stopped = await runCommand([...args, "--output", "parts"], {
      cwd: folder,
      ...interruptAt("update 1:", "SIGINT"),
    });
    expect(stopped.status).toBe(130);
    expect(stopped.out).toMatch(/Stopped and saved after update [1-4]\. Resume with: .* grpo --resume parts$/m);
    await writeFile(join(folder, "moved.jsonl"), files["prompts.jsonl"]);
    const moved = await run("grpo", "--resume", "parts", "--data", "moved.jsonl");
    expect(moved.out).toMatch(/^Resuming parts from update [1-4]\.$/m);
    expect(await readMetrics("parts")).toEqual(await readMetrics("whole"));
    const { data: _, ...config } = await readConfig("parts");
    expect(await readConfig("whole")).toMatchObject(config);
    const complete = await run("grpo", "--resume", "parts");
    expect(complete.out).toContain("The run was already complete.");
  });

  it("learns from a teacher without reward functions, and resumes to the same numbers", async () => {
    const hinted = rows.map((row) => JSON.stringify({ ...row, hint: `${row.answer} is right.` }));
    await writeFile(join(folder, "hinted.jsonl"), hinted.join("\n"));
    const args = ["grpo", "--data", "hinted.jsonl", "--teacher", "self", ...small, "--save-steps", "1"];
    const sizes = ["--max-steps", "4", "--batch-size", "16"];
    expect((await run(...args, ...sizes, "--output", "taught")).status).toBe(0);
    const metrics = await readMetrics("taught");
    expect(metrics[0]["teacher/kl"]).toBeGreaterThan(0.01);
    expect(metrics[0].loss).not.toBe(0);
    const stopped = await runCommand([...args, ...sizes, "--output", "taught-parts"], {
      cwd: folder,
      ...interruptAt("update 1:", "SIGINT"),
    });
    expect(stopped.status).toBe(130);
    expect((await run("grpo", "--resume", "taught-parts")).status).toBe(0);
    expect(await readMetrics("taught-parts")).toEqual(metrics);
  });

  it("refuses data that changed since the run started, and reports changed reward functions", async () => {
    await writeFile(join(folder, "changing.jsonl"), files["prompts.jsonl"]);
    await writeFile(join(folder, "changing.js"), files["rewards.js"]);
    const args = ["--data", "changing.jsonl", "--reward-funcs", "changing.js#isRight", "--max-steps", "1"];
    expect((await run("grpo", ...args, ...small, "--batch-size", "16", "-o", "changing")).status).toBe(0);
    await writeFile(join(folder, "changing.js"), `${files["rewards.js"]}\n`);
    const reported = await runCommand(["grpo", "--resume", "changing"], { cwd: folder });
    expect(reported.err).toContain("Warning: changing.js has changed since the run started");
    expect(reported.status).toBe(0);
    await writeFile(join(folder, "changing.jsonl"), '{"prompt": "other"}');
    expect(await run("grpo", "--resume", "changing")).toMatchObject({
      status: 1,
      err: expect.stringContaining("changing.jsonl has changed since the run in changing started") as string,
    });
  });

  it("leaves completions without a valid reward out, and names the reason once", async () => {
    const args = ["--data", "prompts.jsonl", ...small, "--max-steps", "2", "--batch-size", "16"];
    const { status, err } = await run("grpo", ...args, "--reward-funcs", "partial.js", "-o", "partial");
    expect(status).toBe(0);
    expect(err.match(/The reward function partial returned the reward NaN/g)).toHaveLength(1);
    expect((await readMetrics("partial"))[0]).toMatchObject({
      "rewards/frac_unscored": 0.75,
      "rewards/partial/mean": 1,
    });
    const short = await run("grpo", ...args, "--reward-funcs", "short.js", "--max-steps", "9", "-o", "short");
    expect(short.err).toContain("The reward function short returned 15 rewards for 16 completions");
    const thrown = await run("grpo", ...args, "--reward-funcs", "throws.js", "--max-steps", "9", "-o", "thrown");
    expect(thrown.err).toContain("The reward function throws threw: no database");
    for (const failed of [short, thrown]) {
      expect(failed.status).toBe(1);
      expect(failed.err).toContain("[REWARD_FAILED]: No completion of the last 5 batches was scored");
    }
  });

  it("describes the tools of modules in the prompts, and passes messages to reward functions", async () => {
    await writeFile(
      join(folder, "counts.js"),
      "export const count = ({ completions }) => completions.map((messages) => messages.filter(({ role }) => role === 'assistant').length);",
    );
    const args = ["--data", "prompts.jsonl", ...small, "--max-steps", "1", "--batch-size", "16", "--tools", "tools.js"];
    expect((await run("grpo", ...args, "--reward-funcs", "counts.js", "-o", "tools")).status).toBe(0);
    expect((await readMetrics("tools"))[0]).toMatchObject({ "rewards/count/mean": 1, "tools/call_frequency": 0 });
    const { toolsSha256 } = await readConfig("tools");
    expect(toolsSha256).toEqual([expect.stringMatching(/^[0-9a-f]{64}$/)]);
  });

  it("numbers functions that share a name", async () => {
    const args = ["--data", "prompts.jsonl", ...small, "--max-steps", "1", "--batch-size", "16"];
    expect((await run("grpo", ...args, "--reward-funcs", "list.js", "-o", "list")).status).toBe(0);
    const [first] = await readMetrics("list");
    expect(first).toMatchObject({ "rewards/list_0/mean": 1, "rewards/list_1/mean": 2, reward: 3 });
  });

  it.each([
    [[], 2, /^--data is missing/],
    [["--data", "prompts.jsonl"], 2, /^--reward-funcs is missing, or a --teacher/],
    [["--data", "prompts.jsonl", "--teacher", "self"], 1, /needs hints.*column `hint`/],
    [["--data", "prompts.jsonl", "--teacher", "none.gguf"], 1, /none\.gguf/],
    [["--data", "prompts.jsonl", "--teacher", "self", "--reward-weights", "1"], 1, /`rewardWeights` needs/],
    [[...given, "--teacher-hint", "Be brief."], 1, /`teacherHint` has no effect without `teacher`/],
    [[...given, "--teacher", "http://127.0.0.1:2/v1", "--temperature", "0.7"], 1, /scores free completions at 1/],
    [["blackjack"], 2, /trains on prompts\. To train in an environment: .*train ENV --algorithm grpo/],
    [
      [...given, "--redis", "redis://localhost"],
      2,
      /has no --redis: completions of prompts are sampled in this process/,
    ],
    [[...given, "--judge", "embedded"], 2, /has no --judge: export a judge as a reward function/],
    [[...given, "--learning-rat", "1"], 2, /Did you mean --learning-rate\?/],
    [["--config", "rloo.json"], 2, /rloo\.json is for the algorithm "rloo", not for llamagym grpo/],
    [["--data", "none.jsonl", "--reward-funcs", "rewards.js"], 1, /none\.jsonl does not exist/],
    [["--data", "empty.jsonl", "--reward-funcs", "rewards.js"], 1, /empty\.jsonl has no rows/],
    [["--data", "broken.jsonl", "--reward-funcs", "rewards.js"], 1, /broken\.jsonl, line 2: invalid JSON/],
    [
      ["--data", "no-prompt.jsonl", "--reward-funcs", "rewards.js"],
      1,
      /line 2: the row has no prompt.*keys are question/,
    ],
    [["--data", "no-messages.jsonl", "--reward-funcs", "rewards.js"], 1, /no-messages\.jsonl, line 1: .*role/],
    [["--data", "reserved.jsonl", "--reward-funcs", "rewards.js"], 1, /the column name "completions" is reserved/],
    [["--data", "prompts.jsonl", "--reward-funcs", "missing.js"], 1, /missing\.js does not exist/],
    [["--data", "prompts.jsonl", "--reward-funcs", "none.js"], 1, /none\.js must export reward functions/],
    [
      [...given, "--tools", "none.js"],
      1,
      /none\.js must export tools: an object \{ name, description, parameters, execute \}/,
    ],
    [[...given, "--tools", "tools.js#see"], 1, /tools\.js exports no tool "see"\. Its tools are look\./],
    [[...given, "--max-tool-calling-iterations", "2"], 1, /`maxToolCallingIterations` needs `tools`/],
    [["--data", "prompts.jsonl", "--reward-funcs", "broken.js"], 1, /broken\.js could not be loaded: /],
    [
      ["--data", "prompts.jsonl", "--reward-funcs", "rewards.js#isWrong"],
      1,
      /no reward function "isWrong".*isRight, isShort/,
    ],
    [[...given, "--reward-weights", "1"], 1, /1 rewardWeights for 2 rewardFuncs/],
    [[...given, "--reward-weights", "1,x"], 1, /must be comma-separated numbers, such as 1,0\.5, got "1,x"/],
    [[...given, "--batch-size", "10"], 1, /batchSize is 10, which groups of 8/],
    [["--resume", "nowhere"], 1, /There is no run in nowhere/],
  ])("rejects %j in one line, and writes nothing", async (args, status, message) => {
    const result = await run("grpo", ...args, ...(args.includes("--resume") ? [] : ["--output", "never"]));
    expect(result.err.trim().split("\n")).toHaveLength(1);
    expect(result.err).toMatch(message);
    expect(result.status).toBe(status);
    await expect(readConfig("never")).rejects.toThrow("ENOENT");
  });
});

describe("llamagym rloo", () => {
  it("trains, and names the command of another program's run", async () => {
    const args = [...given, ...small, "--max-steps", "1", "--batch-size", "16", "--output", "rloo"];
    const { out, status } = await run("rloo", ...args);
    expect(status).toBe(0);
    expect(out).toMatch(/on 18 prompts with rloo: 1 update of 16 completions/);
    for (const command of ["grpo", "sft"])
      expect(await run(command, "--resume", "rloo")).toMatchObject({
        status: 1,
        err: `The run in rloo is not a run of llamagym ${command}. Resume it with: llamagym rloo --resume rloo\n`,
      });
  });
});

describe("llamagym sweep on prompts", () => {
  it("compares runs by their reward, and names the command that trains the best one", async () => {
    const fixed = [...given, ...small.slice(0, 4), "--max-steps", "3", "--batch-size", "16", "--output", "sweep"];
    const search = ["--search", "learningRate=1e-6,3e-3", "--reduction", "2", "--trials", "2", "--method", "halving"];
    const { out, status } = await run("sweep", ...fixed, ...search);
    expect(status).toBe(0);
    expect(out).toMatch(/^trial 1, seed 1, rung 1: reward /m);
    expect(out).toMatch(/grpo --config sweep\/best\.json --max-steps 30 --seed 2 --output sweep\/best/);
    const best = JSON.parse(await readFile(join(folder, "sweep", "best.json"), "utf8")) as object;
    expect(best).toMatchObject({ algorithm: "grpo", data: "prompts.jsonl", maxSteps: 3, batchSize: 16 });
    const again = await run(
      "grpo",
      "--config",
      "sweep/best.json",
      "--max-steps",
      "1",
      "-o",
      "best",
      ...small.slice(0, 4),
    );
    expect(again.status).toBe(0);
  });

  it.each([
    [["blackjack", ...given], /has `env`, or `data` of runs on a file/],
    [["--data", "none.jsonl", "--reward-funcs", "rewards.js"], /none\.jsonl does not exist/],
    [["--data", "prompts.jsonl", "--reward-funcs", "none.js"], /none\.js must export reward functions/],
    [["--data", "prompts.jsonl", "--teacher", "self"], /compares runs on prompts by their reward\. Set `rewardFuncs`/],
    [[...given, "--algorithm", "ppo"], /`algorithm` must be "grpo", "rloo", "sft", "dpo" or "kto", got "ppo"/],
    [[...given, "--metric", "eval/mean_return"], /Compare them by `reward`/],
  ])("rejects %j, and writes nothing", async (args, message) => {
    const result = await run("sweep", ...args, "--search", "learningRate=1e-6,3e-3", "--output", "never");
    expect(result).toMatchObject({ status: 1, err: expect.stringMatching(message) as string });
    await expect(readConfig("never")).rejects.toThrow("ENOENT");
  });
});
