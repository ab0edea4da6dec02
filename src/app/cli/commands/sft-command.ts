import { selectSettings, type GivenSettings } from "../../../core/settings.js";
import type { RunHooks } from "../../runs/open-run.js";
import { resumeSftRun, startSftRun, type SftRun } from "../../runs/sft-run.js";
import { allSftRunSettings, dataSettings, type SftRunOptions } from "../../runs/sft-run-settings.js";
import { checkResumeOptions } from "../options/check-resume-options.js";
import { timestampedFolder } from "../options/default-output.js";
import { defineCommand } from "../options/define-command.js";
import { exampleRunOptions } from "../options/run-folder-options.js";
import { UsageError } from "../options/usage-error.js";
import { trainOnExamples } from "../train-on-examples.js";
import { trainRun, type RunDisplay } from "../train-run.js";

const settings = { ...dataSettings, ...allSftRunSettings };

const commandOptions = exampleRunOptions("sft", settings);

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
  const { examples, lossTokens, answers } = run.opened.trainer.dataset!;
  const trained = `: ${lossTokens} tokens of ${answers} answers are trained`;
  await trainOnExamples(run, display, { counted: `${examples.length} examples`, trained });
}
