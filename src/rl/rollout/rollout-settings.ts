import { boolean, choice, defineSettings, integer, number, text, type Settings } from "../../core/settings.js";
import { type Info, MAX_REWARD } from "../../envs/index.js";
import type { MaybePromise } from "../../core/maybe-promise.js";
import { generationSettings } from "../../generation/index.js";
import { filtersTokens, type SamplingParams } from "../../engine/runtime/index.js";
import type { RandomStream } from "../../core/random/random-stream.js";

/** Settings of sampling, in addition to those of generation. */
export const completionSettings = defineSettings({
  /**
   * Distribution that is trained if a filter of `generation` excludes tokens: "sampled"
   * renormalizes over the tokens that were kept, "full" takes completions as if all tokens had been
   * sampled from. With a repetition penalty always "full". Default "sampled".
   */
  trainedDistribution: choice({
    default: "sampled",
    choices: ["sampled", "full"],
    description:
      "Distribution that is trained where filters such as topP truncate sampling: the one sampled from, or the model's full one, which is biased.",
  }),
  /**
   * Samples one of `getChoices` by its score: the softmax of summed log-probabilities ("sum", as
   * GLAM), divided by the number of tokens or words ("token", "word", as TWOSOME). By default the
   * choice is sampled token by token.
   */
  actionScoring: choice({
    choices: ["sum", "token", "word"],
    description: "Score of a choice: the sum of its token log-probabilities, or the mean per token or word.",
    source: "TWOSOME",
  }),
});

/** Settings of prompts. */
export const promptSettings = defineSettings({
  /**
   * Number of earlier turns in a prompt, Infinity for as many as the context allows. Default 0; for
   * a TextAgent the number that its environment declares.
   */
  historyTurns: integer({
    default: 0,
    min: 0,
    allowsInfinity: true,
    description:
      "Number of earlier turns in a prompt. Default: what the environment declares (text.historyTurns), else 0.",
    source: "ORLLLaM: one message a step",
  }),
  /**
   * Whether to drop the oldest turns (default) or throw CONTEXT_OVERFLOW when the context is full.
   */
  contextOverflow: choice({
    ...generationSettings.contextOverflow,
    default: "drop-oldest",
    description: "What to do when the context is full: drop the oldest turns, or fail.",
  }),
  /** Maximum number of tokens of a prompt and its completion. Default: the model's context. */
  maxContextLength: integer({
    min: 1,
    description: "Maximum number of tokens of a prompt and its completion. Default: the model's context.",
  }),
  /**
   * Prefix of every completion, such as "Action:"; part of the prompt, not sampled, not passed to
   * extractAction.
   */
  completionPrefix: text({
    default: "",
    allowsEmpty: true,
    description: "Text that every completion begins with (for example Action:).",
  }),
});

/** Settings of the rewards that turns are trained with. */
export const rewardSettings = defineSettings({
  /**
   * Spreads the reward evenly over the turns of an episode whose rewards are 0 except for the last.
   * Default false. With a Trainer, an episode that continues after an update is spread over its
   * turns since then.
   */
  spreadSparseRewards: boolean({
    description: "Spread a reward that comes only at the end evenly over the turns.",
    source: "off; LlamaGym 0.1.1 always does",
  }),
});

/** Settings of calls of the user's code. */
export const callSettings = defineSettings({
  /**
   * Seconds after which a pending promise of `extractAction`, of `invalidAction.fallback` or, with
   * a Trainer, of an environment is an error. Default 300; 0 waits forever, and nothing expires
   * while a debugger is attached.
   */
  callTimeoutSeconds: number({
    // Far above a slow environment's step, and short enough to notice.
    default: 300,
    min: 0,
    changeable: "resume",
    description: "Time limit of a call of the environment. 0 disables it; an attached debugger suspends it.",
  }),
});

/** Settings of an agent's rollouts. */
export const rolloutSettings = { ...completionSettings, ...promptSettings, ...rewardSettings, ...callSettings };

/** Handling of completions without an action. */
export const invalidActionSettings = defineSettings({
  /**
   * Number of times a completion is resampled; rejected ones enter neither prompts nor training.
   * Default 0.
   */
  retries: integer({
    default: 0,
    min: 0,
    description: "Number of times a completion without an action is resampled before a random action is taken.",
  }),
  /** Subtracted from the reward of a turn without a valid action. Default 0. */
  penalty: number({
    default: 0,
    min: 0,
    max: MAX_REWARD,
    description: "Penalty subtracted from the reward of a completion without an action.",
  }),
});

interface FallbackMethod<Observation, Action> {
  // As a method, so that an agent for one kind of observation is also an agent for unknown ones.
  fallback(observation: Observation, random: RandomStream, info: Info): MaybePromise<Action>;
}

/** How completions without an action are handled. */
export interface InvalidActionPolicy<Observation = unknown, Action = unknown> extends Settings<
  typeof invalidActionSettings
> {
  /** "error" throws AGENT_NO_ACTION; a function chooses the action. */
  readonly fallback: "error" | FallbackMethod<Observation, Action>["fallback"];
}

/**
 * Whether completions come with the tokens that filters kept. A repetition penalty also changes
 * probabilities.
 */
export function recordsKeptTokens({ sampling, trainedDistribution: trained }: SampledDistribution): boolean {
  const isTruncated = sampling.temperature > 0 && filtersTokens(sampling);
  return isTruncated && sampling.repetitionPenalty === 1 && trained === "sampled";
}

/**
 * Whether log-probabilities of sampled tokens are not those of the trained distribution, and are
 * computed again.
 */
export function isTruncatedSampling(settings: SampledDistribution): boolean {
  const { sampling } = settings;
  return (filtersTokens(sampling) || sampling.repetitionPenalty !== 1) && !recordsKeptTokens(settings);
}

type SampledDistribution = Pick<CompletionSettings, "sampling" | "trainedDistribution">;

/** How completions are sampled. */
export interface CompletionSettings extends Settings<typeof completionSettings> {
  readonly sampling: SamplingParams;
  readonly maxNewTokens: number;
  /** Strings that end a completion. */
  readonly stop: readonly string[];
  /** Whether the model's end tokens do not end a completion. */
  readonly ignoreEos: boolean;
}

/** How prompts are built. */
export interface PromptSettings extends Settings<typeof promptSettings> {
  /** Maximum number of tokens of a prompt and its completion. */
  readonly maxContextLength: number;
}

export interface RolloutSettings<Observation = unknown, Action = unknown>
  extends Settings<typeof rewardSettings>, Settings<typeof callSettings> {
  readonly completion: CompletionSettings;
  readonly prompt: PromptSettings;
  readonly invalidAction: InvalidActionPolicy<Observation, Action>;
}
