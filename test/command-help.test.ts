import { execFile } from "node:child_process";
import { mkdtemp, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { formatNumber } from "../src/core/format.js";
import type { ActionMode } from "../src/rl/agent/index.js";
import { resolveTrainConfig } from "../src/app/runs/run-settings.js";
import { COMMAND_PATH, runInHost } from "./support/command.js";

describe("llamagym --help", () => {
  it("shows examples and common options in the short help, all options under headings in the full one", async () => {
    const [short, full] = await Promise.all(["--help", "--help-all"].map((flag) => runInHost(["train", flag])));
    expect(short.out).toMatch(/^Examples:\n {2}# .*\n {2}node \S*bin\.js train blackjack/m);
    expect(short.out).not.toContain("--lora-alpha");
    for (const title of ["Run", "Environment", "Model", "Completions", "Algorithm", "PPO only"])
      expect(full.out).toMatch(new RegExp(`^${title}:$`, "m"));
    for (const { out } of [short, full]) {
      const lines = out.split("\n").filter((line) => !line.includes("bin.js"));
      expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(80);
      expect(out).toMatch(/^ {2}--learning-rate <number> +\w/m);
    }
  });

  it("shows the defaults that a run with the given options uses", async () => {
    const help = async (...args: string[]) => {
      const { out } = await runInHost(["train", ...args, "--help-all"]);
      return new Map(
        Array.from(out.matchAll(/^ {2}(?:-\w, )?(--[\w-]+)[^]*?(?=\n {2}(?:-\w, )?--|\n\n)/gm), ([text, name]) => [
          name,
          /Default: (.*?)\.(?= |$)/.exec(text.replace(/\s+/g, " "))?.[1],
        ]),
      );
    };
    const resolve = (actionMode: ActionMode) => resolveTrainConfig({ env: "", model: "owner/model", actionMode });
    const [ppo, grpo, large, choices, regex] = await Promise.all([
      help(),
      help("--algorithm", "grpo", "--model", "embedded"),
      help("--model", "owner/model"),
      help("--model", "owner/model", "--action-mode", "choices"),
      help("--model", "owner/model", "--action-mode", "regex"),
    ]);
    const [listed, free] = [resolve("choices"), resolve("free")];
    expect(ppo.get("--batch-size")).toBe(
      `256 (embedded), ${listed.batchSize} (pretrained with listed actions), ${free.batchSize} otherwise`,
    );
    expect(ppo.get("--turns")).toContain(`, ${listed.turns} (pretrained with listed actions), off otherwise`);
    expect(ppo.get("--beta")).toMatch(/^grpo .*; rloo /);
    expect([grpo.get("--batch-size"), grpo.get("--num-generations")]).toEqual(["64", "8"]);
    const rates = [listed, free].map(({ learningRate }) => formatNumber(learningRate!));
    expect(large.get("--learning-rate")).toBe(`${rates[0]} (listed actions), ${rates[1]} otherwise`);
    expect([choices, regex].map((options) => options.get("--learning-rate"))).toEqual(rates);
  });

  it("lists each option once in the full help", async () => {
    const { out } = await runInHost(["sweep", "--help-all"]);
    for (const title of ["Sweep", "Environment", "Model", "Completions", "Algorithm", "PPO only"])
      expect(out).toMatch(new RegExp(`^${title}:$`, "m"));
    expect(out).not.toMatch(/^Other:$/m);
    const names = Array.from(out.matchAll(/^ {2}(?:-\w, )?(--(?:\[no-\])?[\w-]+)/gm), ([, name]) => name);
    expect(new Set(names).size).toBe(names.length);
    expect(names).not.toContain("--seed");
  });

  it("names commands by npx when run from an installed package", async () => {
    const bin = await mkdtemp(join(tmpdir(), "bin-"));
    await symlink(COMMAND_PATH, join(bin, "llamagym"));
    const { stdout } = await promisify(execFile)(process.execPath, [join(bin, "llamagym"), "train", "--help"]);
    expect(stdout).toMatch(/^ {2}npx llamagym train blackjack /m);
    await rm(bin, { recursive: true });
  });
});
