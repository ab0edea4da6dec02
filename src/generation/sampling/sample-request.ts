import type { SamplingParams, TokenDistribution } from "../../engine/runtime/index.js";
import type { TokenConstraint } from "../constraints/compiled-constraint.js";

/** Scores of the tokens of a continuation. */
export interface ScoredTokens {
  /** Log-probability of each token under the model at temperature 1. */
  readonly logProbs: readonly number[];
  /** The most probable tokens at each position, as many as requested. */
  readonly topLogProbs: readonly (readonly TokenLogProb[])[];
}

/** A request for one completion, in tokens. */
export interface SampleRequest {
  /** Token ids of everything before the completion. */
  readonly prompt: readonly number[];
  readonly sampling: SamplingParams;
  readonly maxNewTokens: number;
  /**
   * Returns uniform numbers in [0, 1), one for each token; the completion depends on no other
   * source of randomness.
   */
  readonly random: () => number;
  /** Tokens that end the completion and are part of it. */
  readonly stopTokens: ReadonlySet<number>;
  /** Called after each token; returning true ends the completion with "stop_string". */
  readonly shouldStop?: (tokens: readonly number[]) => boolean;
  /** The strings that `shouldStop` finds, for a sampler that does not call it after each token. */
  readonly stopStrings?: readonly string[];
  readonly constraint?: TokenConstraint;
  /**
   * Appends tokens that are the only ones allowed without running the model, which is faster. Their
   * `rawLogProbs` and `values` are NaN.
   */
  readonly skipForcedTokens?: boolean;
  /**
   * Returns the tokens that top-k, top-p and min-p kept as the output's `allowedTokens`, so that
   * training can renormalize over them. Requires one of these and a temperature above 0.
   */
  readonly recordsKeptTokens?: boolean;
  /**
   * Computes only the logits of the tokens that a constraint allows, which is faster. `rawLogProbs`
   * of these tokens are NaN, as they depend on all logits.
   */
  readonly skipRawLogProbs?: boolean;
  /**
   * Number of most probable tokens to return for each token, under the model at temperature 1.
   * Default 0.
   */
  readonly topLogProbs?: number;
  /**
   * Called before each token with the distribution that it is sampled from, the value of its state
   * and its index; not called at temperature 0.
   */
  readonly onDistribution?: (distribution: TokenDistribution, value: number, index: number) => void;
  /** Called with each token as it is sampled. */
  readonly onToken?: (token: number) => void;
  /** Ends the completion with "aborted". */
  readonly signal?: AbortSignal;
}

/** Why a completion ended. */
export type FinishReason = "stop" | "stop_string" | "length" | "aborted";

/** A token and its log-probability. */
export interface TokenLogProb {
  readonly token: number;
  readonly logProb: number;
}

/** Sampled tokens with their log-probabilities. */
export interface SampleOutput {
  readonly tokens: readonly number[];
  /**
   * Log-probability of each token under the distribution it was sampled from, after temperature,
   * filters and constraint.
   */
  readonly logProbs: readonly number[];
  /**
   * Log-probability of each token under the model at temperature 1; NaN where the model was not run
   * for the token.
   */
  readonly rawLogProbs: readonly number[];
  /**
   * Value of the state before each token; NaN without a value head, and where the model was not run
   * for the token.
   */
  readonly values: readonly number[];
  /**
   * The tokens that the constraint, or with `recordsKeptTokens` the constraint and the filters,
   * left to sample each token from; undefined for other completions.
   */
  readonly allowedTokens: readonly Int32Array[] | undefined;
  /**
   * The most probable tokens at each token, empty where the model was not run; undefined if none
   * were requested.
   */
  readonly topLogProbs: readonly (readonly TokenLogProb[])[] | undefined;
  /** Number of the prompt's tokens whose keys and values were reused. */
  readonly cachedTokens: number;
  readonly finishReason: FinishReason;
}
