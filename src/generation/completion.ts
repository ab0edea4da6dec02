import type { GenerationOptions } from "./generation-options.js";
import type { SampleOutput } from "./sampling/sample-request.js";

/** A sampled completion and its text. */
export interface Completion extends SampleOutput {
  /** Without special tokens and stop strings; empty if the model has no tokenizer. */
  readonly text: string;
  readonly promptTokens: readonly number[];
  /** Index among the `choices`; undefined without choices, or if aborted. */
  readonly choice: number | undefined;
}

/** Options of a batch: prompt i is sampled with `seed + i`, or with its own seed of `seeds`. */
export interface BatchOptions extends GenerationOptions {
  readonly seeds?: readonly number[];
}

/** Natural log-probability of a continuation under the model at temperature 1. */
export interface ContinuationScore {
  /** Sum over the tokens. */
  readonly logProb: number;
  readonly tokenLogProbs: readonly number[];
  readonly tokens: readonly number[];
}

/** Options of `LanguageModel.score`. */
export interface ScoreOptions extends Pick<
  GenerationOptions,
  "adapter" | "contextOverflow" | "tools" | "chatTemplate" | "variables" | "splitSpecialTokens"
> {}

/** Options of `LanguageModel.choose`. */
export interface ChooseOptions extends ScoreOptions {
  /** 0 takes the most probable choice. Default 1. */
  readonly temperature?: number;
  readonly seed?: number;
}

/** Chosen text with the scores of all choices. */
export interface ChoiceResult {
  readonly choice: string;
  readonly index: number;
  /** Log-probability of the sampled choice among the choices. */
  readonly logProb: number;
  /** Probability of each choice, in their order; they sum to 1. */
  readonly probabilities: readonly number[];
}
