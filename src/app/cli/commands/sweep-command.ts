import {
  defineSettings,
  list,
  selectSettings,
  text,
  type GivenSettings,
  type SettingTable,
} from "../../../core/settings.js";
import { resolve } from "node:path";
import { readJson, readJsonIfExists } from "../../../core/files/json-file.js";
import { resolvePromptRunConfig } from "../../runs/prompt-run-settings.js";
import type { TrainOptions } from "../../runs/run-settings.js";
import { runSweep } from "../../sweeps/run-sweep.js";
import { findExampleAlgorithm, getTrialSettings, isOnPrompts, normalizeKeys } from "../../sweeps/search-space.js";
import { readSweepOptions } from "../../sweeps/sweep-folder.js";
import { sweepSettings, type SweepOptions } from "../../sweeps/sweep-settings.js";
import { formatCommandLine, quoteArg } from "../command-line.js";
import { SweepReport, formatSweepReport } from "../display/report-sweep.js";
import { SIGINT_EXIT_CODE } from "../interrupt-handler.js";
import { toFileName } from "../options/default-output.js";
import { defineCommand, type Command } from "../options/define-command.js";
import { describeModelDefaults, describeRunDefaults } from "../options/describe-defaults.js";
import { envSourceOptions, readEnvOptions, resolveEnvId } from "../options/env-options.js";
import { loadArgAlgorithm, type FileArgs } from "../options/load-arg-algorithm.js";
import { UsageError } from "../options/usage-error.js";
import type { Reporter } from "../reporter.js";

const commandOptions = defineSettings(
  {
    config: text({
      short: "c",
      valueName: "file",
      description:
        "JSON file of the sweep: env, train, search and the sweep settings; options on the command line take precedence.",
    }),
    output: text({
      valueName: "folder",
      defaultText: "runs/sweep-ENV",
      description: "Folder of the sweep. If it holds the same sweep, unfinished, the sweep resumes.",
    }),
    search: list({
      short: "s",
      valueName: "name=values",
      description:
        "Setting to search and its values: entropyCoef=0,0.01,0.1, a range learningRate=1e-4..1e-2:log, or points of a range for a grid, 1e-4..1e-2:log:5. May be repeated.",
    }),
    seeds: text({
      valueName: "number or list",
      default: "1",
      description: "Seeds of each trial: a number of seeds (3), or a list (1,2,5).",
    }),
  },
  { group: "Sweep", common: true },
);

type Args = GivenSettings<typeof commandOptions & typeof envSourceOptions> & Readonly<Record<string, unknown>>;

export const sweepCommand: Command = {
  help: async (args) => (await createCommand(args)).help(args),
  run: async (args, reporter) => (await createCommand(args)).run(args, reporter),
};

/** Creates the command with the options of the algorithm that the arguments name. */
async function createCommand(args: readonly string[]): Promise<Command> {
  // Settings that all trials share: those of a run except the ones that the sweep sets.
  const onPrompts = args.some((arg) => /^(?:--data|--reward-funcs|-d)(?:=|$)/u.test(arg));
  const isExample = (name: string) => onPrompts && findExampleAlgorithm({ algorithm: name }) !== undefined;
  const algorithm = await loadArgAlgorithm(args, readSavedAlgorithm, isExample);
  const table = getTrialSettings({ ...(onPrompts ? { data: "" } : {}), algorithm }, {});
  const { seed: _seed, evalEpisodes: _evalEpisodes, ...fixedSettings } = table;
  return defineCommand<SettingTable>({
    name: "sweep",
    description:
      "Searches for hyperparameters: trains one run per trial and seed, and compares the trials by a metric.",
    examples: [
      {
        description: "Compare four combinations with two seeds each",
        args: "sweep blackjack -s learningRate=1e-3,3e-3 -s entropyCoef=0,0.03 --seeds 2",
      },
      {
        description: "Learning rates of GRPO on prompts",
        args: "sweep --data prompts.jsonl --reward-funcs rewards.js -s learningRate=3e-4,1e-3",
      },
      {
        description: "Strengths of DPO on a file of preferences",
        args: "sweep --data pairs.jsonl --algorithm dpo -s beta=0.05,0.1,0.3 --eval-split 0.1",
      },
      { description: "Continue an interrupted sweep", args: "sweep --output runs/sweep-blackjack" },
    ],
    positionals: [{ name: "ENV", description: "Environment, such as blackjack.", required: false }],
    options: {
      ...commandOptions,
      ...defineSettings(sweepSettings, { group: "Sweep" }),
      ...fixedSettings,
      ...envSourceOptions,
    },
    showsCommonOptions: true,
    notes: [
      "All options of llamagym train except --seed and --eval-episodes apply to every trial; with --data and --reward-funcs, those of llamagym grpo, or of rloo with --algorithm rloo; with --data and --algorithm sft, dpo or kto, those of that command.",
    ],
    describeDefaults: (options, values) =>
      algorithm !== undefined && isExample(algorithm)
        ? options
        : onPrompts
          ? describePromptDefaults(options, table, algorithm, values.model as string | undefined)
          : describeRunDefaults(options, Object.keys(fixedSettings), {
              ...(values as Partial<TrainOptions>),
              ...(algorithm === undefined ? {} : { algorithm }),
            }),
    run: async (values, reporter, [name]) => sweep(values as Args, name, fixedSettings, reporter),
  });
}

function describePromptDefaults(
  options: SettingTable,
  table: SettingTable,
  algorithm: string | undefined,
  model: string | undefined,
): SettingTable {
  const files = { data: "prompts", rewardFuncs: ["rewards"] };
  const given = { algorithm: algorithm === "rloo" ? "rloo" : "grpo", ...files } as const;
  const names = Object.keys(table).filter((name) => !["model", "data", "rewardFuncs", "seed"].includes(name));
  return describeModelDefaults(options, names, (id) => ({ ...resolvePromptRunConfig({ ...given, model: id }) }), model);
}

/** Reads the algorithm that the --config file sets for all trials. */
async function readSavedAlgorithm({ config }: FileArgs): Promise<unknown> {
  const train = config === undefined ? undefined : (await readJsonIfExists(config))?.train;
  return (train as { readonly algorithm?: unknown } | undefined)?.algorithm;
}

async function sweep(
  args: Args,
  name: string | undefined,
  fixedSettings: SettingTable,
  reporter: Reporter,
): Promise<number> {
  const sweepOptions = await explicitOptions(args, name, fixedSettings);
  const folder = args.output ?? `runs/sweep-${toFileName(sweepOptions.env ?? "prompts")}`;
  const report = new SweepReport(reporter, folder);
  const resumeCommand = formatCommandLine(`sweep --output ${quoteArg(folder)}`);
  reporter.handleInterrupts(
    `Finishing this update, then saving. Press Ctrl-C again to quit now and lose it; resume with: ${resumeCommand}`,
  );
  reporter.resumeCommand = resumeCommand;
  try {
    const result = await runSweep(sweepOptions, folder, { ...report.callbacks, signal: reporter.signal });
    report.end();
    if (result.isInterrupted) {
      reporter.print(`Stopped and saved. Resume with: ${resumeCommand}`);
      return SIGINT_EXIT_CODE;
    }
    reporter.print(formatSweepReport(result, folder));
    return result.best === undefined ? 1 : 0;
  } finally {
    report.end();
  }
}

async function explicitOptions(
  args: Args,
  name: string | undefined,
  fixedSettings: SettingTable,
): Promise<SweepOptions> {
  const { version: _, ...file } = normalizeKeys("the sweep", await loadBaseConfig(args, name));
  const { env: fileEnv, envOptions: fileEnvOptions, train, search, ...rest } = file;
  const env = name ?? fileEnv;
  const fixed = { ...normalizeKeysIfObject("train", train), ...selectSettings(fixedSettings, args) };
  const onPrompts = isOnPrompts(fixed);
  if (typeof env !== "string" && !onPrompts)
    throw new UsageError(
      "ENV is missing: name an environment, such as blackjack, a --config FILE that has one, or the --output FOLDER of a sweep to resume.",
    );
  return {
    ...rest,
    ...(selectSettings(sweepSettings, args) as Partial<SweepOptions>),
    ...(args.seeds === undefined ? {} : { seeds: parseSeeds(args.seeds) }),
    env: typeof env === "string" ? await resolveEnvId(env, args) : undefined,
    envOptions: { ...(fileEnvOptions as object | undefined), ...readEnvOptions(args) },
    train: fixed,
    search: { ...normalizeKeysIfObject("search", search), ...parseSearch(args.search) },
  };
}

/**
 * Reads the settings that options override: those of the config file, or of the sweep in the output
 * folder.
 */
async function loadBaseConfig(args: Args, name: string | undefined): Promise<Readonly<Record<string, unknown>>> {
  if (args.config !== undefined) return readJson(args.config);
  const hasExplicitSource = name !== undefined || args.search !== undefined || args.output === undefined;
  const saved = hasExplicitSource ? undefined : await readSweepOptions(resolve(args.output));
  return (saved ?? {}) as Readonly<Record<string, unknown>>;
}

/** Leaves values that are no objects to the validation of the sweep. */
function normalizeKeysIfObject(source: string, value: unknown): object | undefined {
  const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
  return isObject ? normalizeKeys(source, value as Readonly<Record<string, unknown>>) : (value as undefined);
}

function parseSearch(search: readonly string[] = []): Record<string, string> {
  const pairs = search.map((text) => {
    const end = text.indexOf("=");
    if (end <= 0) throw new UsageError(`--search must be name=values, such as entropyCoef=0,0.01,0.1, got "${text}".`);
    return [text.slice(0, end).replace(/^--/, ""), text.slice(end + 1)] as const;
  });
  const names = pairs.map(([name]) => name);
  const duplicate = names.find((name, i) => names.indexOf(name) < i);
  if (duplicate !== undefined)
    throw new UsageError(`--search has ${duplicate} twice. List all values in one --search.`);
  return normalizeKeys("--search", Object.fromEntries(pairs));
}

/** Parses a number of seeds ("3") or a list of them ("1,2,5"). */
function parseSeeds(text: string): number | number[] {
  const numbers = text.split(",").map((part) => (part.trim() === "" ? NaN : Number(part)));
  if (numbers.some((number) => !Number.isInteger(number)))
    throw new UsageError(`--seeds must be a number of seeds, or a list such as 1,2,5, got ${text}.`);
  return numbers.length === 1 ? numbers[0] : numbers;
}
