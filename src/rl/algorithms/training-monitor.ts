import type { Metrics } from "./learner.js";

export interface TrainingMonitorOptions {
  /** Warns when the entropy falls below this many nats; 0 disables the warning. */
  readonly entropyFloor: number;
  /** Receives each warning once. */
  readonly onWarning: (message: string) => void;
}

/**
 * Default entropy floor in nats; at 0.01, about one token in several hundred differs from the most
 * probable one.
 */
export const ENTROPY_FLOOR = 0.01;

/** Consecutive updates without a learning signal before a warning. */
const MAX_UNINFORMATIVE_UPDATES = 5;
/** A KL jumps when it exceeds this multiple of its average and this many nats. */
const KL_JUMP = { factor: 5, minNats: 0.1 };

/** Monitored KL metrics. */
const KL_METRICS = [
  {
    names: ["kl", "objective/kl"],
    isToReference: true,
    description: "The KL divergence from the reference policy jumped",
    advice: "lower the learning rate or increase the KL coefficient",
  },
  {
    names: ["policy/approxkl_avg"],
    isToReference: false,
    description: "The KL divergence of an update (approxkl) jumped",
    advice: "lower or decay the learning rate (lrSchedulerType), and keep the entropy up (entropyCoef)",
  },
];

/**
 * Self-play in which one seat wins nearly all games for some updates, or many games end by an
 * illegal move.
 */
const ONE_SIDED = { minReturn: 0.9, updates: 5 };
const ILLEGAL_WARNING = 0.2;

/** Updates in the average KL. */
const KL_WINDOW = 10;
/** Warn when at least this fraction of completions is truncated. */
const CLIPPED_WARNING = 0.5;

/** Warns, once each, of metrics that usually precede a collapse (docs/algorithms). */
export class TrainingMonitor {
  private readonly warned = new Set<string>();
  /** Recent values by KL_METRICS' description. */
  private readonly recentKls = new Map<string, readonly number[]>();
  private uninformativeUpdates = 0;
  private updatesWithoutGradient = 0;
  private oneSidedUpdates = 0;

  constructor(private readonly options: TrainingMonitorOptions) {}

  /** Checks the metrics of an update. */
  check(metrics: Metrics): void {
    this.checkEntropy(metrics.entropy);
    this.checkKls(metrics);
    this.checkSignal(metrics);
    this.checkGradient(metrics);
    this.checkSelfPlay(metrics);
    const skippedSteps = metrics.num_skipped_steps;
    if (skippedSteps > 0)
      this.warnOnce(
        "skipped",
        `${skippedSteps} optimizer steps were skipped: the ratio was too large, or a value not finite. Lower the learning rate if this continues.`,
      );
    const clippedRatio = metrics["completions/clipped_ratio"];
    if (clippedRatio > CLIPPED_WARNING)
      this.warnOnce(
        "clipped",
        `${Math.round(100 * clippedRatio)} % of the completions were truncated at their maximum length. Increase maxCompletionLength, constrain completions (actionMode), or set maskTruncatedCompletions.`,
      );
  }

  private checkEntropy(entropy: number | undefined): void {
    if (entropy === undefined || !(entropy < this.options.entropyFloor)) return;
    this.warnOnce(
      "entropy",
      `The policy's entropy fell to ${entropy.toPrecision(2)} nats, so it hardly explores. If the return should still rise, resume from an earlier checkpoint with a larger entropyCoef or a lower learning rate.`,
    );
  }

  private checkKls(metrics: Metrics): void {
    for (const { names, description, advice, isToReference } of KL_METRICS) {
      // A reference that follows is left behind and reached again and again.
      if (isToReference && metrics.num_reference_syncs !== undefined) continue;
      const kl = names.map((name) => metrics[name]).find((value) => Number.isFinite(value));
      if (kl === undefined) continue;
      const recentKls = this.recentKls.get(description) ?? [];
      const average = recentKls.reduce((sum, value) => sum + value, 0) / recentKls.length;
      if (recentKls.length === KL_WINDOW && kl > KL_JUMP.minNats && kl > KL_JUMP.factor * average)
        this.warnOnce(
          description,
          `${description} to ${kl.toPrecision(2)} nats, from ${average.toPrecision(2)}. This often precedes a collapse: ${advice}.`,
        );
      this.recentKls.set(description, [...recentKls, kl].slice(-KL_WINDOW));
    }
  }

  private checkGradient({ grad_norm: gradNorm, num_optimizer_steps: steps }: Metrics): void {
    this.updatesWithoutGradient = gradNorm === 0 && steps > 0 ? this.updatesWithoutGradient + 1 : 0;
    if (this.updatesWithoutGradient < MAX_UNINFORMATIVE_UPDATES) return;
    this.warnOnce(
      "gradient",
      `In the last ${MAX_UNINFORMATIVE_UPDATES} updates the gradient was 0, so nothing was learned: all advantages were 0, or the loss does not depend on what is trained.`,
    );
  }

  private checkSignal({ frac_reward_zero_std: zeroStd, "rollout/ep_rew_mean": meanReturn }: Metrics): void {
    this.uninformativeUpdates = zeroStd === 1 ? this.uninformativeUpdates + 1 : 0;
    if (this.uninformativeUpdates < MAX_UNINFORMATIVE_UPDATES) return;
    const result = Number.isFinite(meanReturn) ? `, ${Number(meanReturn.toPrecision(4))} in the mean` : "";
    this.warnOnce(
      "signal",
      `In the last ${MAX_UNINFORMATIVE_UPDATES} updates, all returns that are compared were equal${result}, so there was no learning signal. ` +
        "If they are the best possible ones, the run may end. Otherwise the task is too hard from these starts, or the policy does not explore.",
    );
  }

  private checkSelfPlay(metrics: Metrics): void {
    const seatReturn = metrics["self_play/first_seat_return"];
    const isOneSided = seatReturn !== undefined && Math.abs(seatReturn) > ONE_SIDED.minReturn;
    this.oneSidedUpdates = isOneSided ? this.oneSidedUpdates + 1 : 0;
    if (this.oneSidedUpdates >= ONE_SIDED.updates)
      this.warnOnce(
        "one-sided",
        `In the last ${ONE_SIDED.updates} updates, the ${seatReturn > 0 ? "first" : "second"} seat won nearly all games of self-play. ` +
          "Unless perfect play has this result, as in Nim, self-play has collapsed: resume from an earlier checkpoint with more past opponents (opponents), a larger entropyCoef or a lower learning rate.",
      );
    const illegal = metrics["self_play/illegal_game_ratio"];
    if (illegal > ILLEGAL_WARNING)
      this.warnOnce(
        "illegal",
        `${Math.round(100 * illegal)} % of the games had an illegal move of the policy, which loses the game by default. Constrain completions to the legal moves (actionMode "choices" or "scored").`,
      );
  }

  private warnOnce(key: string, message: string): void {
    if (this.warned.has(key)) return;
    this.warned.add(key);
    this.options.onWarning(message);
  }
}
