import type { AgentImitationOptions } from "../agent/replay/imitation.js";
import { demonstrate, expertEnvOptions, expertPlayers } from "./demonstrate.js";
import { envMaker } from "./make-agent.js";
import type { TrainConfig } from "./settings.js";

/**
 * What a run learns first: where its sftWarmStart is a number, so many episodes that the environment's expert plays, otherwise the
 * file of that name. Throws ENV_INVALID for an environment without an expert.
 */
export async function warmStartOf({
  sftWarmStart: given,
  env,
  envOptions,
  maxSteps,
  seed,
}: TrainConfig): Promise<AgentImitationOptions["sftWarmStart"]> {
  if (given === undefined || !/^\d+$/.test(given)) return given;
  const makeEnv = envMaker({ env, envOptions: expertEnvOptions(env, envOptions), maxSteps });
  return demonstrate(makeEnv, expertPlayers, { episodes: Number(given), seed });
}
