import { defineSettings, selectSettings, text, type GivenSettings } from "../../../core/settings.js";
import { listChangeable, type RunHooks } from "../../runs/open-run.js";
import { resumeSftRun, startSftRun, type SftRun } from "../../runs/sft-run.js";
import { allSftRunSettings, dataSettings, type SftRunOptions } from "../../runs/sft-run-settings.js";
import { formatCommandLine, quoteArg } from "../command-line.js";
import { ExampleProgress } from "../display/report-training.js";
import { checkResumeOptions } from "../options/check-resume-options.js";
import { timestampedFolder } from "../options/default-output.js";
import { defineCommand } from "../options/define-command.js";
import { toOptionName } from "../options/option-names.js";
import { UsageError } from "../options/usage-error.js";
import { dashboardOption, saveTrained, trainRun, type RunDisplay } from "../train-run.js";

const settings = { ...dataSettings, ...allSftRunSettings };

const commandOptions = defineSettings(
  {
    output: text({
      short: "o",
      valueName: "folder",
      defaultText: "runs/sft-TIME",
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

const options = { ...dataSettings, ...commandOptions, ...allSftRunSettings };

type Args = GivenSettings<typeof options>;

export const sftCommand = defineCommand({
  name: "sft",
  description: "Fine-tunes a language model on examples: conversations, or prompts with completions.",
  examples: [
    { description: "Fine-tune the embedded model", args: "sft --data examples.jsonl --output runs/sft" },
    { description: "Continue an interrupted run", args: "sft --resume runs/sft" },
  ],
  options,
  showsCommonOptions: true,
  run: async (args, reporter) =>
    trainRun(reporter, {
      command: "sft",
      dashboard: args.dashboard === true,
      open: async (hooks) => openRun(args, hooks),
      train: fineTune,
    }),
});

async function openRun(args: Args, hooks: RunHooks): Promise<SftRun> {
  const { resume } = args;
  if (resume === undefined) return startSftRun(explicitOptions(args), args.output ?? timestampedFolder("sft"), hooks);
  checkResumeOptions(args, commandOptions, settings);
  return resumeSftRun(resume, selectSettings(settings, args), hooks);
}

function explicitOptions(args: Args): SftRunOptions {
  const { data } = args;
  if (data === undefined) throw new UsageError(`--data is missing: ${dataSettings.data.description}`);
  return { data, ...selectSettings(allSftRunSettings, args) };
}

async function fineTune(run: SftRun, display: RunDisplay): Promise<void> {
  const { reporter } = display;
  const { trainer, invalidLines, unusedColumns } = run.opened;
  for (const { name, reason } of invalidLines) reporter.warn(`Skipped ${name}: ${reason}`);
  if (unusedColumns.length > 0) reporter.warn(`These columns are not used: ${unusedColumns.join(", ")}.`);
  reporter.print(describeStart(run));
  const progress = new ExampleProgress(reporter);
  const result = await run.train({
    signal: reporter.signal,
    onStep: (metrics) => progress.update(metrics, trainer.totalSteps ?? 0),
    onEvaluation: ({ eval_loss: loss, eval_mean_token_accuracy: accuracy }, step) =>
      reporter.info(
        `step ${step}: evaluation loss ${loss.toFixed(4)}` +
          (accuracy === undefined ? "" : `, token accuracy ${accuracy.toFixed(3)}`),
      ),
  });
  progress.end();
  const path = await saveTrained(run, result, display, "a new run from its result (--adapter)");
  if (path !== undefined)
    reporter.print(`Saved ${path}.\nTry it: ${formatCommandLine(`generate --model ${quoteArg(path)}`)}`);
}

function describeStart({ folder, resumedAt, opened: { trainer } }: SftRun): string {
  const { examples, truncated, skipped, lossTokens, answers } = trainer.dataset!;
  const truncatedNote = truncated === 0 ? "" : `, ${truncated} truncated`;
  const skippedNote = skipped === 0 ? "" : `, ${skipped} skipped (too long or without tokens to train on)`;
  return [
    `${examples.length} examples${truncatedNote}${skippedNote}: ${lossTokens} tokens of ${answers} answers are trained in ${trainer.totalSteps} updates.`,
    resumedAt > 0 ? `Resuming ${folder} from update ${resumedAt}.` : `Run folder: ${folder}`,
  ].join("\n");
}
