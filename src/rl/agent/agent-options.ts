import type { Info } from "../../envs/info.js";
import type { ValueSchema } from "../../envs/spaces/index.js";
import type { AlgorithmOptions } from "../algorithms/algorithms.js";
import type { ContextOverflow, GenerationOptions } from "../../generation/generation-options.js";
import type { AgentDemonstrationOptions } from "./demonstrations/demonstration-trainer.js";
import type { ActionScoring, InvalidActionPolicy, TrainedDistribution } from "../rollout/rollout-settings.js";

/** Generation options of an agent's completions. */
export type AgentGenerationOptions = Pick<
  GenerationOptions,
  "maxNewTokens" | "temperature" | "topK" | "topP" | "minP" | "repetitionPenalty" | "stop" | "ignoreEos"
>;

export interface AgentOptions<Observation = unknown, Action = unknown>
  extends AlgorithmOptions, AgentDemonstrationOptions {
  readonly generation?: AgentGenerationOptions;
  /**
   * Actions as a zod schema or a JSON schema. Constrains completions to it (to its choices, for a `z.enum` of strings; otherwise to
   * its JSON) and reads the typed action from them, in place of `getChoices`, `getSchema` and `extractAction`.
   */
  readonly actionSchema?: ValueSchema<Action>;
  /**
   * Distribution that is trained if `generation` has `topK`, `topP` or `minP`: "sampled" (the default) renormalizes over the tokens
   * that were kept, "full" takes completions as if all tokens had been sampled from. With a repetition penalty always "full".
   */
  readonly trainedDistribution?: TrainedDistribution;
  /** Temperature after `eval()`. Default 0 (greedy). */
  readonly evalTemperature?: number;
  /**
   * Number of earlier turns in a prompt, Infinity for as many as the context allows. Default 0; for a TextAgent the number that
   * its environment declares.
   */
  readonly historyTurns?: number;
  /** Whether to drop the oldest turns (default) or throw CONTEXT_OVERFLOW when the context is full. */
  readonly contextOverflow?: ContextOverflow;
  /** Maximum tokens of prompt and completion. Default: the model's context. */
  readonly maxContextLength?: number;
  /**
   * Samples one of `getChoices` by its score: the softmax of summed log-probabilities ("sum", as GLAM), divided by the
   * number of tokens or words ("token", "word", as TWOSOME). By default the choice is sampled token by token.
   */
  readonly actionScoring?: ActionScoring;
  /** Prefix of every completion, such as "Action:"; part of the prompt, not sampled, not passed to extractAction. */
  readonly completionPrefix?: string;
  /** Handling of completions without an action. By default an error. */
  readonly invalidAction?: Partial<InvalidActionPolicy<Observation, Action>>;
  /**
   * Spreads the reward evenly over the turns of an episode whose rewards are 0 except for the last. Default false. With
   * a Trainer, an episode that continues after an update is spread over its turns since then.
   */
  readonly spreadSparseRewards?: boolean;
  /**
   * Seconds after which a pending promise of `extractAction`, of `invalidAction.fallback` or, with a Trainer, of an environment is
   * an error. Default 300; 0 waits forever, and nothing expires while a debugger is attached.
   */
  readonly callTimeoutSeconds?: number;
  /** Token budget of a micro-batch; more need more memory. By default what fits into about 2 GB, at most 2,048. */
  readonly microBatchTokens?: number;
  /** Seed of completions, minibatches and dropout. Default 0. */
  readonly seed?: number;
}

/** Options of `terminateEpisode`. */
export interface TerminateOptions<Observation> {
  /**
   * False excludes the episode from training. True (the default) trains once a batch is full. Episodes
   * started after `eval()` are never trained.
   */
  readonly train?: boolean;
  /** Last observation of a truncated episode; its value replaces the rewards that would have followed. */
  readonly finalObservation?: Observation;
  readonly info?: Info;
}
