import type { Command } from "./options/define-command.js";

/** All commands with one line about each. */
export const COMMAND_SUMMARIES = {
  train: "Train a language model in an environment with reinforcement learning",
  sft: "Fine-tune a language model on examples",
  sweep: "Search for hyperparameters over several trials and seeds",
  demos: "Record episodes as demonstrations",
  eval: "Measure a model's mean return in an environment",
  play: "Play an environment yourself, or watch a model play it",
  envs: "List, describe or serve environments",
  generate: "Generate text with a model, or chat with it",
  models: "List supported models and which of them fit this machine",
  doctor: "Check devices, memory, cache and network of this machine",
} as const satisfies Readonly<Record<string, string>>;

export type CommandName = keyof typeof COMMAND_SUMMARIES;

/** Loads a command's module, so that a command starts without the dependencies of the others. */
export async function loadCommand(name: CommandName): Promise<Command> {
  switch (name) {
    case "train":
      return (await import("./commands/train-command.js")).trainCommand;
    case "sft":
      return (await import("./commands/sft-command.js")).sftCommand;
    case "sweep":
      return (await import("./commands/sweep-command.js")).sweepCommand;
    case "demos":
      return (await import("./commands/demos-command.js")).demosCommand;
    case "eval":
      return (await import("./commands/eval-command.js")).evalCommand;
    case "play":
      return (await import("./commands/play-command.js")).playCommand;
    case "envs":
      return (await import("./commands/envs-command.js")).envsCommand;
    case "generate":
      return (await import("./commands/generate-command.js")).generateCommand;
    case "models":
      return (await import("./commands/models-command.js")).modelsCommand;
    case "doctor":
      return (await import("./commands/doctor-command.js")).doctorCommand;
  }
}
