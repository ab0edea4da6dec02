import { formatNumber } from "../../../core/format.js";
import type { SftMetrics, StepMetrics } from "../../../rl/algorithms/index.js";
import type { CompletionRow, Tracker } from "../../../rl/tracking/index.js";
import type { TrainProgress } from "../../../rl/train/index.js";
import { fractionFields, type ProgressField } from "../../tracking/progress/progress-fields.js";
import type { ProgressHandle } from "../../tracking/progress/progress-line.js";
import { TrainingProgress } from "../../tracking/progress/training-progress.js";
import type { Reporter } from "../reporter.js";

const MAX_SAMPLE_CHARS = 100;

/** Shows the progress of a training run, its warm start, and from time to time a completion. */
export class TrainingReport {
  private readonly progress = new TrainingProgress();
  private readonly handle: ProgressHandle;
  private readonly warmStart: ExampleProgress;

  constructor(private readonly reporter: Reporter) {
    this.handle = reporter.progress(this.progress.fields);
    this.warmStart = new ExampleProgress(reporter, "Warm start");
  }

  update({ state: { updates, episodes, turns }, progress, metrics }: TrainProgress, totalEpisodes?: number): void {
    this.progress.update({ progress, updates, episodes, turns, totalEpisodes, metrics });
    this.handle.update();
  }

  updateWarmStart(metrics: SftMetrics, totalSteps: number): void {
    this.warmStart.update(metrics, totalSteps);
  }

  /** Prints evaluations, and the first completion of each batch that a run logs. */
  get tracker(): Tracker {
    return {
      log: (step, { "eval/mean_return": mean, "eval/standard_error": error, "eval/nash_conv": nashConv }) => {
        if (mean !== undefined)
          this.reporter.info(`update ${step}: greedy mean return ${formatNumber(mean)} ± ${formatNumber(error)}`);
        if (nashConv !== undefined) this.reporter.info(`update ${step}: NashConv ${formatNumber(nashConv)}`);
      },
      logCompletions: (step, [row]) => {
        if (row !== undefined) this.reporter.info(formatCompletion(step, row));
      },
    };
  }

  end(): void {
    this.warmStart.end();
    this.handle.end();
  }
}

/** Metrics of an update on examples that its progress shows. */
type ShownMetrics = StepMetrics & {
  readonly mean_token_accuracy?: number;
  readonly "rewards/accuracies"?: number;
  readonly "rewards/margins"?: number;
};

/** Shows the progress of training on examples. */
export class ExampleProgress {
  private readonly handle: ProgressHandle;
  private metrics: ShownMetrics | undefined;
  private totalSteps = 0;

  constructor(
    reporter: Reporter,
    private readonly label?: string,
  ) {
    this.handle = reporter.progress(() => this.fields());
  }

  update(metrics: ShownMetrics, totalSteps: number): void {
    this.metrics = metrics;
    this.totalSteps = totalSteps;
    this.handle.update();
  }

  end(): void {
    this.handle.end();
  }

  private fields(): readonly ProgressField[] {
    const { metrics } = this;
    if (metrics === undefined) return [];
    const { step, loss, learning_rate: learningRate } = metrics;
    const optional = (label: string, value: number | undefined) =>
      value === undefined ? [] : [{ text: `${label} ${value.toFixed(3)}`, priority: 2 }];
    return [
      ...(this.label === undefined ? [] : [{ text: this.label, priority: 4 }]),
      ...fractionFields(step / this.totalSteps),
      { text: `step ${step}/${this.totalSteps}`, priority: 3 },
      { text: `loss ${loss.toFixed(4)}`, priority: 1 },
      ...("rewards/chosen" in metrics || "rewards/rejected" in metrics
        ? [
            ...optional("reward accuracy", metrics["rewards/accuracies"]),
            ...optional("margin", metrics["rewards/margins"]),
          ]
        : optional("token accuracy", metrics.mean_token_accuracy)),
      { text: `learning rate ${learningRate.toExponential(1)}`, priority: 7 },
      { text: `${metrics.tokens_per_second.toFixed(0)} tokens/s`, priority: 6 },
    ];
  }
}

/** update 11: "... You have no usable ace. hit or stay?" > "hit" (reward -1) */
function formatCompletion(step: number, { prompt, completion, reward }: CompletionRow): string {
  const [input, output] = [stripGenerationPrompt(prompt), completion].map((text) => JSON.stringify(keepEnd(text)));
  return `update ${step}: ${input} > ${output} (reward ${Number(reward.toFixed(4))})`;
}

/** Removes the header of the completion at the end of a rendered prompt. */
function stripGenerationPrompt(prompt: string): string {
  return prompt.trimEnd().replace(/\n\W*(assistant|model)\W*$/, "");
}

function keepEnd(text: string): string {
  const line = text.replace(/\s+/g, " ").trim();
  return line.length > MAX_SAMPLE_CHARS ? `...${line.slice(3 - MAX_SAMPLE_CHARS)}` : line;
}
