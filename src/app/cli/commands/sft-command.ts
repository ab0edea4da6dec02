import type { SftMetrics } from "../../../rl/algorithms/sft/sft-trainer.js";
import { resumeSftRun, startSftRun, type SftRun } from "../../runs/sft-run.js";
import { allSftRunSettings, type SftRunOptions } from "../../runs/sft-run-settings.js";
import { buildCommand } from "../options/build-command.js";
import { UsageError, type OptionTable, type OptionValues } from "../options/parse-args.js";
import { print } from "../display/output.js";
import { DownloadProgressBar } from "../display/download-progress-bar.js";
import { explicitSettings, optionsFromSettings } from "../options/setting-options.js";

const commandOptions = {
  data: {
    type: "text",
    alias: "d",
    hint: "file",
    description: "JSONL of examples: messages, or prompt and completion",
  },
  output: {
    type: "text",
    alias: "o",
    hint: "folder",
    description: "the folder that keeps the run; runs/sft-TIME by default",
  },
  resume: { type: "text", hint: "folder", description: "go on with the run in this folder" },
} as const satisfies OptionTable;

type Args = OptionValues<typeof commandOptions> & Readonly<Record<string, unknown>>;

export const sftCommand = buildCommand(
  "sft",
  "Fine-tune a model on examples: conversations, or prompts with completions",
  { ...commandOptions, ...optionsFromSettings(allSftRunSettings) },
  async (args) => fineTune(args as unknown as Args),
);

async function fineTune(args: Args): Promise<number> {
  const progressBar = new DownloadProgressBar();
  const extras = {
    onDownload: progressBar.update,
    onWarning: (message: string) => void process.stderr.write(`${message}\n`),
  };
  const run =
    args.resume === undefined
      ? await startSftRun(explicitOptions(args), args.output ?? defaultRunFolder(), extras)
      : await resumeSftRun(args.resume, extras);
  progressBar.clear();
  const interrupt = new AbortController();
  const stop = () => {
    if (interrupt.signal.aborted) process.exit(130);
    interrupt.abort();
    process.stderr.write("\nFinishing this update, then saving. Once more quits at once.\n");
  };
  process.on("SIGINT", stop);
  process.on("SIGTERM", stop);
  try {
    return await runTraining(run, interrupt.signal);
  } finally {
    process.off("SIGINT", stop);
    process.off("SIGTERM", stop);
    await run.close();
  }
}

function explicitOptions(args: Args): SftRunOptions {
  if (args.data === undefined) throw new UsageError(`--data is missing: ${commandOptions.data.description}.`);
  return { data: args.data, ...explicitSettings(allSftRunSettings, args) };
}

async function runTraining(run: SftRun, signal: AbortSignal): Promise<number> {
  const { folder, trainer, resumedAt } = run;
  const { examples, truncated, skipped } = trainer.dataset!;
  for (const { line, reason } of run.invalidLines) process.stderr.write(`Line ${line} was left out: ${reason}\n`);
  const truncatedNote = truncated === 0 ? "" : `, ${truncated} of them cut to fit`;
  const skippedNote = skipped === 0 ? "" : `; ${skipped} have nothing to learn or are too long`;
  print(`${examples.length} examples${truncatedNote}${skippedNote}; ${trainer.totalSteps} updates.`);
  print(resumedAt > 0 ? `Going on with ${folder} after update ${resumedAt}.` : `The run is kept in ${folder}.`);
  const display = new StepDisplay(trainer.totalSteps ?? 0);
  const isInterrupted = await run.train({
    signal,
    onStep: (stats) => display.show(stats),
    onEvaluation: ({ eval_loss: loss, eval_token_accuracy: accuracy }, step) =>
      display.line(
        `after ${step} updates: loss ${loss.toFixed(4)}, token accuracy ${accuracy.toFixed(3)} on kept examples`,
      ),
  });
  display.end();
  const result = await run.saveResult();
  if (isInterrupted) {
    print(`Stopped and saved. Go on by: llamagym sft --resume ${folder}`);
    return 130;
  }
  print(`What was trained is saved in ${result}; try it by: llamagym generate --model ${result}`);
  return 0;
}

/** sft-2026-01-31-120000 */
function defaultRunFolder(): string {
  return `runs/sft-${new Date().toISOString().slice(0, 19).replace("T", "-").replaceAll(":", "")}`;
}

/** Shown at most so often, in milliseconds. */
const REDRAW_INTERVAL_MS = 1000;

/** A line on standard error that tells how far a run is. */
class StepDisplay {
  private lastShown = -Infinity;

  constructor(private readonly totalSteps: number) {}

  show({
    step,
    loss,
    token_accuracy: accuracy,
    learning_rate: rate,
    tokens_per_second: tokensPerSecond,
  }: SftMetrics): void {
    const now = performance.now();
    if (now - this.lastShown < REDRAW_INTERVAL_MS && step < this.totalSteps) return;
    this.lastShown = now;
    const { isTTY } = process.stderr;
    const line =
      `${step}/${this.totalSteps}  loss ${loss.toFixed(4)}  token accuracy ${accuracy.toFixed(3)}  ` +
      `rate ${rate.toExponential(1)}  ${tokensPerSecond.toFixed(0)} tokens/s`;
    process.stderr.write(isTTY ? `\r\u001B[K${line}` : `${line}\n`);
  }

  line(text: string): void {
    process.stderr.write(process.stderr.isTTY ? `\r\u001B[K${text}\n` : `${text}\n`);
  }

  end(): void {
    if (process.stderr.isTTY) process.stderr.write("\n");
  }
}
