import { existsSync } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import { describe, expect, it } from "vitest";
import { findRecipes, listRecipes, type RecipeResult } from "../src/app/runs/recipe.js";
import { resolveTrainConfig } from "../src/app/runs/run-settings.js";
import { runInHost } from "./support/command.js";

describe("llamagym recipe", () => {
  it("lists the recipes with their minutes and tasks", async () => {
    const { status, out } = await runInHost(["recipe"]);
    expect(status).toBe(0);
    const rows = Array.from(out.matchAll(/^([\w-]+) +(\d+) {2}(.+)$/gm), ([, ...cells]) => cells);
    const folders = (await readdir("recipes")).filter((name) => existsSync(`recipes/${name}/config.json`));
    expect(rows.map(([name]) => name)).toEqual(folders.toSorted());
    const { task, seeds } = JSON.parse(await readFile("recipes/cartpole/results.json", "utf8"));
    const minutes = seeds.reduce((sum: number, seed: RecipeResult) => sum + seed.wallSeconds, 0) / seeds.length / 60;
    expect(rows).toContainEqual(["cartpole", minutes.toFixed(0), task]);
  });

  it("has settings that runs accept, in each variant", async () => {
    const recipes = await listRecipes();
    expect(recipes.length).toBeGreaterThan(20);
    for (const { train, variantNames, variants = {} } of recipes)
      for (const name of variantNames) {
        const options = { ...train, ...(name === undefined ? {} : variants[name]), seed: 1 };
        expect(resolveTrainConfig(options)).toMatchObject({ env: options.env, seed: 1 });
      }
  });

  it("finds the recipes of an environment", async () => {
    const find = async (env: string, isEmbedded: boolean) =>
      (await findRecipes(env, { isEmbedded })).map(({ name }) => name);
    expect(await find("FrozenLake-v1", true)).toEqual(["frozenlake", "frozenlake-action-modes"]);
    expect(await find("FrozenLake-v1", false)).toEqual(["frozenlake-layers", "frozenlake-smollm2"]);
    // A variant has its own environment.
    expect(await find("BabyAI-GoToRedBallNoDists-v0", true)).toEqual(["baby-ai"]);
    expect(await find("Taxi-v3", true)).toEqual([]);
    const { out } = await runInHost(["envs", "frozen-lake"]);
    expect(out).toMatch(/^recipes +frozenlake, frozenlake-action-modes, frozenlake-layers, frozenlake-smollm2$/m);
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
