import { defineSettings, integer } from "../../core/settings.js";

/** Settings of the environment of a run. */
export const envSettings = defineSettings(
  {
    maxEpisodeSteps: integer({
      min: 1,
      common: true,
      description: "Maximum number of steps per episode. Default: the environment's limit.",
    }),
  },
  { group: "Environment", scope: "env" },
);
