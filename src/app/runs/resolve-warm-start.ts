import type { AgentDemonstrationOptions } from "../../rl/agent/demonstrations/demonstration-trainer.js";
import { recordDemonstrations, expertPolicy } from "./record-demonstrations.js";
import { createEnvFactory } from "./make-text-agent.js";
import type { TrainConfig } from "./run-settings.js";

/**
 * Resolves the setting sftWarmStart: a number records that many episodes of the environment's expert, anything else is a file.
 * @throws ENV_INVALID for an environment without an expert.
 */
export async function resolveWarmStart({
  sftWarmStart: given,
  env,
  envOptions,
  maxEpisodeSteps,
  seed,
}: TrainConfig): Promise<AgentDemonstrationOptions["sftWarmStart"]> {
  if (given === undefined || !/^\d+$/.test(given)) return given;
  const makeEnv = createEnvFactory({ env, envOptions, maxEpisodeSteps });
  return recordDemonstrations(makeEnv, expertPolicy, { episodes: Number(given), seed });
}
