/** In place of the environment in the config of a gateway's run. */
export const GATEWAY_ENV = "gateway";

/** Commands whose run folders can be resumed. */
export type RunCommand = "train" | "gateway" | "sft" | "grpo" | "rloo" | "dpo" | "kto";

interface SavedSettings {
  readonly env?: unknown;
  readonly data?: unknown;
  readonly rewardFuncs?: unknown;
  readonly algorithm?: unknown;
}

/**
 * Returns the command of a run by its stored settings; undefined for a run of a trainer in a
 * program.
 */
export function findRunCommand({ env, data, rewardFuncs, algorithm }: SavedSettings): RunCommand | undefined {
  if (env !== undefined) return env === GATEWAY_ENV ? "gateway" : "train";
  if (rewardFuncs !== undefined) return algorithm === "rloo" ? "rloo" : "grpo";
  if (data === undefined) return undefined;
  return algorithm === "dpo" || algorithm === "kto" ? algorithm : "sft";
}
