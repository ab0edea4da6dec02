import { choice, defineSettings, integer, text } from "../core/settings.js";

/** Where a run is sampled and trained. */
export const serviceSettings = defineSettings(
  {
    backend: choice({
      default: "engine",
      choices: ["engine", "tinker"],
      common: true,
      description: "What samples and trains the model: the engine in this process, or a Tinker service.",
    }),
    baseUrl: text({
      valueName: "URL",
      common: true,
      changeable: "resume",
      description: "Address of the Tinker service. Its key comes from the environment variable TINKER_API_KEY.",
    }),
    tokenizer: text({
      valueName: "path or id",
      description: "Tokenizer of a service's model: a folder or a Hugging Face id. Default: the model's.",
    }),
    critic: text({
      valueName: "path or id",
      description:
        "Model in this process that estimates the values of states for algorithms with a value head (ppo), and is trained with the policy. Default: embedded.",
    }),
    maxServiceTokens: integer({
      min: 1,
      changeable: "resume",
      description:
        "Number of tokens that the service may compute for the run: prompts, samples, scores and training. Beyond it, nothing more is sampled and the run ends with a checkpoint.",
    }),
  },
  { group: "Tinker service", scope: "model" },
);
