import type { Metrics } from "../algorithms/learner.js";

export interface TrainingMonitorOptions {
  /** Entropy in nats below which the policy hardly tries anything any more; 0 for none. */
  readonly entropyFloor: number;
  /** Told once of each thing. */
  readonly onWarning: (message: string) => void;
}

/** Entropy in nats below which a warning is given unless another is asked for: one token in some hundred is still another. */
export const ENTROPY_FLOOR = 0.01;

/** Updates in a row without anything to learn until that is said. */
const MAX_UNINFORMATIVE_UPDATES = 5;
/** A divergence is far when it is this many times what it was on average, and this much in nats. */
const KL_JUMP = { factor: 5, minNats: 0.1 };

/** What is watched of how far the policy moves: under which names, and what is said of it. */
const KL_METRICS = [
  {
    names: ["kl", "objective/kl"],
    description: "The divergence from the reference policy jumped",
    advice: "lower the learning rate or weigh the divergence more",
  },
  {
    names: ["policy/approxkl_avg"],
    description: "What an update moves the policy by (approxkl) jumped",
    advice: "lower the learning rate, or let it fall (lrSchedulerType), and keep the entropy up (entropyCoef)",
  },
];

/** Updates that the average is over. */
const KL_WINDOW = 10;
/** Share of replies that were cut off from which on that is said. */
const CLIPPED_WARNING = 0.5;

/** Watches an algorithm's numbers and tells, once each, what usually comes before a collapse. docs/algorithms says what to do. */
export class TrainingMonitor {
  private readonly warned = new Set<string>();
  /** The last of each of DIVERGENCES. */
  private readonly recentKls = new Map<string, readonly number[]>();
  private uninformativeUpdates = 0;

  constructor(private readonly options: TrainingMonitorOptions) {}

  /** Looks at the numbers of an update. */
  check(metrics: Metrics): void {
    this.checkEntropy(metrics.entropy);
    this.checkKls(metrics);
    this.checkGroups(metrics.frac_reward_zero_std);
    const skippedSteps = metrics.num_skipped_steps;
    if (skippedSteps > 0)
      this.warnOnce(
        "skipped",
        `${skippedSteps} optimiser steps were not made: the ratio was too large, or a number not finite. Lower the learning rate if it goes on.`,
      );
    const clippedRatio = metrics["completions/clipped_ratio"];
    if (clippedRatio > CLIPPED_WARNING)
      this.warnOnce(
        "clipped",
        `${formatPercent(clippedRatio)} of the replies were cut off at their longest length. Allow more tokens, hold replies to choices, or set maskTruncatedCompletions.`,
      );
  }

  private checkEntropy(entropy: number | undefined): void {
    if (entropy === undefined || !(entropy < this.options.entropyFloor)) return;
    this.warnOnce(
      "entropy",
      `The policy's entropy is down to ${entropy.toPrecision(2)} nats: it hardly tries anything new. If the return should still rise, go back to an earlier checkpoint with a larger entropyCoef or a lower learning rate.`,
    );
  }

  private checkKls(metrics: Metrics): void {
    for (const { names, description, advice } of KL_METRICS) {
      const kl = names.map((name) => metrics[name]).find((value) => Number.isFinite(value));
      if (kl === undefined) continue;
      const recentKls = this.recentKls.get(description) ?? [];
      const average = recentKls.reduce((sum, value) => sum + value, 0) / recentKls.length;
      if (recentKls.length === KL_WINDOW && kl > KL_JUMP.minNats && kl > KL_JUMP.factor * average)
        this.warnOnce(
          description,
          `${description} to ${kl.toPrecision(2)} nats, from ${average.toPrecision(2)}. That often comes before a collapse: ${advice}.`,
        );
      this.recentKls.set(description, [...recentKls, kl].slice(-KL_WINDOW));
    }
  }

  private checkGroups(zeroStd: number | undefined): void {
    this.uninformativeUpdates = zeroStd === 1 ? this.uninformativeUpdates + 1 : 0;
    if (this.uninformativeUpdates < MAX_UNINFORMATIVE_UPDATES) return;
    this.warnOnce(
      "groups",
      `In the last ${MAX_UNINFORMATIVE_UPDATES} updates all episodes of a group earned the same, so there was nothing to learn. The task is too easy or too hard from these starts, or the policy tries nothing new.`,
    );
  }

  private warnOnce(key: string, message: string): void {
    if (this.warned.has(key)) return;
    this.warned.add(key);
    this.options.onWarning(message);
  }
}

function formatPercent(fraction: number): string {
  return `${Math.round(100 * fraction)} %`;
}
