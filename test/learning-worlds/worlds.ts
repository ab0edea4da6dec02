import { register } from "../../src/envs.js";
import { furtherWorlds } from "./further-worlds.js";
import { hiddenWorlds } from "./hidden-worlds.js";
import { unseenWorlds } from "./unseen-worlds.js";
import { manyStepWorlds } from "./many-step-worlds.js";
import { oneStepWorlds } from "./one-step-worlds.js";
import { solveWorld } from "./solve-world.js";
import type { World } from "./world.js";
import { WorldEnv } from "./world-env.js";

/**
 * Environments as new users write them, with exact returns: `llamagym train ./worlds.js:Flags-v0`.
 */
export const worlds: readonly World[] = [
  ...oneStepWorlds,
  ...manyStepWorlds,
  ...hiddenWorlds,
  ...furtherWorlds,
  ...unseenWorlds,
];

for (const world of worlds)
  register({
    id: world.id,
    entryPoint: () => new WorldEnv(world),
    maxEpisodeSteps: world.maxEpisodeSteps,
    summary: world.tests,
    knownReturns: { ...solveWorld(world), basis: "exact" },
  });
