import type { AgentDemonstrationOptions } from "../../rl/agent/index.js";
import { RANDOM_WARM_START, RANDOM_WARM_START_TURNS } from "./embedded-defaults.js";
import { expertPolicy, randomPolicy, recordDemonstrations } from "./record-demonstrations.js";
import type { RunEnv } from "./run-env.js";
import type { TrainConfig } from "./run-settings.js";

/**
 * Resolves the setting sftWarmStart: "none", "random" (random actions), a number of episodes of the
 * environment's expert, or a file.
 * @throws ENV_INVALID for an environment without an expert.
 */
export async function resolveWarmStart(
  { sftWarmStart: given, seed }: TrainConfig,
  env: RunEnv,
): Promise<AgentDemonstrationOptions["sftWarmStart"]> {
  if (given === "none") return undefined;
  if (given === RANDOM_WARM_START)
    return recordDemonstrations(async () => env.open(), randomPolicy, {
      episodes: RANDOM_WARM_START_TURNS,
      turns: RANDOM_WARM_START_TURNS,
      seed,
    });
  if (given === undefined || !/^\d+$/.test(given)) return given;
  return recordDemonstrations(async () => env.open(), expertPolicy, { episodes: Number(given), seed });
}
