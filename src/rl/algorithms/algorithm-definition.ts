import type { MaybePromise } from "../../core/maybe-promise.js";
import type { SettingTable } from "../../core/settings.js";
import type { ScheduleName, ScheduleShape } from "../../engine/optim/index.js";
import type { Tensor } from "../../engine/tensor/index.js";
import type { EntropyMode, LossResult } from "../../models/graphs/index.js";
import type { Trajectory, Turn } from "../rollout/trajectory.js";
import type { GroupSpec, Metrics } from "./learner.js";
import type { EntropySchedule } from "./shared/entropy-bonus.js";
import type { LossNodes } from "./shared/loss-nodes.js";
import type { NumberArray } from "./shared/statistics.js";
import type { AlternativeLogProbs } from "./update/log-prob-scorer.js";

/** Settings that the learner reads, where an algorithm has them. */
export interface UpdateConfig extends ScheduleShape {
  readonly learningRate: number;
  /** Default `learningRate`. */
  readonly valueHeadLearningRate?: number | undefined;
  /** Default "constant". */
  readonly lrSchedulerType?: ScheduleName;
  /** Optimizer steps of linear warm-up, after which the schedule begins. Default 0. */
  readonly warmupSteps?: number;
  /** Default 0; not on biases and norms. */
  readonly weightDecay?: number;
  /** Default 0.9, 0.999 and 1e-8. */
  readonly adamBeta1?: number;
  readonly adamBeta2?: number;
  readonly adamEpsilon?: number;
  /** Default no clipping. */
  readonly maxGradNorm?: number | undefined;
  /** Turns of an optimizer step; all turns of the update by default. */
  readonly miniBatchSize?: number | undefined;
  /** Epochs over the turns of an update. Default 1. */
  readonly numIterations?: number;
  readonly entropyCoef?: number;
  readonly entropySchedulerType?: EntropySchedule;
  /** Final share of the entropy bonus. Default 0. */
  readonly entropyMinRate?: number;
  /** Whether the reference policy is a copy that follows the policy. Default false. */
  readonly syncRefModel?: boolean;
  readonly refModelMixupAlpha?: number;
  readonly refModelSyncSteps?: number;
  readonly maskTruncatedCompletions?: boolean;
  readonly maskTruncatedEpisodes?: boolean;
  /** Drops groups without signal from the update. */
  readonly filterGroups?: boolean;
}

/** A sampled turn with its scores; arrays have one entry per decision. */
export interface ScoredTurn {
  readonly turn: Turn;
  /** Log-probabilities when it was sampled. */
  readonly oldLogProbs: Float64Array;
  /** Values of the states when it was sampled; undefined without a critic. */
  readonly oldValues: Float64Array | undefined;
  /**
   * Log-probabilities under the reference policy; undefined unless the algorithm's `klSetting` is
   * above 0.
   */
  readonly refLogProbs: Float64Array | undefined;
  /** Entropies when it was sampled; undefined unless the algorithm requests them. */
  readonly entropies: Float64Array | undefined;
  /**
   * Log-probabilities of each decision's alternatives when it was sampled, undefined for a decision
   * among the whole vocabulary; undefined without a teacher.
   */
  readonly alternatives?: AlternativeLogProbs | undefined;
}

/** Trajectory with its log-probabilities before the update. */
export interface ScoredTrajectory {
  readonly turns: readonly ScoredTurn[];
  /** Index of the group whose members started alike. */
  readonly group: number;
  /** The seat in a game; advantages are normalized by seat. */
  readonly seat?: number | undefined;
  readonly end: Trajectory["end"];
  /** Value of the state after the last turn; 0 where the episode ended. */
  readonly bootstrapValue: number;
  /** The prompt after the last turn; undefined where the episode ended. */
  readonly bootstrapPrompt?: readonly number[];
  /**
   * Rewards of a single completion by several reward functions; NaN where a function returned none.
   */
  readonly rewardsPerFunction: readonly number[] | undefined;
}

/** A turn as the loss receives it. */
export interface TurnSample extends ScoredTurn {
  readonly advantages: NumberArray;
  readonly returns: NumberArray | undefined;
  /** 1 for decisions that train the policy; undefined for all. */
  readonly policyMask: NumberArray | undefined;
  /** The unit that it belongs to; undefined for an algorithm without units. */
  readonly unit?: number | undefined;
}

/** Size of an optimizer step, which may be split into micro-batches. */
export interface MinibatchTotals {
  /** Turns, masked ones included. */
  readonly sequences: number;
  /** Trained decisions. */
  readonly tokens: number;
  /** Units, such as pairs; 0 for an algorithm without units. Default 0. */
  readonly units?: number;
  /** Mean of `tokens` over the steps of an epoch. Default `tokens`. */
  readonly meanTokens?: number;
  /** Decisions selected by the policy masks. Default `tokens`. */
  readonly entropyTokens?: number;
  /** Scheduled factor of the entropy bonus. Default 1. */
  readonly entropyFactor?: number;
}

/** Advantages of an update, with metrics about them. */
export interface AdvantageResult<State = unknown> {
  /** Advantages by trajectory, turn and decision. */
  readonly advantages: readonly (readonly NumberArray[])[];
  /** Targets of the value loss, in the same layout. */
  readonly returns?: readonly (readonly NumberArray[])[];
  /**
   * What belongs together in the loss: for each trajectory the number of its unit, such as a pair
   * or a group, whose turns are always in one micro-batch, or undefined to leave it out. By default
   * each turn is on its own.
   */
  readonly units?: readonly (number | undefined)[];
  /** Log-probabilities under a teacher, which the learner adds for recordings. */
  readonly teacherLogProbs?: readonly (readonly NumberArray[])[];
  readonly metrics?: Metrics;
  /** Replaces the algorithm's state before the update. */
  readonly state?: State;
}

/** Statistics of all optimizer steps of an update. */
export interface LossStatistics {
  /** Means of the scalar statistics over steps. */
  readonly means: Readonly<Partial<Record<string, number>>>;
  /** Concatenated per-token (or per-turn) statistics. */
  readonly perToken: Readonly<Partial<Record<string, Float64Array>>>;
  /** Turns of all steps, in the order of `perToken`. */
  readonly steppedTurns: readonly TurnSample[];
}

/** Turns of an optimizer step, with the loss's other statistics by turn. */
export interface SteppedTurns {
  readonly turns: readonly TurnSample[];
  readonly perTurn: Readonly<Partial<Record<string, readonly Float32Array[]>>>;
}

/** The rollout of an update: at least `turns` turns, or groups of complete episodes. */
export type RolloutRequest =
  | { readonly kind: "turns"; readonly turns: number }
  | (Pick<GroupSpec, "groups" | "groupSize"> & { readonly kind: "groups" } & Partial<
        Pick<GroupSpec, "minTurns" | "maxResamples">
      >);

/**
 * Decides which optimizer steps are taken; `statistics` are sums over the minibatch, `loss` among
 * them.
 */
export interface Stepping<Config, State> {
  /** Epochs over the turns of an update. Default `numIterations`. */
  readonly epochs?: (config: Config) => number;
  /** Discards a step by returning false. */
  readonly shouldStep?: (statistics: Readonly<Record<string, number>>, config: Config) => boolean;
  /** Discards a step and ends the update by returning true. */
  readonly shouldStop?: (statistics: Readonly<Record<string, number>>, config: Config) => boolean;
  /** Selects the parameters to train by name; undefined trains all. */
  readonly trainableFilter?: (config: Config, state: State) => ((parameter: string) => boolean) | undefined;
}

/** Everything specific to one algorithm; `PolicyLearner` does the rest. */
export interface AlgorithmDefinition<Table extends SettingTable, Options extends object, Config, State> {
  /** Name in the CLI and in config.json, such as "ppo". */
  readonly name: string;
  /** Name in messages. Default `name`. */
  readonly title?: string;
  readonly settings: Table;
  /**
   * Validates options and resolves defaults that depend on each other. By default `resolveSettings`
   * with the table.
   */
  readonly resolve?: (options: Options) => Config;
  /**
   * Trains a value head: turns have `oldValues`, partial trajectories a bootstrap value. Default
   * false.
   */
  readonly critic?: boolean;
  /**
   * Whether the loss reads one advantage per turn, which a teacher's scores of decisions cannot be
   * part of. Default false.
   */
  readonly hasTurnAdvantages?: boolean;
  readonly rollout: (config: Config) => RolloutRequest;
  /** The setting that weighs the KL to the reference policy; above 0 it adds `refLogProbs`. */
  readonly klSetting?: NoInfer<keyof Table & string>;
  /**
   * Entropy in the loss. By default "gradient" where `entropyCoef` is above 0, and "value"
   * otherwise.
   */
  readonly entropy?: (config: Config) => EntropyMode;
  /** Adds `entropies` to scored turns. Default false. */
  readonly scoresEntropy?: (config: Config) => boolean;
  /**
   * Whether the loss has a gradient at zero advantage. By default where `entropyCoef` is above 0.
   */
  readonly hasRegularizer?: (config: Config) => boolean;
  /**
   * Computes advantages, from turns with their texts, tokens and scores; may be asynchronous. Also
   * called without scores, to find groups without signal; must not mutate `state`.
   */
  readonly advantages: (
    trajectories: readonly ScoredTrajectory[],
    config: Config,
    state: State,
  ) => MaybePromise<AdvantageResult<State>>;
  /** Masks decisions that do not train the policy. */
  readonly policyMasks?: (turns: readonly ScoredTurn[], config: Config) => readonly NumberArray[] | undefined;
  /** Builds the loss, a sum over decisions weighted by the input "weights". */
  readonly loss: (nodes: LossNodes, config: Config) => LossResult;
  /** Inputs of a micro-batch in addition to (or in place of) `tokenInputs`. */
  readonly inputs?: (
    turns: readonly TurnSample[],
    totals: MinibatchTotals,
    config: Config,
  ) => Readonly<Record<string, Tensor>>;
  readonly metrics?: (statistics: LossStatistics, turns: readonly TurnSample[], config: Config) => Metrics;
  /** State between updates; JSON, saved in checkpoints. */
  readonly state?: {
    readonly initial: (config: Config) => State;
    /** Returns the state after an update on `turns` turns. */
    readonly update?: (state: State, metrics: Metrics, turns: number, config: Config) => State;
    /** Returns the state after an optimizer step. */
    readonly afterStep?: (state: State, step: SteppedTurns, config: Config) => State;
    /** Metrics of the state after an update. */
    readonly metrics?: (state: State) => Metrics;
  };
  /** Factor of the entropy bonus at the next optimizer step, beyond its schedule. Default 1. */
  readonly entropyScale?: (config: Config, state: State) => number;
  readonly stepping?: Stepping<Config, State>;
}
