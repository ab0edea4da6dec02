import type { EntropyMode, PolicyNodes } from "../../models/graphs/policy-nodes.js";
import type { LossResult } from "../../models/graphs/training-graph.js";
import type { Trajectory, Turn } from "../rollout/trajectory.js";
import type { Tensor } from "../../engine/tensor/tensor.js";
import type { Metrics } from "./learner.js";
import type { ScheduleName } from "../../engine/optim/schedule.js";
import type { NumberArray } from "./shared/statistics.js";

/** What all algorithms without a critic are set by. */
export interface PolicyLearnerConfig {
  readonly numGenerations: number;
  readonly batchSize: number;
  readonly minTurns: number;
  readonly miniBatchSize: number | undefined;
  readonly numIterations: number;
  readonly learningRate: number;
  readonly lrSchedulerType: ScheduleName;
  readonly maxGradNorm: number;
  readonly entropySchedulerType?: ScheduleName;
  readonly filterGroups: boolean;
  readonly maxRefills: number;
  readonly maskTruncatedCompletions: boolean;
  readonly maskTruncatedEpisodes: boolean;
}

/** A turn as it was played; arrays have one entry for each of its decisions. */
export interface ScoredTurn {
  readonly turn: Turn;
  /** Log-probabilities when it was sampled. */
  readonly oldLogProbs: Float64Array;
  /** Under the reference policy, where the algorithm compares with it and they were computed. */
  readonly refLogProbs: Float64Array | undefined;
  /** Where the algorithm asks for them. */
  readonly entropies: Float64Array | undefined;
}

export interface ScoredTrajectory {
  readonly turns: readonly ScoredTurn[];
  /** Episodes of one group are compared with one another. */
  readonly group: number;
  /** Why it ended. */
  readonly end: Trajectory["end"];
  /** Rewards by several functions, of a single reply; NaN where one gave none. */
  readonly scores: readonly number[] | undefined;
}

/** A turn as a loss sees it: one sequence. */
export interface TurnSample extends ScoredTurn {
  /** Of each decision. */
  readonly advantages: NumberArray;
  /** 1 for decisions that train the policy; undefined for all. */
  readonly policyMask: NumberArray | undefined;
}

/** How large an optimiser step is, of which a pass may hold but a part. */
export interface MinibatchTotals {
  /** Turns, also those that do not train because they are masked. */
  readonly sequences: number;
  /** Decisions that train. */
  readonly tokens: number;
  /** The same on average over the steps of a pass through the update. */
  readonly meanTokens: number;
  /** Decisions that a policy mask lets through. */
  readonly entropyTokens: number;
  /** How much of the entropy bonus is left at this time of the run. */
  readonly entropyFactor: number;
}

/** The loss's statistics of all steps, turn after turn. */
export interface LossStatistics {
  readonly means: Readonly<Partial<Record<string, number>>>;
  readonly perToken: Readonly<Partial<Record<string, Float64Array>>>;
}

export interface AdvantageResult {
  /** Of each episode, each turn, each decision. */
  readonly advantages: readonly (readonly NumberArray[])[];
  /** What is to be told of them. */
  readonly metrics: Metrics;
}

/** What makes an algorithm without a critic the algorithm that it is. */
export interface AlgorithmDefinition {
  readonly name: string;
  readonly config: PolicyLearnerConfig;
  /** False where all episodes of an update are one group, each with a start of its own. */
  readonly sharesStart: boolean;
  /** Whether a group teaches nothing when its episodes earned all the same, whatever others did. */
  readonly isGroupRelative: boolean;
  readonly loss: (policy: PolicyNodes) => LossResult;
  readonly entropy: EntropyMode;
  /** The setting that weighs the divergence from the reference policy, where it is above 0. */
  readonly klSetting: string | undefined;
  readonly needsEntropy: boolean;
  /** Whether the loss acts on turns without an advantage too: an entropy bonus, a divergence. */
  readonly hasRegularizer: boolean;
  advantages(trajectories: readonly ScoredTrajectory[]): AdvantageResult;
  /** Which decisions of an update train; undefined where all do. */
  policyMasks?(turns: readonly ScoredTurn[]): readonly NumberArray[];
  /** The objective's inputs for a pass over these turns. */
  inputs(turns: readonly TurnSample[], totals: MinibatchTotals): Readonly<Record<string, Tensor>>;
  metrics(statistics: LossStatistics, turns: readonly TurnSample[]): Metrics;
}
