import { boolean, choice, defineSettings, text } from "../../core/settings.js";

/** Where a run logs its metrics, in addition to its folder. */
export const trackingSettings = defineSettings(
  {
    tensorboard: boolean({ default: true, description: "Write TensorBoard event files." }),
    tracker: text({
      valueName: "file",
      changeable: "resume",
      description: "JavaScript or TypeScript module that exports a tracker (docs/tracking.md).",
    }),
    wandbProject: text({
      valueName: "name",
      description: "Weights & Biases project to log to. Also set by WANDB_PROJECT.",
      source: "LlamaGymEDU",
    }),
    wandbMode: choice({
      choices: ["online", "offline", "disabled"],
      description: "Whether to send the run to Weights & Biases, or write it to files for later.",
      source: "WANDB_MODE",
    }),
  },
  { group: "Logging and checkpoints", scope: "run" },
);
