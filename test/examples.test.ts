import { spawnSync } from "node:child_process";
import { existsSync, rmSync } from "node:fs";
import { copyFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { writeRandomModel, type RandomModelOptions } from "./support/random-model.js";

const root = fileURLToPath(new URL("..", import.meta.url));
const adapter = `${root}runs/example-blackjack`;
const gatewayAdapter = `${root}runs/example-openai-agent`;

function runNode(...args: string[]): string {
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { cwd: root, encoding: "utf8" });
  if (status !== 0) throw new Error(stderr);
  return stdout;
}

/** Compiles and runs an example as a user would, and returns its output. */
const compileAndRun = (name: string, ...rest: string[]) => runNode("examples/run.mjs", name, ...rest);

/** Runs an example that `compileAndRun` has compiled with all others. */
const run = (name: string, ...rest: string[]) => runNode(`examples/.build/${name}.js`, ...rest);

describe("examples", { timeout: 600_000 }, () => {
  let model: string;
  /** With the tokenizer of the embedded model, which makes long prompts short. */
  let wordModel: string;
  const removals: (() => Promise<void>)[] = [];
  let printed: string;
  beforeAll(async () => {
    const openModel = async (options?: RandomModelOptions) => {
      const { folder, remove } = await writeRandomModel(options);
      removals.push(remove);
      return folder;
    };
    model = await openModel();
    const config = { vocab_size: 1280, eos_token_id: 4 };
    wordModel = await openModel({ maxPositions: 2048, withTokenizer: false, config });
    for (const name of ["tokenizer.json", "tokenizer_config.json"])
      await copyFile(`${root}models/llamagym-1m/${name}`, `${wordModel}/${name}`);
    rmSync(adapter, { recursive: true, force: true });
    printed = compileAndRun("blackjack", "--episodes", "5");
  }, 120_000);
  afterAll(async () => {
    for (const remove of removals) await remove();
    for (const folder of [adapter, gatewayAdapter]) rmSync(folder, { recursive: true, force: true });
  });

  it("blackjack plays as many hands as --episodes and saves no untrained adapter", () => {
    expect(printed).toContain("5 hands, 0 updates");
    expect(printed).toContain("no adapter is saved");
    expect(existsSync(adapter)).toBe(false);
  });

  it("blackjack trains, evaluates and saves", () => {
    const trained = run("blackjack", "--episodes", "250", "--model", model, "--device", "cpu");
    expect(trained).toMatch(/^hand \d+: mean return -?0\.\d+, entropy 0\.\d+$/m);
    expect(trained).toMatch(/^greedy mean return -?\d\.\d{3} ± 0\.\d{3}/m);
    expect(existsSync(`${adapter}/adapter_model.safetensors`)).toBe(true);
  });

  it("parallel trains in many environments and evaluates", () => {
    const trained = run("parallel", "--episodes", "250", "--model", model, "--device", "cpu");
    expect(trained).toMatch(/greedy mean return -?\d\.\d{3} ± 0\.\d{3}/);
  });

  it("openai-agent trains an agent through its URL and saves", () => {
    const trained = run("openai-agent", "--episodes", "250", "--model", model, "--device", "cpu");
    expect(trained).toMatch(/^hand \d+: mean return -?0\.\d+ \(/m);
    expect(trained).toMatch(/^\d+ hands, [1-9]\d* updates/m);
    expect(existsSync(`${gatewayAdapter}/adapter_model.safetensors`)).toBe(true);
  });

  it("mcp-tools trains on the calls of an MCP server's tools", () => {
    const printed = run("mcp-tools", "--episodes", "64", "--device", "cpu");
    expect(printed).toMatch(/^episode \d+: mean return [01]\.\d+$/m);
    expect(printed).toMatch(/^greedy mean return [01]\.\d+ before, [01]\.\d+ after/m);
  });

  it("preferences trains on pairs of games and wins more deals", () => {
    const printed = run("preferences", "--episodes", "1280", "--device", "cpu");
    const [, before, after] = /a hit below 17: (0\.\d+) before, (0\.\d+) after 1280 pairs$/m.exec(printed)!.map(Number);
    expect(after).toBeGreaterThan(before + 0.2);
  });

  it("judge trains on the scores of a judge", () => {
    const printed = run("judge", "--episodes", "32", "--model", model, "--device", "cpu");
    expect(printed).toMatch(/^step 1: mean score \d+\.\d\d, [1-9]\d* requests, 0 failures$/m);
  });

  it("text-world trains on whole conversations", () => {
    const trained = run("text-world", "--episodes", "18", "--model", wordModel, "--device", "cpu");
    expect(trained).toMatch(/^before: \d\.\d{3} ± \d\.\d{3} of the tasks done$/m);
    expect(trained).toMatch(/^episode \d+: [01]\.\d\d of the tasks done$/m);
    expect(trained).toMatch(/^after: /m);
  });

  it("cartpole trains groups with a model from a folder", () => {
    const trained = run("cartpole", "--episodes", "8", "--model", model, "--device", "cpu");
    expect(trained).toMatch(/^8 episodes: mean return \d+\.\d, entropy 0\.\d{3}$/m);
    expect(trained).toMatch(/^greedy mean return \d+\.\d ± \d+\.\d/m);
  });

  it("grpo learns a rule from reward functions", () => {
    const steps = run("grpo", "--episodes", `${20 * 144}`).matchAll(/^step \d+: (\d+) % right/gm);
    const shares = Array.from(steps, ([, share]) => Number(share));
    expect(shares).toHaveLength(3);
    expect(shares.at(-1)).toBeGreaterThan(80);
  });

  it("warm-start improves on random by the demonstrations that ship with the examples", () => {
    const output = run("warm-start", "--episodes", "400");
    const [before, after] = Array.from(output.matchAll(/greedy mean return (-?[\d.]+) ±/g), ([, mean]) => Number(mean));
    expect(before).toBeLessThan(-0.15);
    expect(after).toBeGreaterThan(-0.1);
  });

  it("tinker names what it needs", () => {
    expect(run("tinker")).toContain("Set TINKER_BASE_URL");
  });

  it("rejects an unknown option and names the programs", () => {
    expect(() => run("blackjack", "--hands", "5")).toThrow("--hands");
    expect(() => compileAndRun("own-env")).toThrow("module for the llamagym command");
  });
});
