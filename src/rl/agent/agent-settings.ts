import { boolean, choice, defineSettings, integer, number, text } from "../../core/settings.js";
import { MAX_REWARD } from "../../envs/reward-limit.js";
import { TEMPERATURE_LIMITS } from "../../generation/generation-options.js";
import { microBatchTokens } from "../../models/model-settings.js";
import { ACTION_SCORINGS, trainedDistribution } from "../rollout/rollout-settings.js";
import { DEFAULT_CALL_TIMEOUT_SECONDS } from "../rollout/with-timeout.js";

/** Earlier turns in a prompt where neither options nor the environment say otherwise. */
export const DEFAULT_HISTORY_TURNS = 0;

/** Options of an agent that are plain values. */
export const agentSettings = defineSettings({
  trainedDistribution,
  evalTemperature: number({
    ...TEMPERATURE_LIMITS,
    allowsZero: true,
    default: 0,
    description: "Sampling temperature in evaluation. 0 is greedy.",
  }),
  historyTurns: integer({
    min: 0,
    description:
      "Number of earlier turns in a prompt. Default: what the environment declares (text.historyTurns), else 0.",
    source: "ORLLLaM: one message a step",
  }),
  contextOverflow: choice({
    default: "drop-oldest",
    choices: ["drop-oldest", "error"],
    description: "What to do when the context is full: drop the oldest turns, or fail.",
  }),
  maxContextLength: integer({
    min: 1,
    description: "Maximum number of tokens of a prompt and its completion. Default: the model's context.",
  }),
  actionScoring: choice({
    choices: ACTION_SCORINGS,
    description: "Score of a choice: the sum of its token log-probabilities, or the mean per token or word.",
    source: "TWOSOME",
  }),
  completionPrefix: text({ description: "Text that every completion begins with (for example Action:)." }),
  spreadSparseRewards: boolean({
    description: "Spread a reward that comes only at the end evenly over the turns.",
    source: "off; LlamaGym 0.1.1 always does",
  }),
  callTimeoutSeconds: number({
    default: DEFAULT_CALL_TIMEOUT_SECONDS,
    min: 0,
    description: "Time limit of a call of the environment. 0 disables it; an attached debugger suspends it.",
  }),
  microBatchTokens,
  seed: integer({ default: 0, min: 0, description: "Random seed; the same seed gives the same run." }),
});

/** Handling of completions without an action. */
export const invalidActionSettings = defineSettings({
  retries: integer({
    default: 0,
    min: 0,
    description: "Number of times a completion without an action is resampled before a random action is taken.",
  }),
  penalty: number({
    default: 0,
    min: 0,
    max: MAX_REWARD,
    description: "Penalty subtracted from the reward of a completion without an action.",
  }),
});
