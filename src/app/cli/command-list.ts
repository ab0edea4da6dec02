import type { Command } from "./options/define-command.js";

interface CommandEntry {
  readonly summary: string;
  /**
   * Loads the command's module, so that a command starts without the dependencies of the others.
   */
  readonly load: () => Promise<Command>;
}

/** All commands with one line about each. */
export const COMMANDS = {
  train: {
    summary: "Train a language model in an environment with reinforcement learning",
    load: async () => (await import("./commands/train-command.js")).trainCommand,
  },
  sft: {
    summary: "Fine-tune a language model on examples",
    load: async () => (await import("./commands/sft-command.js")).sftCommand,
  },
  dpo: {
    summary: "Train a language model on pairs of completions by DPO",
    load: async () => (await import("./commands/preference-command.js")).dpoCommand,
  },
  kto: {
    summary: "Train a language model on desirable and undesirable completions by KTO",
    load: async () => (await import("./commands/preference-command.js")).ktoCommand,
  },
  grpo: {
    summary: "Train a language model on prompts with reward functions by GRPO",
    load: async () => (await import("./commands/prompt-command.js")).grpoCommand,
  },
  rloo: {
    summary: "Train a language model on prompts with reward functions by RLOO",
    load: async () => (await import("./commands/prompt-command.js")).rlooCommand,
  },
  sweep: {
    summary: "Search for hyperparameters over several trials and seeds",
    load: async () => (await import("./commands/sweep-command.js")).sweepCommand,
  },
  recipe: {
    summary: "Run a published learning result again",
    load: async () => (await import("./commands/recipe-command.js")).recipeCommand,
  },
  demos: {
    summary: "Record episodes as demonstrations",
    load: async () => (await import("./commands/demos-command.js")).demosCommand,
  },
  eval: {
    summary: "Measure a model's mean return in an environment",
    load: async () => (await import("./commands/eval-command.js")).evalCommand,
  },
  play: {
    summary: "Play an environment yourself, or watch a model play it",
    load: async () => (await import("./commands/play-command.js")).playCommand,
  },
  plot: {
    summary: "Draw the learning curves of runs",
    load: async () => (await import("./commands/plot-command.js")).plotCommand,
  },
  worker: {
    summary: "Collect rollouts for training runs on other machines",
    load: async () => (await import("./commands/worker-command.js")).workerCommand,
  },
  workers: {
    summary: "List workers and the jobs of each run",
    load: async () => (await import("./commands/workers-command.js")).workersCommand,
  },
  dashboard: {
    summary: "Show runs in the browser while they train",
    load: async () => (await import("./commands/dashboard-command.js")).dashboardCommand,
  },
  report: {
    summary: "Write the dashboard's views of runs into one HTML file",
    load: async () => (await import("./commands/report-command.js")).reportCommand,
  },
  envs: {
    summary: "List, describe or serve environments",
    load: async () => (await import("./commands/envs-command.js")).envsCommand,
  },
  generate: {
    summary: "Generate text with a model, or chat with it",
    load: async () => (await import("./commands/generate-command.js")).generateCommand,
  },
  serve: {
    summary: "Serve a model over the HTTP APIs of OpenAI and Anthropic",
    load: async () => (await import("./commands/serve-command.js")).serveCommand,
  },
  tinker: {
    summary: "Check what a Tinker service computes",
    load: async () => (await import("./commands/tinker-command.js")).tinkerCommand,
  },
  gateway: {
    summary: "Train a model on the sessions of agents that call it by HTTP",
    load: async () => (await import("./commands/gateway-command.js")).gatewayCommand,
  },
  export: {
    summary: "Export a model for Transformers, PEFT, transformers.js, llama.cpp or Ollama",
    load: async () => (await import("./commands/export-command.js")).exportCommand,
  },
  merge: {
    summary: "Merge an adapter into its base model",
    load: async () => (await import("./commands/merge-command.js")).mergeCommand,
  },
  models: {
    summary: "List supported models and which of them fit this machine",
    load: async () => (await import("./commands/models-command.js")).modelsCommand,
  },
  cache: {
    summary: "List or remove the converted weights that are kept between starts",
    load: async () => (await import("./commands/cache-command.js")).cacheCommand,
  },
  doctor: {
    summary: "Check devices, memory, cache and network of this machine",
    load: async () => (await import("./commands/doctor-command.js")).doctorCommand,
  },
  bench: {
    summary: "Measure what a GPU or the CPU does on this machine",
    load: async () => (await import("./commands/bench-command.js")).benchCommand,
  },
} as const satisfies Readonly<Record<string, CommandEntry>>;

export type CommandName = keyof typeof COMMANDS;
