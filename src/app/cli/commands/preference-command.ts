import { defineSettings, selectSettings, text, type GivenSettings, type SettingTable } from "../../../core/settings.js";
import { formatCount } from "../../../core/format.js";
import { listChangeable, type RunHooks } from "../../runs/open-run.js";
import { resumePreferenceRun, startPreferenceRun, type PreferenceRun } from "../../runs/preference-run.js";
import {
  preferenceDataSettings,
  preferenceRunSettingsOf,
  type PreferenceAlgorithm,
  type PreferenceRunOptions,
} from "../../runs/preference-run-settings.js";
import { formatCommandLine, quoteArg } from "../command-line.js";
import { ExampleProgress } from "../display/report-training.js";
import { checkResumeOptions } from "../options/check-resume-options.js";
import { timestampedFolder } from "../options/default-output.js";
import { defineCommand, type Command } from "../options/define-command.js";
import { inheritModel } from "../options/inherit-model.js";
import { toOptionName } from "../options/option-names.js";
import { UsageError } from "../options/usage-error.js";
import { dashboardOption, saveTrained, trainRun, type RunDisplay } from "../train-run.js";

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

/** Options of the command that are not settings of the run. */
function createCommandOptions(algorithm: PreferenceAlgorithm, settings: SettingTable) {
  return defineSettings(
    {
      output: text({
        short: "o",
        valueName: "folder",
        defaultText: `runs/${algorithm}-TIME`,
        description: "Run folder: settings, metrics, checkpoints and the result.",
      }),
      resume: text({
        valueName: "folder",
        changeable: "resume",
        description: `Resume the run in this folder. Only these settings may change: ${listChangeable(settings).map(toOptionName).join(", ")}; the files of data and evalData may have moved, but not changed.`,
      }),
      dashboard: dashboardOption,
    },
    { group: "Run", common: true },
  );
}

/** Defines the command that trains on a file of preferences with an algorithm. */
function definePreferenceCommand(algorithm: PreferenceAlgorithm): Command {
  const data = preferenceDataSettings(algorithm);
  const settings: SettingTable = { ...data, ...preferenceRunSettingsOf(algorithm) };
  const commandOptions = createCommandOptions(algorithm, settings);
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
  const { reporter } = display;
  const { trainer, invalidLines, unusedColumns } = run.opened;
  for (const { name, reason } of invalidLines) reporter.warn(`Skipped ${name}: ${reason}`);
  if (unusedColumns.length > 0) reporter.warn(`These columns are not used: ${unusedColumns.join(", ")}.`);
  reporter.print(describeStart(run));
  const progress = new ExampleProgress(reporter);
  const result = await run.train({
    signal: reporter.signal,
    onStep: (metrics) => progress.update(metrics, trainer.totalSteps ?? 0),
    onEvaluation: (evaluation, step) => {
      const { eval_loss: loss, "eval_rewards/margins": margin } = evaluation;
      const margins = margin === undefined ? "" : `, reward margin ${margin.toFixed(3)}`;
      reporter.info(`step ${step}: evaluation loss ${loss.toFixed(4)}${margins}`);
    },
  });
  progress.end();
  const path = await saveTrained(run, result, display, "a new run from its result (--adapter)");
  if (path !== undefined)
    reporter.print(`Saved ${path}.\nTry it: ${formatCommandLine(`generate --model ${quoteArg(path)}`)}`);
}

function describeStart({ folder, resumedAt, config, opened: { trainer } }: PreferenceRun): string {
  const { examples, truncated, skipped } = trainer.dataset!;
  const truncatedNote = truncated === 0 ? "" : `, ${truncated} truncated`;
  const skippedNote = skipped === 0 ? "" : `, ${skipped} skipped (too long or without tokens to train on)`;
  return [
    `${formatCount(examples.length)} ${EXAMPLES[config.algorithm]}${truncatedNote}${skippedNote} are trained in ${trainer.totalSteps} updates.`,
    resumedAt > 0 ? `Resuming ${folder} from update ${resumedAt}.` : `Run folder: ${folder}`,
  ].join("\n");
}
