import type { SftStats } from "../algorithms/sft/trainer.js";
import { resumeSftRun, startSftRun, type SftRun } from "../training/sft-run.js";
import { sftRunTable, type SftRunOptions } from "../training/sft-settings.js";
import { command } from "./command.js";
import { UsageError, type OptionTable, type OptionValues } from "./options.js";
import { print } from "./output.js";
import { DownloadBars } from "./progress.js";
import { givenSettings, settingOptions } from "./setting-options.js";

const ownOptions = {
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

type Values = OptionValues<typeof ownOptions> & Readonly<Record<string, unknown>>;

export const sftCommand = command(
  "sft",
  "Fine-tune a model on examples: conversations, or prompts with completions",
  { ...ownOptions, ...settingOptions(sftRunTable) },
  async (values) => sft(values as unknown as Values),
);

async function sft(values: Values): Promise<number> {
  const bars = new DownloadBars();
  const extras = { onDownload: bars.update, warn: (message: string) => void process.stderr.write(`${message}\n`) };
  const run =
    values.resume === undefined
      ? await startSftRun(givenOptions(values), values.output ?? runFolder(), extras)
      : await resumeSftRun(values.resume, extras);
  bars.end();
  const interrupt = new AbortController();
  const stop = () => {
    if (interrupt.signal.aborted) process.exit(130);
    interrupt.abort();
    process.stderr.write("\nFinishing this update, then saving. Once more quits at once.\n");
  };
  process.on("SIGINT", stop);
  process.on("SIGTERM", stop);
  try {
    return await carryOut(run, interrupt.signal);
  } finally {
    process.off("SIGINT", stop);
    process.off("SIGTERM", stop);
    await run.close();
  }
}

function givenOptions(values: Values): SftRunOptions {
  if (values.data === undefined) throw new UsageError(`--data is missing: ${ownOptions.data.description}.`);
  return { data: values.data, ...givenSettings(sftRunTable, values) };
}

async function carryOut(run: SftRun, signal: AbortSignal): Promise<number> {
  const { folder, trainer, resumedAt } = run;
  const { examples, truncated, skipped } = trainer.dataset!;
  for (const { line, reason } of run.brokenLines) process.stderr.write(`Line ${line} was left out: ${reason}\n`);
  const shortened = truncated === 0 ? "" : `, ${truncated} of them cut to fit`;
  const leftOut = skipped === 0 ? "" : `; ${skipped} have nothing to learn or are too long`;
  print(`${examples.length} examples${shortened}${leftOut}; ${trainer.totalSteps} updates.`);
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
function runFolder(): string {
  return `runs/sft-${new Date().toISOString().slice(0, 19).replace("T", "-").replaceAll(":", "")}`;
}

/** Shown at most so often, in milliseconds. */
const REDRAW_EVERY = 1000;

/** A line on standard error that tells how far a run is. */
class StepDisplay {
  private shown = -Infinity;

  constructor(private readonly totalSteps: number) {}

  show({ step, loss, token_accuracy: accuracy, learning_rate: rate, tokens_per_second: speed }: SftStats): void {
    const now = performance.now();
    if (now - this.shown < REDRAW_EVERY && step < this.totalSteps) return;
    this.shown = now;
    const { isTTY } = process.stderr;
    const line =
      `${step}/${this.totalSteps}  loss ${loss.toFixed(4)}  token accuracy ${accuracy.toFixed(3)}  ` +
      `rate ${rate.toExponential(1)}  ${speed.toFixed(0)} tokens/s`;
    process.stderr.write(isTTY ? `\r\u001B[K${line}` : `${line}\n`);
  }

  line(text: string): void {
    process.stderr.write(process.stderr.isTTY ? `\r\u001B[K${text}\n` : `${text}\n`);
  }

  end(): void {
    if (process.stderr.isTTY) process.stderr.write("\n");
  }
}
