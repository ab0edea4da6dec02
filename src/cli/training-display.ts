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

  end(): void {
    if (process.stderr.isTTY) process.stderr.write("\n");
  }
}
