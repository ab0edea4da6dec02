import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { invalidArgument } from "../../../core/errors.js";
import { boolean, defineSettings, integer, text } from "../../../core/settings.js";
import { writeFileAtomic } from "../../../core/files/write-file-atomic.js";
import { closeEnvs } from "../../../rl/rollout/index.js";
import { evaluate, evaluateExact, type EvalResult, type ExactEvaluations } from "../../../rl/train/index.js";
import { renderReport } from "../../dashboard/report.js";
import { resumeRun, startRun, type Run } from "../../runs/index.js";
import {
  countEpisodesToReach,
  drawRecipe,
  listRecipes,
  openRecipe,
  readRecipeSeconds,
  saveRecipeResult,
  type Recipe,
  type RecipeFolders,
  type RecipeResult,
} from "../../runs/recipe.js";
import { RunEnv } from "../../runs/run-env.js";
import { formatCommandLine } from "../command-line.js";
import { formatTable } from "../display/format-table.js";
import { TrainingReport } from "../display/report-training.js";
import { SIGINT_EXIT_CODE } from "../interrupt-handler.js";
import { defineCommand } from "../options/define-command.js";
import type { Reporter } from "../reporter.js";

/** Settings of the user in place of the recipe's. */
interface RecipeOverrides {
  readonly model?: string;
  readonly threads?: number;
}

export const recipeCommand = defineCommand({
  name: "recipe",
  description:
    "Runs a published learning result again, with its settings and seeds, and evaluates it. Without a name, it lists the recipes.",
  examples: [
    { description: "All seeds of a recipe; the same command resumes", args: "recipe blackjack" },
    { description: "One seed", args: "recipe frozenlake --seed 1" },
  ],
  positionals: [{ name: "NAME", description: "The recipe.", required: false }],
  options: defineSettings({
    seed: integer({ min: 0, defaultText: "all seeds of the recipe", description: "Seed to run." }),
    variant: text({
      valueName: "name",
      defaultText: "all variants",
      description: "Variant to run, for a recipe that compares several.",
    }),
    model: text({
      short: "m",
      valueName: "model",
      defaultText: "the recipe's",
      description: "Model to train: a folder, a GGUF file or a Hugging Face id.",
    }),
    threads: integer({ min: 1, defaultText: "the recipe's", description: "Threads for inference and training." }),
    output: text({
      short: "o",
      valueName: "folder",
      default: "runs/recipes",
      description:
        "Folder for the runs, each with its report.html, and for results.json and curve.svg in a folder of the recipe's name.",
    }),
    publish: boolean({
      default: false,
      description: "Write results.json and the curves into the recipe's own folder, in a clone.",
    }),
  }),
  run: async ({ seed, variant, model, threads, output = "runs/recipes", publish = false }, reporter, [name]) => {
    if (name === undefined) {
      reporter.print(await describeRecipes());
      return 0;
    }
    const recipe = await openRecipe(name);
    const variants = chooseVariants(recipe, variant);
    const folders: RecipeFolders = {
      results: publish ? recipe.folder : join(output, name),
      run: (seed, variant) => {
        const words = variant === undefined ? [] : [variant.replaceAll(/[^a-z0-9]+/gi, "-")];
        return join(output, [name, ...words, seed].join("-"));
      },
    };
    await mkdir(folders.results, { recursive: true });
    reporter.handleInterrupts("Finishing this update, then saving; the same command resumes.");
    const seeds = seed === undefined ? recipe.seeds : [seed];
    const pairs = seeds.flatMap((seed) => variants.map((chosen) => [seed, chosen] as const));
    for (const [seed, chosen] of pairs) {
      const folder = folders.run(seed, chosen);
      const result = await runSeed(recipe, { seed, variant: chosen, folder }, { model, threads }, reporter);
      if (result === undefined) break;
      await saveRecipeResult(recipe, folders, result, { model, commit: publish ? readCommit(recipe.folder) : null });
      await writeFileAtomic(join(folder, "report.html"), await renderReport([folder]));
    }
    const curves = await drawRecipe(recipe, folders);
    if (reporter.signal.aborted) return SIGINT_EXIT_CODE;
    reporter.print(`Saved ${[join(folders.results, "results.json"), ...curves].join(", ")}.`);
    return 0;
  },
});

async function describeRecipes(): Promise<string> {
  const recipes = await listRecipes();
  const describe = async (recipe: Recipe) => [
    recipe.name,
    Math.max(1, (await readRecipeSeconds(recipe)) / 60).toFixed(0),
    recipe.task,
  ];
  return [
    formatTable([["NAME", "MINUTES", "TASK"], ...(await Promise.all(recipes.map(describe)))], [1]),
    "",
    "MINUTES: of a seed, where it was published; with variants, of the longest one.",
    `Run one: ${formatCommandLine("recipe NAME --seed 1")}. Results: recipes/NAME/README.md in the package.`,
  ].join("\n");
}

function chooseVariants({ name, variantNames }: Recipe, variant: string | undefined): Recipe["variantNames"] {
  if (variant === undefined) return variantNames;
  if (variantNames.includes(variant)) return [variant];
  const known = variantNames.flatMap((each) => each ?? []);
  const advice = known.length === 0 ? "It has none; leave out --variant." : `Its variants: ${known.join(", ")}.`;
  throw invalidArgument(`The recipe ${name} has no variant "${variant}". ${advice}`);
}

/** Trains and evaluates with a seed; undefined when it was interrupted. */
async function runSeed(
  recipe: Recipe,
  { seed, variant, folder }: { readonly seed: number; readonly variant: string | undefined; readonly folder: string },
  overrides: RecipeOverrides,
  reporter: Reporter,
): Promise<RecipeResult | undefined> {
  const options = {
    ...recipe.train,
    ...(variant === undefined ? {} : recipe.variants?.[variant]),
    ...(overrides.model !== undefined && { model: overrides.model }),
    ...(overrides.threads !== undefined && { threads: overrides.threads }),
    seed,
  };
  const hooks = { onWarning: reporter.warn };
  const run = existsSync(join(folder, "config.json"))
    ? await resumeRun(folder, options, hooks)
    : await startRun(options, folder, hooks);
  try {
    const trained = await train(run, reporter);
    if (trained.isInterrupted) return undefined;
    await run.saveModel();
    const { turns, seconds } = trained.state;
    return {
      seed,
      ...(variant === undefined ? {} : { variant }),
      ...(await evaluateRun(
        recipe,
        run,
        variant === undefined ? `seed ${seed}` : `${variant}, seed ${seed}`,
        reporter,
      )),
      turns,
      wallSeconds: Math.round(seconds),
      episodesToTarget: recipe.target === undefined ? undefined : await countEpisodesToReach(recipe.target, folder),
    };
  } finally {
    await run.close();
  }
}

async function train(run: Run, reporter: Reporter) {
  const report = new TrainingReport(reporter);
  try {
    return await run.train({
      signal: reporter.signal,
      onProgress: (progress) => report.update(progress),
      onWarmStart: (metrics) => report.updateWarmStart(metrics, run.config.sftSteps),
    });
  } finally {
    report.end();
  }
}

async function evaluateRun(recipe: Recipe, run: Run, label: string, reporter: Reporter) {
  const env = new RunEnv({ ...run.config, envOptions: { ...run.config.envOptions, ...recipe.evalEnvOptions } });
  const evaluateIn = (mode: "train" | "eval") =>
    evaluate(run.agent, async () => env.open(), { episodes: recipe.evalEpisodes, seed: recipe.evalSeed, mode });
  const greedy = await evaluateIn("eval");
  const sampled = recipe.evalSampled === true ? await evaluateIn("train") : undefined;
  const exact = recipe.train.evalExact === true ? await evaluateExactly(run, env, reporter) : undefined;
  const suffix = sampled === undefined ? "" : `, sampled ${formatMean(sampled)}`;
  const nashConv = exact === undefined ? "" : `, NashConv ${exact.sampled.nashConv.toFixed(4)}`;
  reporter.print(`${label}: ${formatMean(greedy)}${suffix}${nashConv}`);
  return {
    value: greedy.meanReturn,
    standardError: greedy.standardError,
    successRate: greedy.successRate,
    sampledValue: sampled?.meanReturn,
    sampledStandardError: sampled?.standardError,
    sampledSuccessRate: sampled?.successRate,
    exact,
  };
}

async function evaluateExactly({ agent }: Run, env: RunEnv, reporter: Reporter): Promise<ExactEvaluations> {
  const opened = await env.open();
  try {
    return await evaluateExact(agent, opened);
  } finally {
    await closeEnvs([opened], reporter.warn);
  }
}

function formatMean({ meanReturn, standardError, successRate }: EvalResult): string {
  const success = successRate === undefined ? "" : ` (${(100 * successRate).toFixed(1)}% successful)`;
  return `${meanReturn.toFixed(4)} ± ${standardError.toFixed(4)}${success}`;
}

/** Returns the commit of a clone. */
function readCommit(folder: string): string | null {
  const { status, stdout } = spawnSync("git", ["rev-parse", "--short", "HEAD"], { cwd: folder, encoding: "utf8" });
  return status === 0 ? stdout.trim() : null;
}
