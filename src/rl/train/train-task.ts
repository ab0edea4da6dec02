import type { LearnerState, Metrics } from "../algorithms/learner.js";
import type { CompletionRow } from "../tracking/index.js";
import type { RolloutRecord } from "../tracking/rollouts/chunk.js";

/** Totals of a run over all its sessions. */
export interface TrainerState {
  readonly updates: number;
  readonly turns: number;
  readonly episodes: number;
  /** Tokens of completions; in supervised fine-tuning, of examples. */
  readonly tokens: number;
  /** Seconds spent in the warm start, rollouts, updates and evaluations. */
  readonly seconds: number;
  /** Returns of the most recent episodes, for the moving mean. */
  readonly recentReturns: readonly number[];
  /** What evaluations have shown, in a run that they may end. */
  readonly evaluations?: EvaluationHistory | undefined;
}

/** Evaluations so far, as early stopping counts them. */
export interface EvaluationHistory {
  /** Null before the first finite value. */
  readonly best: number | null;
  /** Evaluations since the last that was better by more than the threshold. */
  readonly sinceBest: number;
}

/**
 * When evaluations end a run before its length: after `earlyStoppingPatience` of them in a row
 * without a better one (EarlyStoppingCallback in Transformers), or with a value that reaches
 * `rewardThreshold` (StopTrainingOnRewardThreshold in Stable-Baselines3).
 */
export interface StoppingRule {
  readonly earlyStoppingPatience?: number | undefined;
  /** By how much a value must be better than the best so far. Default 0. */
  readonly earlyStoppingThreshold?: number | undefined;
  readonly rewardThreshold?: number | undefined;
  /** The metric that is compared. */
  readonly metric: string;
  /** Whether lower values are better, as of a loss. Default false. */
  readonly isLoss?: boolean;
}

export const INITIAL_STATE: TrainerState = {
  updates: 0,
  turns: 0,
  episodes: 0,
  tokens: 0,
  seconds: 0,
  recentReturns: [],
};

/** What one rollout adds to the totals. */
export interface RolloutCounts {
  readonly turns: number;
  readonly tokens: number;
  /** Returns of the episodes that ended. */
  readonly returns: readonly number[];
}

/** Episodes in the moving mean of returns. */
const RETURN_WINDOW = 100;

/** Adds a rollout to the totals. */
export function addCounts(
  state: TrainerState,
  { turns, tokens, returns }: RolloutCounts,
  seconds: number,
): TrainerState {
  return {
    ...state,
    updates: state.updates + 1,
    turns: state.turns + turns,
    episodes: state.episodes + returns.length,
    tokens: state.tokens + tokens,
    seconds: state.seconds + seconds,
    // NaN is the return of an unscored completion.
    recentReturns: [...state.recentReturns, ...returns.filter((value) => !Number.isNaN(value))].slice(-RETURN_WINDOW),
  };
}

/** Adds an evaluation to the history; a value that is not finite is never better. */
export function addEvaluation(
  { best, sinceBest }: EvaluationHistory = { best: null, sinceBest: 0 },
  value: number,
  { earlyStoppingThreshold = 0, isLoss = false }: StoppingRule,
): EvaluationHistory {
  if (!Number.isFinite(value)) return { best, sinceBest: sinceBest + 1 };
  const gain = best === null ? Infinity : isLoss ? best - value : value - best;
  return { best: gain > 0 ? value : best, sinceBest: gain > earlyStoppingThreshold ? 0 : sinceBest + 1 };
}

/** Says why evaluations have ended a run; undefined while it continues. */
export function describeEarlyStop(
  { evaluations }: Pick<TrainerState, "evaluations">,
  { earlyStoppingPatience, rewardThreshold, metric }: StoppingRule,
): string | undefined {
  if (evaluations === undefined) return undefined;
  const { best, sinceBest } = evaluations;
  if (rewardThreshold !== undefined && best !== null && best >= rewardThreshold)
    return `${metric} reached ${best}, and rewardThreshold is ${rewardThreshold}`;
  return earlyStoppingPatience !== undefined && sinceBest >= earlyStoppingPatience
    ? `${metric} did not improve on ${best} in ${sinceBest} evaluations (earlyStoppingPatience)`
    : undefined;
}

/**
 * The stages of training that differ between online RL, training on prompts and supervised
 * fine-tuning.
 */
export interface TrainTask<Rollout, Batch> {
  /** Fraction of the run that is complete; 1 ends it. */
  progress(state: TrainerState): number;
  /** Collects the data of one update. */
  collect(state: TrainerState, onProgress: (current: TrainerState) => void): Promise<Rollout>;
  /** Prepares the data for the update: log-probabilities before it, advantages. */
  prepare(rollout: Rollout): Promise<Batch>;
  /** Takes the optimizer steps of one update. */
  update(batch: Batch, progress: number): Promise<Metrics>;
  count(rollout: Rollout): RolloutCounts;
  /**
   * Computes the metrics of a rollout, given totals that include it and the seconds that the update
   * took.
   */
  describe(rollout: Rollout, state: TrainerState, seconds: number): Metrics;
  /** Selects at most `count` completions to log. */
  sampleCompletions?(rollout: Rollout, count: number): readonly CompletionRow[];
  /**
   * Records episodes of a rollout, after the update on its batch; undefined where nothing is
   * recorded.
   */
  recordRollout?(rollout: Rollout, batch: Batch, step: number): Promise<RolloutRecord | undefined>;
  /** Computes evaluation metrics after an update; undefined where nothing is evaluated. */
  evaluate?(state: TrainerState): Promise<Metrics | undefined>;
  /** Whether the last update completed an epoch. */
  isEpochEnd?(): boolean;
  /**
   * Returns what the rest of the run depends on, apart from the trained parameters. With
   * `dropRollout`, what a failed `collect` left behind is replaced by a new start.
   */
  getState(options?: { readonly dropRollout?: boolean }): Promise<LearnerState>;
  /** Writes the trained parameters into a checkpoint. */
  saveModel(folder: string): Promise<void>;
  /** Restores the state of a checkpoint and the trained parameters in its folder. */
  setState(state: LearnerState, folder: string): Promise<void>;
  close?(): Promise<void>;
}

/** A checkpoint that a run continues from. */
export interface ResumedRun {
  readonly state: TrainerState;
  readonly folder: string | undefined;
}
