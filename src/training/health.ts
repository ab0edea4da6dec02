import type { Metrics } from "../algorithms/learner.js";

export interface HealthOptions {
  /** Entropy in nats below which the policy hardly tries anything any more; 0 for none. */
  readonly entropyFloor: number;
  /** Told once of each thing. */
  readonly warn: (message: string) => void;
}

/** Entropy in nats below which a warning is given unless another is asked for: one token in some hundred is still another. */
export const ENTROPY_FLOOR = 0.01;

/** Updates in a row without anything to learn until that is said. */
const EMPTY_UPDATES = 5;
/** A divergence is far when it is this many times what it was on average, and this much in nats. */
const FAR = { times: 5, nats: 0.1 };

/** What is watched of how far the policy moves: under which names, and what is said of it. */
const DIVERGENCES = [
  {
    names: ["kl", "objective/kl"],
    says: "The divergence from the reference policy jumped",
    advice: "lower the learning rate or weigh the divergence more",
  },
  {
    names: ["ppo/policy/approxkl", "policy/approxkl_avg"],
    says: "What an update moves the policy by (approxkl) jumped",
    advice: "lower the learning rate, or let it fall (lrSchedulerType), and keep the entropy up (entropyCoef)",
  },
];

/** Updates that the average is over. */
const WINDOW = 10;
/** Share of replies that were cut off from which on that is said. */
const CUT_OFF = 0.5;

/** Watches an algorithm's numbers and tells, once each, what usually comes before a collapse. docs/algorithms says what to do. */
export class HealthWatch {
  private readonly told = new Set<string>();
  /** The last of each of DIVERGENCES. */
  private readonly recent = new Map<string, readonly number[]>();
  private empty = 0;

  constructor(private readonly options: HealthOptions) {}

  /** Looks at the numbers of an update. */
  check(metrics: Metrics): void {
    this.checkEntropy(metrics.entropy ?? metrics["ppo/policy/entropy"]);
    this.checkDivergences(metrics);
    this.checkGroups(metrics.frac_reward_zero_std);
    const skipped = metrics["policy/skipped_updates"];
    if (skipped > 0)
      this.tell(
        "skipped",
        `${skipped} optimiser steps were not made: the ratio was too large, or a number not finite. Lower the learning rate if it goes on.`,
      );
    const clipped = metrics["completions/clipped_ratio"];
    if (clipped > CUT_OFF)
      this.tell(
        "clipped",
        `${percent(clipped)} of the replies were cut off at their longest length. Allow more tokens, hold replies to choices, or set maskTruncatedCompletions.`,
      );
  }

  private checkEntropy(entropy: number | undefined): void {
    if (entropy === undefined || !(entropy < this.options.entropyFloor)) return;
    this.tell(
      "entropy",
      `The policy's entropy is down to ${entropy.toPrecision(2)} nats: it hardly tries anything new. If the return should still rise, go back to an earlier checkpoint with a larger entropyCoef or a lower learning rate.`,
    );
  }

  private checkDivergences(metrics: Metrics): void {
    for (const { names, says, advice } of DIVERGENCES) {
      const divergence = names.map((name) => metrics[name]).find((value) => Number.isFinite(value));
      if (divergence === undefined) continue;
      const recent = this.recent.get(says) ?? [];
      const usual = recent.reduce((sum, value) => sum + value, 0) / recent.length;
      if (recent.length === WINDOW && divergence > FAR.nats && divergence > FAR.times * usual)
        this.tell(
          says,
          `${says} to ${divergence.toPrecision(2)} nats, from ${usual.toPrecision(2)}. That often comes before a collapse: ${advice}.`,
        );
      this.recent.set(says, [...recent, divergence].slice(-WINDOW));
    }
  }

  private checkGroups(zeroStd: number | undefined): void {
    this.empty = zeroStd === 1 ? this.empty + 1 : 0;
    if (this.empty < EMPTY_UPDATES) return;
    this.tell(
      "groups",
      `In the last ${EMPTY_UPDATES} updates all episodes of a group earned the same, so there was nothing to learn. The task is too easy or too hard from these starts, or the policy tries nothing new.`,
    );
  }

  private tell(key: string, message: string): void {
    if (this.told.has(key)) return;
    this.told.add(key);
    this.options.warn(message);
  }
}

function percent(share: number): string {
  return `${Math.round(100 * share)} %`;
}
