import type { AgentDemonstrationOptions } from "../../rl/agent/demonstrations/demonstration-trainer.js";
import { recordDemonstrations, expertPolicy } from "./record-demonstrations.js";
import type { RunEnv } from "./run-env.js";
import type { TrainConfig } from "./run-settings.js";

/**
 * Resolves the setting sftWarmStart: a number records that many episodes of the environment's expert, anything else is a file.
 * @throws ENV_INVALID for an environment without an expert.
 */
export async function resolveWarmStart(
  { sftWarmStart: given, seed }: TrainConfig,
  env: RunEnv,
): Promise<AgentDemonstrationOptions["sftWarmStart"]> {
  if (given === undefined || !/^\d+$/.test(given)) return given;
  return recordDemonstrations(async () => env.open(), expertPolicy, { episodes: Number(given), seed });
}
