import { defineCommand, type ArgsDef, type CommandDef } from "citty";
import {
  helpArguments,
  parseOptions,
  splitPositionals,
  UsageError,
  type OptionTable,
  type OptionValues,
} from "./options.js";

/** What a command takes besides options, in order. */
export interface Positional {
  readonly name: string;
  readonly description: string;
  readonly required: boolean;
}

/** A command with arguments that have no names before them. */
export function positionalCommand<const Table extends OptionTable>(
  name: string,
  description: string,
  positionals: readonly Positional[],
  options: Table,
  run: (values: OptionValues<Table>, given: readonly string[]) => Promise<number>,
): CommandDef {
  const named = positionals.map(({ name, description }) => [
    name,
    // What is missing is told below, as for options.
    { type: "positional" as const, description, required: false },
  ]);
  return defineCommand({
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
}
