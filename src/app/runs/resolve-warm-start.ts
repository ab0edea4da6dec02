import type { AgentDemonstrationOptions } from "../../rl/agent/demonstrations/demonstration-trainer.js";
import { recordDemonstrations, expertPolicy } from "./record-demonstrations.js";
import { createEnvFactory } from "./make-text-agent.js";
import type { TrainConfig } from "./run-settings.js";

/**
 * What a run learns first: where its sftWarmStart is a number, so many episodes that the environment's expert plays, otherwise the
 * file of that name. Throws ENV_INVALID for an environment without an expert.
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
