import { describeFolder } from "../display/describe-start.js";
import { defineSettings, selectSettings, text, type GivenSettings, type SettingTable } from "../../../core/settings.js";
import { readJson } from "../../../core/files/json-file.js";
import { algorithms } from "../../../rl/algorithms/index.js";
import type { PromptAlgorithm } from "../../../rl/train/index.js";
import type { RunHooks } from "../../runs/open-run.js";
import { resumePromptRun, startPromptRun, type PromptRun } from "../../runs/prompt-run.js";
import {
  promptRunSettings,
  promptRunSettingsOf,
  resolvePromptRunConfig,
  type PromptRunOptions,
} from "../../runs/prompt-run-settings.js";
import { formatCommandLine } from "../command-line.js";
import { formatCount } from "../../../core/format.js";
import { checkResumeOptions } from "../options/check-resume-options.js";
import { timestampedFolder } from "../options/default-output.js";
import { defineCommand, type Command } from "../options/define-command.js";
import { describeModelDefaults } from "../options/describe-defaults.js";
import { inheritModel } from "../options/inherit-model.js";
import { toOptionName } from "../options/option-names.js";
import { runFolderOptions } from "../options/run-folder-options.js";
import { UsageError } from "../options/usage-error.js";
import { printSaved, saveTrained, trainRun, type RunDisplay } from "../train-run.js";
import { withModelAdvice } from "../with-model-advice.js";

/** Options of `llamagym train` that runs on prompts do not have, with what to do. */
const UNSUPPORTED = {
  redis: "completions of prompts are sampled in this process, without workers",
  "workers-folder": "completions of prompts are sampled in this process, without workers",
  "gradient-workers": "updates on prompts are computed in this process, without workers",
  judge: "export a judge as a reward function (docs/judge.md)",
  "eval-episodes": "runs on prompts have no evaluation; follow the rewards of each update",
  env: "it trains on prompts; environments are for llamagym train",
  algorithm: "the command names the algorithm",
};

type Args = Partial<GivenSettings<SettingTable> & PromptRunOptions> & {
  readonly config?: string;
  readonly output?: string;
  readonly resume?: string;
  readonly dashboard?: boolean;
};

/** Options of the command that are not settings of the run. */
function createCommandOptions(algorithm: PromptAlgorithm, settings: SettingTable) {
  const config = text({
    short: "c",
    valueName: "file",
    description: "JSON file with settings; options on the command line take precedence.",
  });
  const folder = { contents: "settings, metrics, checkpoints and the adapter", moved: "the data" };
  return {
    ...defineSettings({ config }, { group: "Run", common: true }),
    ...runFolderOptions(algorithm, settings, folder),
  };
}

/** Defines the command that trains on prompts with an algorithm. */
function definePromptCommand(algorithm: PromptAlgorithm): Command {
  const settings = promptRunSettingsOf(algorithm);
  const { title } = algorithms[algorithm];
  const commandOptions = createCommandOptions(algorithm, settings);
  return defineCommand<SettingTable>({
    name: algorithm,
    description: `Trains a language model on prompts with reward functions by ${title}. The run folder holds everything needed to resume or generate.`,
    examples: [
      {
        description: "A data set and a module of reward functions",
        args: `${algorithm} --data prompts.jsonl --reward-funcs rewards.js --output runs/${algorithm}`,
      },
      {
        description: "Two functions of a module with weights, and a Hugging Face model",
        args: `${algorithm} --data prompts.jsonl --reward-funcs rewards.js#isRight --reward-funcs rewards.js#isShort --reward-weights 1,0.1 -m Qwen/Qwen2.5-0.5B-Instruct`,
      },
      { description: "Continue an interrupted run", args: `${algorithm} --resume runs/${algorithm}` },
    ],
    options: { ...selectSettings(promptRunSettings, settings), ...commandOptions, ...settings },
    showsCommonOptions: true,
    unsupported: UNSUPPORTED,
    argumentAdvice: `llamagym ${algorithm} trains on prompts. To train in an environment: ${formatCommandLine(`train ENV --algorithm ${algorithm}`)}`,
    notes: [
      "Each row of --data has a prompt: a text, or chat messages. Its other columns reach the reward functions.",
      `For an environment: ${formatCommandLine(`train ENV --algorithm ${algorithm}`)}`,
    ],
    describeDefaults: (table, { model }) => {
      const files = { data: "prompts", rewardFuncs: ["rewards"] };
      const resolve = (name: string) => ({ ...resolvePromptRunConfig({ algorithm, model: name, ...files }) });
      const names = Object.keys(settings).filter((name) => !["model", "data", "rewardFuncs"].includes(name));
      return describeModelDefaults(table, names, resolve, model as string | undefined);
    },
    run: async (args: Args, reporter) =>
      trainRun(reporter, {
        command: algorithm,
        dashboard: args.dashboard === true,
        open: async (hooks) => openRun(algorithm, args, settings, commandOptions, hooks),
        train: trainOnPrompts,
      }),
  });
}

export const grpoCommand = definePromptCommand("grpo");
export const rlooCommand = definePromptCommand("rloo");

async function openRun(
  algorithm: PromptAlgorithm,
  args: Args,
  settings: SettingTable,
  commandOptions: SettingTable,
  hooks: RunHooks,
): Promise<PromptRun> {
  const { resume } = args;
  if (resume !== undefined) {
    checkResumeOptions(args, commandOptions, settings);
    return resumePromptRun(algorithm, resume, selectSettings(settings, args), hooks);
  }
  const options = await explicitOptions(algorithm, args, settings);
  const folder = args.output ?? timestampedFolder(algorithm);
  return withModelAdvice(options.model ?? "", async () => startPromptRun(options, folder, hooks));
}

async function explicitOptions(
  algorithm: PromptAlgorithm,
  args: Args,
  settings: SettingTable,
): Promise<PromptRunOptions> {
  const { version: _, ...fromFile } = args.config === undefined ? {} : await readJson(args.config);
  if (fromFile.algorithm !== undefined && fromFile.algorithm !== algorithm)
    throw new UsageError(
      `${args.config} is for the algorithm ${JSON.stringify(fromFile.algorithm)}, not for llamagym ${algorithm}.`,
    );
  const given: Partial<PromptRunOptions> = { ...fromFile, ...selectSettings(settings, args) };
  const required = given.teacher === undefined ? (["data", "rewardFuncs"] as const) : (["data"] as const);
  for (const name of required)
    if (given[name] === undefined)
      throw new UsageError(
        `--${toOptionName(name)} is missing${name === "data" ? "" : ", or a --teacher"}: ${promptRunSettings[name].description}`,
      );
  return { ...(await inheritModel(given)), ...given, algorithm };
}

async function trainOnPrompts(run: PromptRun, display: RunDisplay): Promise<void> {
  const { reporter, report } = display;
  reporter.print(describeStart(run));
  const result = await run.train({ onProgress: (event) => report.update(event), signal: reporter.signal });
  printSaved(await saveTrained(run, result, display, "a new run from its adapter (--adapter)"), reporter);
}

function describeStart(run: PromptRun): string {
  const { model, algorithm, batchSize } = run.config;
  const { totalSteps, numPrompts } = run.opened;
  const updates = totalSteps === 1 ? "1 update" : `${formatCount(totalSteps)} updates`;
  return [
    describeFolder(run),
    `Training ${model} on ${formatCount(numPrompts)} prompts with ${algorithms[algorithm].algorithmName}: ${updates} of ${formatCount(batchSize!)} completions.`,
  ].join("\n");
}
