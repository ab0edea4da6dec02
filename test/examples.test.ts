import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";

const root = fileURLToPath(new URL("..", import.meta.url));

/** What an example prints; it is compiled and run as a user would. */
function run(name: string, ...rest: string[]): string {
  const { status, stdout, stderr } = spawnSync(process.execPath, ["examples/run.mjs", name, ...rest], {
    cwd: root,
    encoding: "utf8",
  });
  if (status !== 0) throw new Error(stderr);
  return stdout;
}

describe("examples", () => {
  it("blackjack plays, trains and saves", { timeout: 240_000 }, () => {
    const printed = run("blackjack", "260");
    expect(printed).toMatch(/hand \d+: mean return -?0\.\d+, entropy 0\.\d+/);
    expect(printed).toMatch(/plays (hit|stay)\.\n$/);
  });

  it("parallel plays many games and measures", { timeout: 240_000 }, () => {
    expect(run("parallel", "1500")).toMatch(/greedy mean return -?\d\.\d{3} ± 0\.\d{3}/);
  });

  it("text-world plays whole conversations", { timeout: 240_000 }, () => {
    const printed = run("text-world", "18");
    expect(printed).toMatch(/^before: \d\.\d{3} ± \d\.\d{3} of the tasks done$/m);
    expect(printed).toMatch(/^episode \d+: [01]\.\d\d of the tasks done$/m);
    expect(printed).toMatch(/^after: /m);
  });

  it("cartpole plays groups and measures", { timeout: 240_000 }, () => {
    const printed = run("cartpole", "700");
    expect(printed).toMatch(/^\d+ turns: mean return \d+\.\d, entropy 0\.\d{3}$/m);
    expect(printed).toMatch(/^greedy mean return \d+\.\d ± \d+\.\d/m);
  });

  it("grpo learns a rule from reward functions", { timeout: 240_000 }, () => {
    const shares = Array.from(run("grpo", "40").matchAll(/^step \d+: (\d+) % right/gm), ([, share]) => Number(share));
    expect(shares).toHaveLength(4);
    expect(shares.at(-1)).toBeGreaterThan(80);
  });
});
