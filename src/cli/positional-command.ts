import { defineCommand, type ArgsDef, type CommandDef } from "citty";
import type { HelpPage, OptionGroups, Positional } from "./help.js";
import {
  helpArguments,
  parseOptions,
  splitPositionals,
  UsageError,
  type OptionTable,
  type OptionValues,
} from "./options.js";

/** A command whose help has headings. */
export interface GroupedCommand extends CommandDef {
  readonly help?: HelpPage;
}

/** A command with arguments that have no names before them. `groups` puts its options under headings in the help. */
export function positionalCommand<const Table extends OptionTable>(
  name: string,
  description: string,
  positionals: readonly Positional[],
  options: Table,
  run: (values: OptionValues<Table>, given: readonly string[]) => Promise<number>,
  groups?: OptionGroups,
): GroupedCommand {
  const named = positionals.map(({ name, description }) => [
    name,
    // What is missing is told below, as for options.
    { type: "positional" as const, description, required: false },
  ]);
  const command = defineCommand({
    meta: { name, description },
    args: { ...(Object.fromEntries(named) as ArgsDef), ...helpArguments(options) },
    run: async ({ rawArgs }) => {
      const { positionals: given, rest } = splitPositionals(options, rawArgs);
      const values = parseOptions(options, rest);
      const missing = positionals.find(({ required }, i) => required && given[i] === undefined);
      if (missing !== undefined) throw new UsageError(`${missing.name} is missing: ${missing.description}.`);
      if (given.length > positionals.length)
        throw new UsageError(`"${given[positionals.length]}" is not expected here.`);
      process.exitCode = await run(values, given);
    },
  }) as CommandDef;
  return groups === undefined ? command : { ...command, help: { name, description, positionals, options, groups } };
}
