import type { GenerationOptions } from "./generation-options.js";
import type { SampleOutput, TokenConstraint } from "./sampling/sample-request.js";

/** A reply, with its text. */
export interface Completion extends SampleOutput {
  /** Without special tokens, and up to a stop string; empty where the model has no tokenizer. */
  readonly text: string;
  /** The prompt as the model saw it. */
  readonly promptTokens: readonly number[];
  /** Which of the `choices` it is; undefined without choices, or when aborted. */
  readonly choice: number | undefined;
  /** What held it: says for each place which tokens were allowed there. Undefined for a free reply. */
  readonly constraint: TokenConstraint | undefined;
}

/** Options of a batch: prompt i draws with `seed + i`, or with its own of `seeds`. */
export interface BatchOptions extends GenerationOptions {
  readonly seeds?: readonly number[];
}

/** How likely a continuation is under the model at temperature 1; natural logarithms. */
export interface ContinuationScore {
  /** The sum over its tokens. */
  readonly logProb: number;
  readonly tokenLogProbs: readonly number[];
  readonly tokens: readonly number[];
}

/** What a score or a choice is computed with. */
export interface ScoreOptions extends Pick<
  GenerationOptions,
  "adapter" | "overflow" | "tools" | "chatTemplate" | "variables"
> {}

export interface ChooseOptions extends ScoreOptions {
  /** 0 takes the most probable choice. Default 1. */
  readonly temperature?: number;
  readonly seed?: number;
}

export interface ChoiceResult {
  readonly choice: string;
  readonly index: number;
  /** Of the choice taken, among the choices. */
  readonly logProb: number;
  /** Of each choice, in their order; they sum to 1. */
  readonly probabilities: readonly number[];
}
