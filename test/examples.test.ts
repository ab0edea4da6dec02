import { spawnSync } from "node:child_process";
import { existsSync, rmSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { afterAll, describe, expect, it } from "vitest";
import { writeRandomModel } from "./support/random-model.js";

const root = fileURLToPath(new URL("..", import.meta.url));
const adapter = `${root}runs/example-blackjack`;
const gatewayAdapter = `${root}runs/example-openai-agent`;

/** Compiles and runs an example as a user would, and returns its output. */
function run(name: string, ...rest: string[]): string {
  const { status, stdout, stderr } = spawnSync(process.execPath, ["examples/run.mjs", name, ...rest], {
    cwd: root,
    encoding: "utf8",
  });
  if (status !== 0) throw new Error(stderr);
  return stdout;
}

describe("examples", { timeout: 240_000 }, () => {
  afterAll(() => {
    for (const folder of [adapter, gatewayAdapter]) rmSync(folder, { recursive: true, force: true });
  });

  it("blackjack plays as many hands as --episodes and saves no untrained adapter", () => {
    rmSync(adapter, { recursive: true, force: true });
    const printed = run("blackjack", "--episodes", "5");
    expect(printed).toContain("5 hands, 0 updates");
    expect(printed).toContain("no adapter is saved");
    expect(existsSync(adapter)).toBe(false);
  });

  it("blackjack trains, evaluates and saves", () => {
    const printed = run("blackjack", "--episodes", "2000");
    expect(printed).toMatch(/^hand \d+: mean return -?0\.\d+, entropy 0\.\d+$/m);
    expect(printed).toMatch(/^greedy mean return -?\d\.\d{3} ± 0\.\d{3}/m);
    expect(existsSync(`${adapter}/adapter_model.safetensors`)).toBe(true);
  });

  it("parallel trains in many environments and evaluates", () => {
    expect(run("parallel", "--episodes", "1500")).toMatch(/greedy mean return -?\d\.\d{3} ± 0\.\d{3}/);
  });

  it("openai-agent trains an agent through its URL and saves", () => {
    const printed = run("openai-agent", "--episodes", "300", "--device", "cpu");
    expect(printed).toMatch(/^hand \d+: mean return -?0\.\d+ \(/m);
    expect(printed).toMatch(/^\d+ hands, 1 updates/m);
    expect(existsSync(`${gatewayAdapter}/adapter_model.safetensors`)).toBe(true);
  });

  it("mcp-tools trains on the calls of an MCP server's tools", () => {
    const printed = run("mcp-tools", "--episodes", "256", "--device", "cpu");
    expect(printed).toMatch(/^episode \d+: mean return [01]\.\d+$/m);
    expect(printed).toMatch(/^greedy mean return [01]\.\d+ before, [01]\.\d+ after/m);
  });

  it("text-world trains on whole conversations", () => {
    const printed = run("text-world", "--episodes", "18");
    expect(printed).toMatch(/^before: \d\.\d{3} ± \d\.\d{3} of the tasks done$/m);
    expect(printed).toMatch(/^episode \d+: [01]\.\d\d of the tasks done$/m);
    expect(printed).toMatch(/^after: /m);
  });

  it("cartpole trains groups with a model from a folder", async () => {
    const { folder, remove } = await writeRandomModel();
    const printed = run("cartpole", "--episodes", "8", "--model", folder, "--device", "cpu");
    expect(printed).toMatch(/^8 episodes: mean return \d+\.\d, entropy 0\.\d{3}$/m);
    expect(printed).toMatch(/^greedy mean return \d+\.\d ± \d+\.\d/m);
    await remove();
  });

  it("grpo learns a rule from reward functions", () => {
    const steps = run("grpo", "--episodes", `${40 * 144}`).matchAll(/^step \d+: (\d+) % right/gm);
    const shares = Array.from(steps, ([, share]) => Number(share));
    expect(shares).toHaveLength(5);
    expect(shares.at(-1)).toBeGreaterThan(80);
  });

  it("warm-start improves on random by the demonstrations that ship with the examples", () => {
    const printed = run("warm-start", "--episodes", "600");
    const [before, after] = Array.from(printed.matchAll(/greedy mean return (-?[\d.]+) ±/g), ([, mean]) =>
      Number(mean),
    );
    expect(before).toBeLessThan(-0.15);
    expect(after).toBeGreaterThan(-0.1);
  });

  it("rejects an unknown option and names the programs", () => {
    expect(() => run("blackjack", "--hands", "5")).toThrow("--hands");
    expect(() => run("own-env")).toThrow("module for the llamagym command");
  });
});
