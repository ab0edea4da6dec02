import type { SftStats } from "../algorithms/sft/trainer.js";
import { LiveProgress, type SampleRow, type Tracker } from "../tracking/index.js";
import type { TrainingEvent } from "../training/trainer.js";

/** Columns of a sample's prompt and reply. */
const SHOWN = 100;

/** What a person sees of a run on standard error: how far it is, and now and then what the model says. */
export class TrainingDisplay {
  private readonly progress = new LiveProgress();
  /** When the warm start was last shown. */
  private shown = 0;

  show({ progress: { updates, episodes }, done, metrics }: TrainingEvent, totalEpisodes: number | undefined): void {
    this.progress.show({ done, updates, episodes, totalEpisodes, metrics });
  }

  /** Says something above the line. */
  print(text: string): void {
    this.progress.print(text);
  }

  /** Shows the first sample of those that a run keeps. */
  get tracker(): Tracker {
    return {
      log: () => {},
      samples: (step, [row]) => {
        if (row !== undefined) this.progress.print(sampleLine(step, row));
      },
    };
  }

  /** An update of the warm start, of so many. */
  showWarmStart({ step, loss, token_accuracy: accuracy }: SftStats, steps: number): void {
    const now = performance.now();
    if (now - this.shown < 1000 && step < steps) return;
    this.shown = now;
    const line = `warm start ${step}/${steps}  loss ${loss.toFixed(4)}  token accuracy ${accuracy.toFixed(3)}`;
    process.stderr.write(process.stderr.isTTY && step < steps ? `\r${line}` : `${line}\n`);
  }

  end(): void {
    this.progress.end();
  }
}

/** update 11: "... You have no usable ace. hit or stay?" > "hit" (reward -1) */
function sampleLine(step: number, { prompt, completion, reward }: SampleRow): string {
  return `update ${step}: ${quoted(ending(withoutHeader(prompt)))} > ${quoted(ending(completion))} (reward ${Number(reward.toFixed(4))})`;
}

/** A prompt without the header of the reply that is to follow, which says nothing to a person. */
function withoutHeader(prompt: string): string {
  return prompt.trimEnd().replace(/\n\W*(assistant|model)\W*$/, "");
}

function ending(text: string): string {
  const line = text.replace(/\s+/g, " ").trim();
  return line.length > SHOWN ? `...${line.slice(3 - SHOWN)}` : line;
}

const quoted = (text: string) => JSON.stringify(text);
