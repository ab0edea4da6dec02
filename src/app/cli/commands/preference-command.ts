import { selectSettings, type GivenSettings, type SettingTable } from "../../../core/settings.js";
import { formatCount } from "../../../core/format.js";
import type { RunHooks } from "../../runs/open-run.js";
import { resumePreferenceRun, startPreferenceRun, type PreferenceRun } from "../../runs/preference-run.js";
import {
  preferenceDataSettings,
  preferenceRunSettingsOf,
  type PreferenceAlgorithm,
  type PreferenceRunOptions,
} from "../../runs/preference-run-settings.js";
import { checkResumeOptions } from "../options/check-resume-options.js";
import { timestampedFolder } from "../options/default-output.js";
import { defineCommand, type Command } from "../options/define-command.js";
import { inheritModel } from "../options/inherit-model.js";
import { exampleRunOptions } from "../options/run-folder-options.js";
import { UsageError } from "../options/usage-error.js";
import { trainOnExamples } from "../train-on-examples.js";
import { trainRun, type RunDisplay } from "../train-run.js";

const DESCRIPTIONS: Readonly<Record<PreferenceAlgorithm, string>> = {
  dpo: "Trains a language model on pairs of completions, of which one is preferred, by direct preference optimization.",
  kto: "Trains a language model on completions that are desirable or not, by Kahneman-Tversky optimization.",
};

/** What one example of the data is called. */
const EXAMPLES: Readonly<Record<PreferenceAlgorithm, string>> = { dpo: "pairs", kto: "completions" };

type Args = Partial<GivenSettings<SettingTable> & PreferenceRunOptions> & {
  readonly output?: string;
  readonly resume?: string;
  readonly dashboard?: boolean;
};

/** Defines the command that trains on a file of preferences with an algorithm. */
function definePreferenceCommand(algorithm: PreferenceAlgorithm): Command {
  const data = preferenceDataSettings(algorithm);
  const settings: SettingTable = { ...data, ...preferenceRunSettingsOf(algorithm) };
  const commandOptions = exampleRunOptions(algorithm, settings);
  return defineCommand<SettingTable>({
    name: algorithm,
    description: DESCRIPTIONS[algorithm],
    examples: [
      {
        description: "Train the embedded model",
        args: `${algorithm} --data preferences.jsonl --output runs/${algorithm}`,
      },
      {
        description: "Continue the adapter of a fine-tuning run; its policy is the reference",
        args: `${algorithm} --data preferences.jsonl --adapter runs/sft/model`,
      },
      { description: "Continue an interrupted run", args: `${algorithm} --resume runs/${algorithm}` },
    ],
    options: { ...data, ...commandOptions, ...preferenceRunSettingsOf(algorithm) },
    showsCommonOptions: true,
    run: async (args: Args, reporter) =>
      trainRun(reporter, {
        command: algorithm,
        dashboard: args.dashboard === true,
        open: async (hooks) => openRun(algorithm, args, settings, commandOptions, hooks),
        train,
      }),
  });
}

export const dpoCommand = definePreferenceCommand("dpo");
export const ktoCommand = definePreferenceCommand("kto");

async function openRun(
  algorithm: PreferenceAlgorithm,
  args: Args,
  settings: SettingTable,
  commandOptions: SettingTable,
  hooks: RunHooks,
): Promise<PreferenceRun> {
  const { resume, data } = args;
  const given = selectSettings(settings, args) as Partial<PreferenceRunOptions>;
  if (resume !== undefined) {
    checkResumeOptions(args, commandOptions, settings);
    return resumePreferenceRun(algorithm, resume, given, hooks);
  }
  if (data === undefined) throw new UsageError(`--data is missing: ${settings.data.description}`);
  const options = { ...(await inheritModel(given)), ...given, algorithm, data };
  return startPreferenceRun(options, args.output ?? timestampedFolder(algorithm), hooks);
}

async function train(run: PreferenceRun, display: RunDisplay): Promise<void> {
  const { examples } = run.opened.trainer.dataset!;
  const counted = `${formatCount(examples.length)} ${EXAMPLES[run.config.algorithm]}`;
  await trainOnExamples(run, display, { counted, trained: " are trained" });
}
