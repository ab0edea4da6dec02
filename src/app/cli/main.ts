#!/usr/bin/env node
import { createRequire } from "node:module";
import { stripVTControlCharacters } from "node:util";
import { defineCommand, renderUsage, runCommand, type CommandDef } from "citty";
import { findNearestName } from "../../core/suggest.js";
import { LlamaGymError } from "../../core/errors.js";
import { renderHelp } from "./options/render-help.js";
import { UsageError } from "./options/parse-args.js";
import type { GroupedCommand } from "./options/build-positional-command.js";
import { ignoreBrokenPipe, print } from "./display/output.js";

/** Every command; a new one is a file and a line. They are loaded when they are called. */
const commands: Readonly<Record<string, { readonly description: string; readonly load: () => Promise<CommandDef> }>> = {
  sft: {
    description: "Fine-tune a model on examples",
    load: async () => (await import("./commands/sft-command.js")).sftCommand,
  },
  train: {
    description: "Train a language model by reinforcement learning in an environment",
    load: async () => (await import("./commands/train-command.js")).trainCommand,
  },
  sweep: {
    description: "Try settings: train with each, with several seeds, and compare",
    load: async () => (await import("./commands/sweep-command.js")).sweepCommand,
  },
  demos: {
    description: "Play episodes and keep them as demonstrations",
    load: async () => (await import("./commands/demos-command.js")).demosCommand,
  },
  eval: {
    description: "Play many episodes with a model and tell its mean return",
    load: async () => (await import("./commands/eval-command.js")).evalCommand,
  },
  generate: {
    description: "Generate text with a model, or chat with it",
    load: async () => (await import("./commands/generate-command.js")).generateCommand,
  },
  models: {
    description: "List the models that can be used, and which fit this machine",
    load: async () => (await import("./commands/models-command.js")).modelsCommand,
  },
  doctor: {
    description: "Check this machine: devices, memory, cache, network, versions",
    load: async () => (await import("./commands/doctor-command.js")).doctorCommand,
  },
  envs: {
    description: "List the environments, describe one, or serve one",
    load: async () => (await import("./commands/envs-command.js")).envsCommand,
  },
  play: {
    description: "Play an environment at the keyboard",
    load: async () => (await import("./commands/play-command.js")).playCommand,
  },
};

const { version, description } = createRequire(import.meta.url)("../../../package.json") as {
  version: string;
  description: string;
};

const main = defineCommand({
  meta: { name: "llamagym", version, description },
  subCommands: Object.fromEntries(
    Object.entries(commands).map(([name, { description }]) => [name, defineCommand({ meta: { name, description } })]),
  ),
}) as CommandDef;

const isHelpFlag = (arg: string) => arg === "--help" || arg === "-h";

async function run(args: readonly string[]): Promise<void> {
  const [name, ...rest] = args;
  if (name === undefined || isHelpFlag(name) || name === "help") return showHelp(name === "help" ? rest[0] : undefined);
  if (name === "--version" || name === "-v" || name === "-V") return print(version);
  const command = await loadCommand(name);
  const terminator = rest.includes("--") ? rest.indexOf("--") : rest.length;
  if (rest.slice(0, terminator).some(isHelpFlag)) return showUsage(command, main);
  await runCommand(command, { rawArgs: rest });
}

async function showHelp(name: string | undefined): Promise<void> {
  if (name === undefined) return showUsage(main);
  return showUsage(await loadCommand(name), main);
}

async function showUsage(command: GroupedCommand, parent?: CommandDef): Promise<void> {
  if (command.help !== undefined) return print(renderHelp(command.help, process.stdout.columns));
  const usage = (await renderUsage(command, parent)).replace(/ +$/gm, "");
  print(process.stdout.isTTY ? usage : stripVTControlCharacters(usage));
}

async function loadCommand(name: string): Promise<CommandDef> {
  if (Object.hasOwn(commands, name)) return commands[name].load();
  if (name.startsWith("-"))
    throw new UsageError(`A command comes first, not ${name}. Commands: ${Object.keys(commands).join(", ")}.`);
  const nearest = findNearestName(name, Object.keys(commands));
  const advice =
    nearest === undefined ? `Commands: ${Object.keys(commands).join(", ")}.` : `Did you mean "${nearest}"?`;
  throw new UsageError(`There is no command "${name}". ${advice}`);
}

/** One line for an error; where it came from only with --debug. */
function formatError(error: unknown, debug: boolean): string {
  if (debug && error instanceof Error) return error.stack ?? String(error);
  if (error instanceof LlamaGymError) return error.toString().replaceAll("\n", " ");
  return `${String(error).replaceAll("\n", " ")} (--debug shows where)`;
}

const args = process.argv.slice(2);
const debug = args.includes("--debug");

function exitWithError(error: unknown): never {
  process.stderr.write(`${formatError(error, debug)}\n`);
  process.exit(error instanceof UsageError ? 2 : 1);
}

ignoreBrokenPipe();
process.on("uncaughtException", exitWithError);
await run(args.filter((arg) => arg !== "--debug")).catch(exitWithError);
