import type { Runtime } from "../engine/runtime/index.js";
import type { AdamWOptions, Optimizer } from "../engine/optim/index.js";
import type { DecoderConfig, ValueHeadConfig } from "../engine/nn/index.js";
import type { CausalLM, SaveOptions } from "../models/index.js";
import type { JsonObject } from "../core/json.js";
import type {
  EntropyMode,
  FrozenStates,
  GraphOptions,
  LossResult,
  PolicyNodes,
  ScoringGraph,
  TokenBatch,
  TokenScores,
  TrainingGraph,
} from "../models/graphs/index.js";
import type { Sampler } from "./sampling/sampler.js";

/** Samples completions and scores continuations, in tokens. */
export type TokenSampler = Pick<Sampler, "sample" | "resume" | "score" | "scoreTokens" | "release">;

/** Scores the selected tokens of batches. */
export interface PolicyScorer extends Pick<ScoringGraph, "release"> {
  /**
   * Scores a batch; with `valuesOnly`, log-probabilities may be missing (NaN). `model` is another
   * version of the policy in this process, whose values are used instead.
   */
  run(
    batch: TokenBatch,
    options?: { readonly adapter?: boolean; readonly valuesOnly?: boolean; readonly model?: CausalLM },
  ): Promise<TokenScores>;
}

/** Computes a loss on batches and accumulates its gradient. */
export type PolicyTrainer = Pick<TrainingGraph, "run" | "release">;

/** Applies the accumulated gradient to the trained parameters. */
export type PolicyOptimizer = Pick<Optimizer, "step" | "learningRate" | "update" | "getState" | "setState" | "release">;

/** Options of AdamW; the value head, if any, may have its own learning rate. */
export interface PolicyOptimizerOptions extends Omit<AdamWOptions, "groups" | "schedule"> {
  /** Factor of the learning rate for the value head. Default 1. */
  readonly valueHeadFactor?: number;
}

/** What an algorithm needs of a policy that it trains. */
export interface TrainingNeeds {
  /** Name of the algorithm in messages. */
  readonly title: string;
  /** Whether it trains a value head. */
  readonly critic: boolean;
  readonly entropy: EntropyMode;
  /** Whether advantages or masks depend on the entropies of decisions. */
  readonly scoresEntropy: boolean;
  /** Whether it selects the parameters that a step trains. */
  readonly filtersParameters: boolean;
  /** Temperature at which completions are sampled. */
  readonly temperature: number;
  /** Whether completions are sampled from a truncated distribution (top-p and the like). */
  readonly isTruncatedSampling: boolean;
}

/**
 * What computes a language model: the engine in this process, or a service that has the weights.
 */
export interface PolicyBackend {
  /** The weights in this process; undefined where a service has them. */
  readonly causalLM: CausalLM | undefined;
  /** Computes graphs in this process. */
  readonly runtime: Runtime;
  /** Path, hub id or address of the model. */
  readonly name: string;
  readonly config: Pick<DecoderConfig, "vocabSize" | "maxPositions" | "hiddenSize" | "heads">;
  /** Sampling defaults of the model's generation_config.json. */
  readonly generationConfig: JsonObject;
  readonly eosTokenIds: readonly number[];
  readonly isTrainable: boolean;
  readonly valueHead: ValueHeadConfig | undefined;
  /**
   * Whether the trained parameters are an adapter, without which the model is the reference policy.
   */
  readonly hasAdapter: boolean;
  /**
   * Whether samplers return the distributions that tokens are sampled from, and largest
   * log-probabilities are known.
   */
  readonly hasDistributions: boolean;
  /**
   * Number of allowed tokens up to which training scores each as an alternative, where it is not
   * the engine's.
   */
  readonly maxAlternatives?: number;
  /** Default token budget of a micro-batch. */
  readonly microBatchTokens: number;
  /**
   * The states of frozen layers, which samplers and learners share; undefined without frozen
   * layers.
   */
  readonly frozenStates: FrozenStates | undefined;
  /** Version of the trained parameters, incremented by `markParametersChanged`. */
  readonly parametersVersion: number;
  /** Incremented by `markParametersChanged` and `clearCaches`. */
  readonly cacheVersion: number;
  /** Metrics of what it computed so far, such as the tokens of a service. */
  readonly metrics?: Readonly<Record<string, number>>;
  /** Losses of a service that the policy was trained with, by name; "linear" for any other. */
  readonly usedLosses?: readonly string[];
  /** Whether it has computed as many tokens as it may; a run then ends. */
  readonly isExhausted?: boolean;
  markParametersChanged(): void;
  clearCaches(): void;
  /**
   * Returns the sampler of the trained policy; with `adapter: false` that of the reference policy.
   */
  sampler(options?: { readonly adapter?: boolean }): Promise<TokenSampler>;
  createScorer(options?: GraphOptions): Promise<PolicyScorer>;
  createTrainer(lossFn: (policy: PolicyNodes) => LossResult, options?: GraphOptions): Promise<PolicyTrainer>;
  createOptimizer(options: PolicyOptimizerOptions): PolicyOptimizer;
  /** Sets the accumulated gradients of the parameters that `isUntrained` selects by name to 0. */
  zeroGradients(isUntrained: (parameter: string) => boolean): Promise<void>;
  /**
   * Checks, before anything is computed, that an algorithm can train this policy. @throws
   * INVALID_STATE, INVALID_ARGUMENT
   */
  checkTraining?(needs: TrainingNeeds): void;
  save(folder: string, options: SaveOptions): Promise<void>;
  loadTrainedValues(folder: string): Promise<void>;
  close(): Promise<void>;
}
