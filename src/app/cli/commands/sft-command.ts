import { defineSettings, selectSettings, text, type GivenSettings } from "../../../core/settings.js";
import { listChangeable } from "../../runs/run.js";
import { resumeSftRun, startSftRun, type SftRun, type SftRunHooks } from "../../runs/sft-run.js";
import { allSftRunSettings, dataSettings, type SftRunOptions } from "../../runs/sft-run-settings.js";
import { formatCommandLine, quoteArg } from "../command-line.js";
import { reportDownloads } from "../display/report-downloads.js";
import { SftProgress } from "../display/report-training.js";
import { SIGINT_EXIT_CODE } from "../interrupt-handler.js";
import { checkResumeOptions } from "../options/check-resume-options.js";
import { timestampedFolder } from "../options/default-output.js";
import { defineCommand } from "../options/define-command.js";
import { toOptionName } from "../options/option-names.js";
import { UsageError } from "../options/usage-error.js";
import type { Reporter } from "../reporter.js";

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
  run: async (args, reporter) => fineTune(args, reporter),
});

async function fineTune(args: Args, reporter: Reporter): Promise<number> {
  const downloads = reportDownloads(reporter);
  const hooks = { onDownload: downloads.update, onWarning: reporter.warn };
  const run =
    args.resume === undefined
      ? await startSftRun(explicitOptions(args), args.output ?? timestampedFolder("sft"), hooks)
      : await resumeExistingRun(args, args.resume, hooks);
  downloads.end();
  reporter.handleInterrupts("Finishing this update, then saving. Press Ctrl-C again to quit now.");
  reporter.resumeCommand = formatCommandLine(`sft --resume ${quoteArg(run.folder)}`);
  try {
    return await runTraining(run, reporter);
  } finally {
    await run.close();
  }
}

async function resumeExistingRun(args: Args, folder: string, hooks: SftRunHooks): Promise<SftRun> {
  checkResumeOptions(args, commandOptions, settings);
  return resumeSftRun(folder, selectSettings(settings, args), hooks);
}

function explicitOptions(args: Args): SftRunOptions {
  const { data } = args;
  if (data === undefined) throw new UsageError(`--data is missing: ${dataSettings.data.description}`);
  return { data, ...selectSettings(allSftRunSettings, args) };
}

async function runTraining(run: SftRun, reporter: Reporter): Promise<number> {
  const { folder, trainer } = run;
  for (const { name, reason } of run.invalidLines) reporter.warn(`Skipped ${name}: ${reason}`);
  const { unusedColumns } = run;
  if (unusedColumns.length > 0) reporter.warn(`These columns are not used: ${unusedColumns.join(", ")}.`);
  reporter.print(describeStart(run));
  const progress = new SftProgress(reporter);
  const isInterrupted = await run.train({
    signal: reporter.signal,
    onStep: (metrics) => progress.update(metrics, trainer.totalSteps ?? 0),
    onEvaluation: ({ eval_loss: loss, eval_mean_token_accuracy: accuracy }, step) =>
      reporter.info(`step ${step}: evaluation loss ${loss.toFixed(4)}, token accuracy ${accuracy.toFixed(3)}`),
  });
  progress.end();
  const result = await run.saveResult();
  if (isInterrupted) {
    reporter.print(`Stopped and saved. Resume with: ${formatCommandLine(`sft --resume ${quoteArg(folder)}`)}`);
    return SIGINT_EXIT_CODE;
  }
  reporter.print(`Saved ${result}.\nTry it: ${formatCommandLine(`generate --model ${quoteArg(result)}`)}`);
  return 0;
}

function describeStart({ folder, trainer, resumedAt }: SftRun): string {
  const { examples, truncated, skipped, lossTokens, answers } = trainer.dataset!;
  const truncatedNote = truncated === 0 ? "" : `, ${truncated} truncated`;
  const skippedNote = skipped === 0 ? "" : `, ${skipped} skipped (too long or without tokens to train on)`;
  return [
    `${examples.length} examples${truncatedNote}${skippedNote}: ${lossTokens} tokens of ${answers} answers are trained in ${trainer.totalSteps} updates.`,
    resumedAt > 0 ? `Resuming ${folder} from update ${resumedAt}.` : `Run folder: ${folder}`,
  ].join("\n");
}
