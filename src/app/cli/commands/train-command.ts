import { defineSettings, selectSettings, text, type GivenSettings, type SettingTable } from "../../../core/settings.js";
import { formatNumber } from "../../../core/format.js";
import { readJson, readJsonIfExists } from "../../../core/files/json-file.js";
import { EMBEDDED_MODEL } from "../../../models/index.js";
import { evaluate, readRunConfig } from "../../../rl/train/index.js";
import { openTransport, resolveWorkers } from "../../distributed/open-transport.js";
import { listChangeable } from "../../runs/open-run.js";
import { resumeRun, startRun, type OpenTransport, type Run, type RunOptions } from "../../runs/run.js";
import { findAlgorithm } from "../../runs/load-algorithm.js";
import { findRecipes } from "../../runs/recipe.js";
import { RunEnv } from "../../runs/run-env.js";
import { runSettings, trainSettingsOf, type TrainOptions } from "../../runs/run-settings.js";
import { formatCommandLine, quoteArg } from "../command-line.js";
import { describeStart } from "../display/describe-start.js";
import { reportEpisodes } from "../display/report-episodes.js";
import { checkResumeOptions } from "../options/check-resume-options.js";
import { defineCommand, type Command } from "../options/define-command.js";
import { describeRunDefaults } from "../options/describe-defaults.js";
import { timestampedFolder } from "../options/default-output.js";
import { envSourceOptions, formatEnvArgs, readEnvOptions, resolveEnvId } from "../options/env-options.js";
import { loadArgAlgorithm, type FileArgs } from "../options/load-arg-algorithm.js";
import { inheritModel } from "../options/inherit-model.js";
import { readRubric } from "../options/read-rubric.js";
import { toOptionName } from "../options/option-names.js";
import { workersOptions } from "../options/workers-options.js";
import { UsageError } from "../options/usage-error.js";
import { formatReturnsTable, listReferencePolicies, type PolicyReturn } from "../reference-policies.js";
import type { Reporter } from "../reporter.js";
import { dashboardOption, saveTrained, trainRun, type RunDisplay } from "../train-run.js";
import { withModelAdvice } from "../with-model-advice.js";

const commandOptions = {
  ...defineSettings(
    {
      config: text({
        short: "c",
        valueName: "file",
        description: "JSON file with settings; options on the command line take precedence.",
      }),
      output: text({
        valueName: "folder",
        defaultText: "runs/ENV-TIME",
        description: "Run folder: settings, metrics, checkpoints and the adapter.",
      }),
      resume: text({
        valueName: "folder",
        changeable: "resume",
        description: `Resume the run in this folder. Only these settings may change: ${listChangeable(runSettings).map(toOptionName).join(", ")}.`,
      }),
    },
    { group: "Run", common: true },
  ),
  ...defineSettings({ dashboard: dashboardOption }, { group: "Run", common: true }),
  ...workersOptions,
  ...envSourceOptions,
};

type Args = Partial<GivenSettings<typeof commandOptions> & TrainOptions>;

export const trainCommand: Command = {
  help: async (args) => (await createCommand(args)).help(args),
  run: async (args, reporter) => (await createCommand(args)).run(args, reporter),
};

/** Creates the command with the options of the algorithm that the arguments name. */
async function createCommand(args: readonly string[]): Promise<Command> {
  const algorithm = await loadArgAlgorithm(args, readSavedAlgorithm);
  const settings = trainSettingsOf(algorithm);
  return defineCommand<SettingTable>({
    name: "train",
    description:
      "Trains a language model in an environment with reinforcement learning. The run folder holds everything needed to resume, evaluate or play.",
    examples: [
      {
        description: "PPO with the embedded model, with a comparison before and after",
        args: "train blackjack --eval-episodes 1000 --output runs/blackjack",
      },
      {
        description: "GRPO with a Hugging Face model",
        args: "train blackjack --algorithm grpo -m Qwen/Qwen2.5-0.5B-Instruct",
      },
      { description: "An algorithm of your own", args: "train blackjack --algorithm ./my-algorithm.js" },
      {
        description: "Collect rollouts on other machines, which run `llamagym worker`",
        args: "train blackjack --redis redis://HOST:6379",
      },
      {
        description: "The tools of an MCP server, scored by a judge",
        args: 'train "mcp:node server.js" --tasks tasks.jsonl --reward none --judge MODEL --judge-url URL --judge-rubric rubric.md',
      },
      { description: "Continue an interrupted run", args: "train --resume runs/blackjack" },
    ],
    positionals: [
      { name: "ENV", description: "Environment, such as blackjack, CartPole-v1 or python:ID.", required: false },
    ],
    options: { ...commandOptions, ...settings },
    showsCommonOptions: true,
    notes: [
      `Shows the defaults of ${findAlgorithm(algorithm ?? "ppo").title}; add --algorithm NAME and --model ID to see others.`,
      "The batch size counts turns for PPO and episodes for the other algorithms.",
    ],
    describeDefaults: (table, values) =>
      describeRunDefaults(table, Object.keys(settings), {
        ...(values as Pick<TrainOptions, "model" | "actionMode">),
        algorithm,
      }),
    run: async (args: Args, reporter, [name]) => {
      const workers = resolveWorkers(args);
      const transport: OpenTransport = async (folder, run) => openTransport(workers!, folder, run);
      return trainRun(reporter, {
        command: "train",
        dashboard: args.dashboard === true,
        open: async (hooks) => openRun(args, settings, name, { ...hooks, openTransport: workers && transport }),
        train,
      });
    },
  });
}

/** Reads the algorithm of the --config file or of the run to --resume. */
async function readSavedAlgorithm({ config, resume }: FileArgs): Promise<unknown> {
  if (config !== undefined) return (await readJsonIfExists(config))?.algorithm;
  return resume === undefined ? undefined : (await readRunConfig<Partial<TrainOptions>>(resume))?.algorithm;
}

async function openRun(args: Args, settings: SettingTable, name: string | undefined, hooks: RunOptions): Promise<Run> {
  const { resume } = args;
  if (resume !== undefined) {
    checkResumeOptions(args, commandOptions, runSettings, name);
    return resumeRun(resume, selectSettings(runSettings, args), hooks);
  }
  const options = await explicitOptions(args, settings, name);
  const folder = args.output ?? timestampedFolder(name ?? options.env);
  return withModelAdvice(options.model ?? "", async () => startRun(options, folder, hooks));
}

/** Evaluates, trains, saves, evaluates again and prints the comparison. */
async function train(run: Run, display: RunDisplay): Promise<void> {
  const { reporter, report } = display;
  const { config, isResumed } = run;
  const { signal } = reporter;
  reporter.print(describeStart(run, `in ${config.env}`));
  const before: PolicyReturn[] = [];
  for (const mode of ["train", "eval"] as const)
    if (!isResumed && !signal.aborted) before.push(...(await evaluateAgent(run, "before training", mode, reporter)));
  const result = await run.train({
    onWarmStart: (metrics) => report.updateWarmStart(metrics, config.sftSteps),
    onProgress: (event) => report.update(event, config.episodes),
    signal,
  });
  const adapter = await saveTrained(run, result, display, "--episodes or --turns");
  if (adapter === undefined) return;
  const { bestEvaluation: best } = result;
  if (best !== undefined)
    reporter.print(
      `The best evaluation was after update ${best.updates}: mean return ${formatNumber(best.meanReturn)}.`,
    );
  await printComparison(run, before, reporter);
  reporter.print(await describeResult(run, adapter));
}

async function printComparison(run: Run, before: readonly PolicyReturn[], reporter: Reporter): Promise<void> {
  const evaluated = [...before, ...(await evaluateAgent(run, "after training", "eval", reporter))];
  if (evaluated.length === 0) return;
  reporter.print(formatReturnsTable([...listReferencePolicies(new RunEnv(run.config)), ...evaluated]));
}

/**
 * Names the commands that play and evaluate the result, and recipes that train in the environment.
 */
async function describeResult({ config }: Run, adapter: string): Promise<string> {
  const checkpointArg = ` --${config.tuning === "lora" ? "adapter" : "model"} ${quoteArg(adapter)}`;
  const target = `${formatEnvArgs(new RunEnv(config))}${checkpointArg}`;
  const recipes = await findRecipes(config.env, { isEmbedded: config.model === EMBEDDED_MODEL });
  const names = recipes.map(({ name }) => name);
  return [
    `Saved ${adapter}.`,
    `Watch it play: ${formatCommandLine(`play ${target} --agent`)}`,
    `Evaluate it:   ${formatCommandLine(`eval ${target}`)}`,
    ...(recipes.length === 0
      ? []
      : [`Recipes:       ${names.join(", ")}; run one: ${formatCommandLine("recipe NAME")}`]),
  ].join("\n");
}

/**
 * Measures the mean return of sampled ("train") or greedy ("eval") completions, unless evaluation
 * is off.
 */
async function evaluateAgent(
  run: Run,
  label: string,
  mode: "train" | "eval",
  reporter: Reporter,
): Promise<PolicyReturn[]> {
  const { evalEpisodes: episodes } = run.config;
  if (episodes === 0) return [];
  const progress = reportEpisodes(reporter, episodes, `Evaluation ${label}`);
  try {
    const { meanReturn, standardError } = await evaluate(run.agent, run.makeEnv, {
      episodes,
      mode,
      signal: reporter.signal,
      onProgress: (_turns, ended) => progress.add(ended.length),
      onWarning: reporter.warn,
    });
    return [{ policy: `${label}, ${mode === "train" ? "sampled" : "greedy"}`, meanReturn, standardError }];
  } finally {
    progress.end();
  }
}

async function explicitOptions(args: Args, table: SettingTable, name: string | undefined): Promise<TrainOptions> {
  const { config, envModule } = args;
  const settings: Partial<TrainOptions> = selectSettings(table, args);
  const { version: _, ...fromFile } = config === undefined ? {} : await readJson(config);
  const env = name ?? fromFile.env;
  if (typeof env !== "string")
    throw new UsageError("ENV is missing: name an environment, such as blackjack, or a --config FILE that has one.");
  const envOptionValues = {
    ...(fromFile.envOptions as object | undefined),
    ...readEnvOptions(args),
  };
  return {
    ...(await inheritModel(settings)),
    ...fromFile,
    ...settings,
    ...(await readRubric(settings.judgeRubric)),
    env: await resolveEnvId(env, { envModule }),
    envOptions: envOptionValues,
  };
}
