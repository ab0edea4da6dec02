import { toCittyArgs, parseCommandArgs, type OptionTable, type OptionValues } from "./parse-args.js";
import { defineCommand, type CommandDef } from "citty";

/** A command: its options, and what it does with them; the number that it gives is the process's exit status. */
export function buildCommand<const Table extends OptionTable>(
  name: string,
  description: string,
  options: Table,
  run: (values: OptionValues<Table>) => Promise<number>,
): CommandDef {
  return defineCommand({
    meta: { name, description },
    args: toCittyArgs(options),
    run: async ({ rawArgs }) => {
      process.exitCode = await run(parseCommandArgs(options, rawArgs));
    },
  });
}
