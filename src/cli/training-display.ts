import type { SftStats } from "../algorithms/sft/trainer.js";
import type { TrainingEvent } from "../training/trainer.js";

/** A line on standard error that tells how far a run is. */
export class TrainingDisplay {
  private shown = 0;

  show({ progress, done, metrics }: TrainingEvent): void {
    const now = performance.now();
    if (now - this.shown < 1000) return;
    this.shown = now;
    const parts = [
      `${(100 * done).toFixed(0)}%`,
      `${progress.episodes} episodes`,
      `return ${metrics["rollout/ep_rew_mean"]?.toFixed(3)}`,
      `entropy ${(metrics.entropy ?? metrics["ppo/policy/entropy"])?.toFixed(3)}`,
      `kl ${(metrics.kl ?? metrics["objective/kl"] ?? metrics["ppo/policy/approxkl"])?.toFixed(4)}`,
      `${metrics["rollout/turns_per_second"]?.toFixed(0)} turns/s`,
    ];
    process.stderr.write(`${process.stderr.isTTY ? "\r" : ""}${parts.join("  ")}${process.stderr.isTTY ? "" : "\n"}`);
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
    if (process.stderr.isTTY) process.stderr.write("\n");
  }
}
