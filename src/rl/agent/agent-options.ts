import type { AlgorithmOptions } from "../algorithms/algorithms.js";
import type { ContextOverflow, GenerationOptions } from "../../generation/generation-options.js";
import type { AgentDemonstrationOptions } from "./demonstrations/demonstration-trainer.js";
import type { ActionScoring, InvalidActionPolicy } from "../rollout/rollout-settings.js";

/** How an agent replies; the names are `model.generate`'s. */
export type AgentGenerationOptions = Pick<
  GenerationOptions,
  "maxNewTokens" | "temperature" | "topK" | "topP" | "minP" | "repetitionPenalty" | "stop" | "ignoreEos"
>;

export interface AgentOptions<Observation = unknown, Action = unknown>
  extends AlgorithmOptions, AgentDemonstrationOptions {
  readonly generation?: AgentGenerationOptions;
  /** Temperature after `eval()`. Default 0: the most probable reply. */
  readonly evalTemperature?: number;
  /** Earlier turns that a prompt shows. Default Infinity: the whole episode as far as the context allows. */
  readonly historyTurns?: number;
  /** When the context is full: leave out the oldest turns (the default), or throw CONTEXT_OVERFLOW. */
  readonly contextOverflow?: ContextOverflow;
  /** Tokens of a prompt and its reply together; the model's context by default. */
  readonly maxContextLength?: number;
  /**
   * Draws one of `getChoices` by its score: the softmax of the sums of log-probabilities ("sum", as GLAM), over their "token" or
   * "word" count (as TWOSOME). Undefined, the default: replies are drawn token by token among those that lead to a choice.
   */
  readonly actionScoring?: ActionScoring;
  /** How every reply begins, such as "Action:"; given to the model, not sampled, and not part of what extractAction gets. */
  readonly completionPrefix?: string;
  /** What happens when no action can be read out of a reply. By default that is an error, at once. */
  readonly invalidAction?: Partial<InvalidActionPolicy<Observation, Action>>;
  /**
   * Shares the reward equally between the turns of an episode where all but the last are zero. Default false. With a Trainer, an
   * episode that goes on over an update shares it between its turns since then.
   */
  readonly spreadSparseRewards?: boolean;
  /** Tokens of one forward and backward pass; more need more memory. By default what takes some 2 GB, and 2,048 at most. */
  readonly microBatchTokens?: number;
  /** Decides replies, minibatches and dropout; the same seed gives the same run. Default 0. */
  readonly seed?: number;
}
