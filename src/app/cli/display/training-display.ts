import type { SftMetrics } from "../../../rl/algorithms/sft/sft-trainer.js";
import { type CompletionRow, type Tracker } from "../../../rl/tracking/index.js";
import { LiveProgress } from "../../tracking/index.js";
import type { TrainProgress } from "../../../rl/train/trainer.js";

/** Columns of a sample's prompt and reply. */
const MAX_SAMPLE_CHARS = 100;

/** What a person sees of a run on standard error: how far it is, and now and then what the model says. */
export class TrainingDisplay {
  private readonly progress = new LiveProgress();
  /** When the warm start was last shown. */
  private lastShown = 0;

  show(
    { state: { updates, episodes }, progress: done, metrics }: TrainProgress,
    totalEpisodes: number | undefined,
  ): void {
    this.progress.update({ progress: done, updates, episodes, totalEpisodes, metrics });
  }

  /** Says something above the line. */
  print(text: string): void {
    this.progress.print(text);
  }

  /** Shows the first sample of those that a run keeps. */
  get tracker(): Tracker {
    return {
      log: () => {},
      logCompletions: (step, [row]) => {
        if (row !== undefined) this.progress.print(formatSample(step, row));
      },
    };
  }

  /** An update of the warm start, of so many. */
  showWarmStart({ step, loss, token_accuracy: accuracy }: SftMetrics, steps: number): void {
    const now = performance.now();
    if (now - this.lastShown < 1000 && step < steps) return;
    this.lastShown = now;
    const line = `warm start ${step}/${steps}  loss ${loss.toFixed(4)}  token accuracy ${accuracy.toFixed(3)}`;
    process.stderr.write(process.stderr.isTTY && step < steps ? `\r${line}` : `${line}\n`);
  }

  end(): void {
    this.progress.end();
  }
}

/** update 11: "... You have no usable ace. hit or stay?" > "hit" (reward -1) */
function formatSample(step: number, { prompt, completion, reward }: CompletionRow): string {
  return `update ${step}: ${quote(keepEnd(stripGenerationPrompt(prompt)))} > ${quote(keepEnd(completion))} (reward ${Number(reward.toFixed(4))})`;
}

/** A prompt without the header of the reply that is to follow, which says nothing to a person. */
function stripGenerationPrompt(prompt: string): string {
  return prompt.trimEnd().replace(/\n\W*(assistant|model)\W*$/, "");
}

function keepEnd(text: string): string {
  const line = text.replace(/\s+/g, " ").trim();
  return line.length > MAX_SAMPLE_CHARS ? `...${line.slice(3 - MAX_SAMPLE_CHARS)}` : line;
}

const quote = (text: string) => JSON.stringify(text);
