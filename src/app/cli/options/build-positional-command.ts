import { defineCommand, type ArgsDef, type CommandDef } from "citty";
import type { HelpPage, OptionGroups, Positional } from "./render-help.js";
import {
  toCittyArgs,
  parseCommandArgs,
  splitPositionals,
  UsageError,
  type OptionTable,
  type OptionValues,
} from "./parse-args.js";

/** A command whose help has headings. */
export interface GroupedCommand extends CommandDef {
  readonly help?: HelpPage;
}

/** A command with arguments that have no names before them. `groups` puts its options under headings in the help. */
export function buildPositionalCommand<const Table extends OptionTable>(
  name: string,
  description: string,
  positionals: readonly Positional[],
  options: Table,
  run: (values: OptionValues<Table>, positionalArgs: readonly string[]) => Promise<number>,
  groups?: OptionGroups,
): GroupedCommand {
  const positionalDefs = positionals.map(({ name, description }) => [
    name,
    // What is missing is told below, as for options.
    { type: "positional" as const, description, required: false },
  ]);
  const command = defineCommand({
    meta: { name, description },
    args: { ...(Object.fromEntries(positionalDefs) as ArgsDef), ...toCittyArgs(options) },
    run: async ({ rawArgs }) => {
      const { positionals: positionalArgs, rest } = splitPositionals(options, rawArgs);
      const values = parseCommandArgs(options, rest);
      const missing = positionals.find(({ required }, i) => required && positionalArgs[i] === undefined);
      if (missing !== undefined) throw new UsageError(`${missing.name} is missing: ${missing.description}.`);
      if (positionalArgs.length > positionals.length)
        throw new UsageError(`"${positionalArgs[positionals.length]}" is not expected here.`);
      process.exitCode = await run(values, positionalArgs);
    },
  }) as CommandDef;
  return groups === undefined ? command : { ...command, help: { name, description, positionals, options, groups } };
}
