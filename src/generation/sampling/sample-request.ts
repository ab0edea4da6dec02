import type { SamplingParams, TokenDistribution } from "../../engine/runtime/kernels/sampling.js";

/** What a reply may be made of: asked before each token. */
export interface TokenConstraint {
  /**
   * The tokens that may come next after those given; undefined for any. An empty list ends the reply.
   */
  allowedTokens(tokens: readonly number[]): Int32Array | undefined;
}

/** A reply that is wanted. */
export interface SampleRequest {
  /** Token ids of everything before the reply. */
  readonly prompt: readonly number[];
  readonly sampling: SamplingParams;
  readonly maxNewTokens: number;
  /** Uniform numbers in [0, 1), one for each token; a reply depends on nothing else that is random. */
  readonly random: () => number;
  /** Tokens that end the reply (and are part of it). */
  readonly stopTokens: ReadonlySet<number>;
  /** Asked after each token; true ends the reply (for stop strings). */
  readonly shouldStop?: (tokens: readonly number[]) => boolean;
  readonly constraint?: TokenConstraint;
  /**
   * Whether tokens that the constraint leaves no choice about are taken without asking the model, which takes less time. Their
   * plainLogProbs and values are NaN then.
   */
  readonly skipForcedTokens?: boolean;
  /** Called with what each token is drawn from and the value of its state, before the token; not at temperature 0. */
  readonly onDistribution?: (distribution: TokenDistribution, value: number) => void;
  /** Called with each token as it is drawn. */
  readonly onToken?: (token: number) => void;
  readonly signal?: AbortSignal;
}

export type FinishReason = "stop" | "stop_string" | "length" | "aborted";

export interface SampleOutput {
  readonly tokens: readonly number[];
  /** Of each token, under the distribution that it was drawn from (temperature, top-p, constraint and all). */
  readonly logProbs: readonly number[];
  /** Of each token, under the model itself at temperature 1; NaN where the model was not asked (see skipsForced). */
  readonly rawLogProbs: readonly number[];
  /** Of the state before each token, as the value head reads it; NaN without one, and where the model was not asked. */
  readonly values: readonly number[];
  readonly finishReason: FinishReason;
}
