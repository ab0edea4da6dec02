import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { drawRecipe, saveRecipeResult, type Recipe, type RecipeFolders } from "./recipe.js";

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "recipe-"));
});
afterAll(async () => rm(folder, { recursive: true }));

const recipe: Recipe = {
  name: "pennies",
  folder: "",
  task: "Pennies",
  train: { env: "Pennies-v0" },
  seeds: [1, 2, 3],
  evalEpisodes: 10,
  evalSeed: 1,
  references: {},
  variantNames: [undefined],
};

/** Writes the metrics of a run of so many updates. */
async function writeRun(path: string, updates: number): Promise<void> {
  await mkdir(path);
  const lines = Array.from({ length: updates }, (_, i) =>
    JSON.stringify({ step: i + 1, num_turns: 10 * (i + 1), "rollout/ep_rew_mean": i / updates }),
  );
  await writeFile(join(path, "metrics.jsonl"), lines.map((line) => `${line}\n`).join(""));
}

it("draws the curves of finished seeds, whether or not another one has begun", async () => {
  const folders: RecipeFolders = { results: folder, run: (seed) => join(folder, `run-${seed}`) };
  const result = { value: 0, standardError: 0, turns: 40, wallSeconds: 1 };
  expect(await drawRecipe(recipe, folders)).toEqual([]);
  await writeRun(folders.run(1, undefined), 4);
  await writeRun(folders.run(2, undefined), 4);
  for (const seed of [1, 2])
    await saveRecipeResult(recipe, folders, { seed, ...result }, { model: undefined, commit: null });
  expect(await drawRecipe(recipe, folders)).toEqual([join(folder, "curve.svg")]);
  const curve = await readFile(join(folder, "curve.svg"), "utf8");
  expect(curve).toContain("2 seeds");

  await writeRun(folders.run(3, undefined), 1);
  await drawRecipe(recipe, folders);
  expect(await readFile(join(folder, "curve.svg"), "utf8")).toBe(curve);

  await rm(folders.run(2, undefined), { recursive: true });
  await writeRun(folders.run(2, undefined), 1);
  await drawRecipe(recipe, folders);
  expect(await readFile(join(folder, "curve.svg"), "utf8")).toContain("1 seed");
});

it("keeps the results of seeds that end at the same moment", async () => {
  const results = join(folder, "together");
  await mkdir(results);
  const folders: RecipeFolders = { results, run: (seed) => join(results, `run-${seed}`) };
  const seeds = Array.from({ length: 8 }, (_, i) => i + 1);
  const result = { value: 0, standardError: 0, turns: 40, wallSeconds: 1 };
  await Promise.all(
    seeds
      .toReversed()
      .map(async (seed) => saveRecipeResult(recipe, folders, { seed, ...result }, { model: undefined, commit: null })),
  );
  const saved = JSON.parse(await readFile(join(results, "results.json"), "utf8")) as { seeds: { seed: number }[] };
  expect(saved.seeds.map(({ seed }) => seed)).toEqual(seeds);
  expect(await readdir(results)).toEqual(["results.json"]);
});
