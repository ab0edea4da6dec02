import type { MaybePromise } from "../../core/maybe-promise.js";
import type { OptimizerState } from "../../engine/optim/index.js";
import type { PolicyBackend } from "../../generation/index.js";
import type { FrozenStates, SavedFrozenStates } from "../../models/graphs/index.js";
import type { Trajectory, Turn } from "../rollout/trajectory.js";
import type { RandomStream } from "../../core/random/random-stream.js";
import type { GradientTransport } from "./update/gradient-transport.js";
import type { TurnScores } from "./update/log-prob-scorer.js";

/** Metrics of one update by name; see docs/metrics.md. */
export type Metrics = Readonly<Record<string, number>>;

/** The rollout a learner needs for one update. */
export type RolloutSpec =
  /** At least `turns` turns; unfinished episodes continue after the update. */
  { readonly kind: "turns"; readonly turns: number } | GroupSpec;

/** Groups of complete episodes that start alike. */
export interface GroupSpec {
  readonly kind: "groups";
  readonly groups: number;
  readonly groupSize: number;
  /** Repeats the collection until there are at least this many turns. */
  readonly minTurns: number;
  /** Times that groups without signal are replaced by others. */
  readonly maxResamples: number;
  /** Whether a group has advantages other than 0. */
  readonly hasSignal: (group: readonly Trajectory[]) => MaybePromise<boolean>;
}

/** Scores the decisions of sampled turns: log-probabilities by turn and decision. */
export interface Teacher {
  score(turns: readonly Turn[], temperature: number): Promise<readonly Float64Array[]>;
  release(): Promise<void>;
}

/**
 * A server with OpenAI's completions API that scores prompts (`echo` and `logprobs`): llamagym
 * serve, vLLM, SGLang.
 */
export interface TeacherServer {
  /** Such as http://127.0.0.1:8000/v1. */
  readonly baseURL: string;
  /** Sent as bearer token. Default: the environment variable OPENAI_API_KEY. */
  readonly apiKey?: string;
  /** Name of the model there. Default: the server's first. */
  readonly model?: string | undefined;
}

/** What scores the student's tokens. */
export type ScoringPolicy = Pick<PolicyBackend, "config" | "valueHead" | "maxAlternatives" | "createScorer">;

/** A teacher with its weights. */
export interface Distillation {
  readonly teacher: {
    score(turns: readonly Turn[], temperature: number): Promise<Pick<TurnScores, "logProbs" | "alternatives">>;
    release(): Promise<void>;
  };
  readonly coef: number;
  readonly rewardCoef: number;
}

/** How a policy samples and how its updates run. */
export interface LearnerContext {
  /** Sampling temperature. */
  readonly temperature: number;
  /** Whether tokens are sampled from a truncated distribution (top-p and the like). */
  readonly isTruncatedSampling: boolean;
  /** Maximum length of a completion in tokens: default of an algorithm's setting of this name. */
  readonly maxCompletionLength?: number | undefined;
  /** Token budget of a micro-batch. */
  readonly microBatchTokens: number;
  /** Shuffles minibatches and seeds dropout. */
  readonly random: RandomStream;
  /** A teacher whose log-probabilities are part of the advantages. */
  readonly distillation?: Distillation | undefined;
  /**
   * The states of frozen layers that the model's sampler reads; undefined for a model without
   * frozen layers.
   */
  readonly frozenStates?: FrozenStates | undefined;
}

/** State of a learner without the trained parameters. */
export interface LearnerState {
  readonly optimizer: OptimizerState;
  /** States of frozen layers that are kept between updates. */
  readonly frozenStates?: SavedFrozenStates | undefined;
  /** Values of a reference policy that follows the trained one. */
  readonly reference?: Float32Array | undefined;
  /** JSON. */
  readonly state: unknown;
}

/** Options of `Learner.update`. */
export interface UpdateOptions {
  /** Fraction of the run that is done, 0 to 1, for schedules. Default 0. */
  readonly progress?: number;
}

/** What an update computed about a turn; arrays have one entry per decision. */
export interface TurnInsight {
  /** Indices of the tokens that are decisions. */
  readonly decisions: readonly number[];
  readonly refLogProbs: ArrayLike<number> | undefined;
  readonly teacherLogProbs?: ArrayLike<number> | undefined;
  readonly values: ArrayLike<number> | undefined;
  readonly entropies: ArrayLike<number> | undefined;
  readonly advantages: ArrayLike<number> | undefined;
  /** Targets of the value loss. */
  readonly returns: ArrayLike<number> | undefined;
  /** 1 for trained decisions; undefined for all. */
  readonly policyMask: ArrayLike<number> | undefined;
  /**
   * Probability at the last optimizer step divided by that when sampled; one entry for the turn, or
   * per decision.
   */
  readonly ratios: ArrayLike<number> | undefined;
  /** Range outside of which ratios are clipped. */
  readonly clipRange: readonly [number, number] | undefined;
  readonly isTrained: boolean;
  /** Whether the turn's group has advantages other than 0. */
  readonly hasSignal: boolean;
}

/**
 * Updates the trained parameters of a model from trajectories; `Batch` is what an update needs of
 * them.
 */
export interface Learner<Batch = unknown> {
  readonly rolloutSpec: RolloutSpec;
  /**
   * Scores trajectories and computes their advantages. @throws INVALID_ARGUMENT for trajectories
   * that cannot be trained.
   */
  prepare(trajectories: readonly Trajectory[]): Promise<Batch>;
  /** Takes the optimizer steps of an update. @throws TRAINING_DIVERGED. */
  update(batch: Batch, options?: UpdateOptions): Promise<Metrics>;
  /** Returns what is known about some turns of a batch after its update, for recordings. */
  inspect?(batch: Batch, turns: ReadonlySet<Turn>): ReadonlyMap<Turn, TurnInsight>;
  /** Computes gradients on workers from now on; absent for algorithms with their own update. */
  useGradientTransport?(transport: GradientTransport): void;
  getState(): Promise<LearnerState>;
  setState(state: LearnerState): Promise<void>;
  release(): Promise<void>;
}
