import { checkOptions } from "../../../core/settings.js";
import { LlamaGymError } from "../../../core/errors.js";
import type { PromptRow } from "../../data/prompt-dataset.js";
import { RewardScorer, type RewardFunction } from "./reward-scorer.js";

/** Options of `CheckRewardFunction`. */
export interface CheckRewardFunctionOptions {
  /** Rows of the dataset. */
  readonly rows: readonly PromptRow[];
  /** Completions that each row is scored with, in addition to an empty and unusual ones. */
  readonly completions?: readonly string[];
  /** Seconds for a batch. Default 60. */
  readonly timeoutSeconds?: number;
}

const UNUSUAL_COMPLETIONS = ["", " \n\u0000", "\u{1f0a1}\u2028</think>", "9".repeat(1000)];

/**
 * Checks a reward function on every row with usual and unusual completions, in one batch and one by
 * one: it returns a finite number, a boolean, null or undefined per completion, in time, and does
 * not throw. Return null, not NaN, for unscored completions.
 * @throws REWARD_FAILED at the first violation.
 */
export async function checkRewardFunction(
  rewardFunction: RewardFunction,
  options: CheckRewardFunctionOptions,
): Promise<void> {
  checkOptions("checkRewardFunction", options, { rows: true, completions: true, timeoutSeconds: true });
  const { rows, completions = [], timeoutSeconds = 60 } = options;
  const onWarning = (message: string) => {
    throw new LlamaGymError("REWARD_FAILED", message);
  };
  const scorer = new RewardScorer(rewardFunction, { timeoutSeconds, onWarning });
  const samples = rows.flatMap((row) =>
    [...completions, ...UNUSUAL_COMPLETIONS].map((completion) => ({
      row,
      completion,
      completionIds: Array.from(new TextEncoder().encode(completion)),
    })),
  );
  await scorer.score(samples);
  for (const sample of samples) await scorer.score([sample]);
}
