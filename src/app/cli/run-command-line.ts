import { createRequire } from "node:module";
import { findNearestName } from "../../core/suggest.js";
import { COMMANDS, type CommandName } from "./command-list.js";
import { renderEntries, renderHelp } from "./options/render-help.js";
import { UsageError } from "./options/usage-error.js";
import type { Reporter } from "./reporter.js";

const { version, description } = createRequire(import.meta.url)("../../../package.json") as {
  version: string;
  description: string;
};

const HELP_FLAGS = ["--help", "-h", "--help-all"];
const VERSION_FLAGS = ["--version", "-v", "-V"];

/** Runs the command that the arguments name and returns its exit status. */
export async function runCommandLine([name, ...rest]: readonly string[], reporter: Reporter): Promise<number> {
  if (name !== undefined && VERSION_FLAGS.includes(name)) reporter.print(version);
  else if (name === undefined || HELP_FLAGS.includes(name)) reporter.print(renderOverview());
  else if (name === "help") await printHelp(rest, reporter);
  else {
    const command = await COMMANDS[parseCommandName(name)].load();
    const ownArgs = rest.includes("--") ? rest.slice(0, rest.indexOf("--")) : rest;
    if (!ownArgs.some((arg) => HELP_FLAGS.includes(arg))) return command.run(rest, reporter);
    await printHelp([name, ...rest], reporter);
  }
  return 0;
}

async function printHelp([name, ...args]: readonly string[], reporter: Reporter): Promise<void> {
  if (name === undefined) return reporter.print(renderOverview());
  const command = await COMMANDS[parseCommandName(name)].load();
  const page = await command.help(args.filter((arg) => !HELP_FLAGS.includes(arg)));
  reporter.print(renderHelp(page, args.includes("--help-all"), process.stdout.columns));
}

function renderOverview(): string {
  return [
    `${description}. Version ${version}.`,
    "",
    "Usage: llamagym COMMAND [options]",
    "",
    "Commands:",
    renderEntries(
      Object.entries(COMMANDS).map(([name, { summary }]) => [name, summary]),
      process.stdout.columns,
    ),
    "",
    "Run llamagym COMMAND --help for the options of a command.",
  ].join("\n");
}

function parseCommandName(name: string): CommandName {
  if (Object.hasOwn(COMMANDS, name)) return name as CommandName;
  const names = Object.keys(COMMANDS);
  if (name.startsWith("-"))
    throw new UsageError(`The command must come before ${name}. Commands: ${names.join(", ")}.`);
  const nearest = findNearestName(name, names);
  const advice = nearest === undefined ? `Commands: ${names.join(", ")}.` : `Did you mean "${nearest}"?`;
  throw new UsageError(`There is no command "${name}". ${advice}`);
}
