import { readdir } from "node:fs/promises";
import { describe, expect, it } from "vitest";
import { runInHost } from "./support/command.js";

describe("llamagym recipe", () => {
  it("lists the recipes", async () => {
    const { status, out } = await runInHost(["recipe"]);
    expect(status).toBe(0);
    const folders = await readdir("recipes");
    const names = out.trim().split("\n");
    expect(names).toEqual(expect.arrayContaining(["bandit", "blackjack", "text-world-smollm2"]));
    expect(folders).toEqual(expect.arrayContaining(names));
  });

  it("refuses unknown recipes and variants before it trains", async () => {
    const unknown = await runInHost(["recipe", "blackjak"]);
    expect(unknown.status).toBe(1);
    expect(unknown.err).toContain('There is no recipe "blackjak". Did you mean blackjack?');
    const output = ["--output", "/nonexistent-output"];
    const noVariants = await runInHost(["recipe", "blackjack", "--variant", "fast", ...output]);
    expect(noVariants.err).toContain('The recipe blackjack has no variant "fast". It has none');
    const otherVariants = await runInHost(["recipe", "frozenlake-layers", "--variant", "fast", ...output]);
    expect(otherVariants.err).toMatch(/has no variant "fast"\. Its variants: \w/);
  });
});
