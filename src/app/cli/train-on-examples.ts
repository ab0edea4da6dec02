import type { StepMetrics } from "../../rl/algorithms/index.js";
import { describeSkippedRows, type InvalidLine } from "../../rl/data/index.js";
import type { ExampleTrainOptions, TrainResult } from "../../rl/train/index.js";
import { describeFolder } from "./display/describe-start.js";
import { ExampleProgress } from "./display/report-training.js";
import { printSaved, saveTrained, type EndedRun, type RunDisplay } from "./train-run.js";

interface Evaluation {
  readonly eval_loss: number;
  readonly eval_mean_token_accuracy?: number;
  readonly "eval_rewards/margins"?: number;
}

interface Dataset {
  readonly truncated: number;
  readonly skipped: number;
}

/** A run on a file of examples, as far as a command trains it. */
interface ExampleRun extends EndedRun {
  readonly folder: string;
  readonly isResumed: boolean;
  readonly opened: {
    readonly trainer: { readonly totalSteps: number | undefined; readonly dataset: Dataset | undefined };
    readonly invalidLines: readonly InvalidLine[];
    readonly unusedColumns: readonly string[];
  };
  train(
    options: Pick<ExampleTrainOptions<StepMetrics, Evaluation>, "onStep" | "onEvaluation" | "signal">,
  ): Promise<TrainResult>;
}

/** What the start of a run says about its examples, before and after those left out. */
interface ExampleTexts {
  /** Such as "20 pairs". */
  readonly counted: string;
  /** Such as " are trained". */
  readonly trained: string;
}

/** Trains on files of examples and shows it. */
export async function trainOnExamples(
  run: ExampleRun,
  display: RunDisplay,
  { counted, trained }: ExampleTexts,
): Promise<void> {
  const { reporter } = display;
  const { trainer, invalidLines, unusedColumns } = run.opened;
  for (const warning of describeSkippedRows(invalidLines.map(({ name, reason }) => `${name}: ${reason}`)))
    reporter.warn(warning);
  if (unusedColumns.length > 0)
    reporter.warn(`These columns are not used: ${unusedColumns.map((name) => name || '""').join(", ")}.`);
  reporter.print(`${counted}${describeLeftOut(trainer.dataset!)}${trained} in ${trainer.totalSteps} updates.`);
  reporter.print(describeFolder(run));
  const progress = new ExampleProgress(reporter);
  const result = await run.train({
    signal: reporter.signal,
    onStep: (metrics) => progress.update(metrics, trainer.totalSteps ?? 0),
    onEvaluation: (evaluation, step) => reporter.info(`step ${step}: ${describeEvaluation(evaluation)}`),
  });
  progress.end();
  printSaved(await saveTrained(run, result, display, "a new run from its result (--adapter)"), reporter);
}

function describeLeftOut({ truncated, skipped }: Dataset): string {
  const truncatedNote = truncated === 0 ? "" : `, ${truncated} truncated`;
  return skipped === 0
    ? truncatedNote
    : `${truncatedNote}, ${skipped} skipped (too long or without tokens to train on)`;
}

function describeEvaluation(evaluation: Evaluation): string {
  const { eval_loss: loss, eval_mean_token_accuracy: accuracy, "eval_rewards/margins": margin } = evaluation;
  const quality =
    margin !== undefined
      ? `, reward margin ${margin.toFixed(3)}`
      : accuracy !== undefined
        ? `, token accuracy ${accuracy.toFixed(3)}`
        : "";
  return `evaluation loss ${loss.toFixed(4)}${quality}`;
}
