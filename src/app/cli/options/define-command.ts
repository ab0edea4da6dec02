import type { GivenSettings, SettingTable } from "../../../core/settings.js";
import type { Reporter } from "../reporter.js";
import { toOptionName } from "./option-names.js";
import { checkRequiredOptions, parseCommandArgs } from "./parse-args.js";
import type { Example, HelpPage, Positional } from "./render-help.js";
import { UsageError } from "./usage-error.js";

interface CommandDefinition<Table extends SettingTable> {
  readonly name: string;
  readonly description: string;
  readonly examples?: readonly Example[];
  readonly positionals?: readonly Positional[];
  readonly options: Table;
  /** Whether the short help shows only the options that are common. Default false. */
  readonly showsCommonOptions?: boolean;
  readonly notes?: readonly string[];
  /** Returns the options with the defaults that a run with the given options would use, for the help. */
  readonly describeDefaults?: (options: Table, values: GivenSettings<Table>) => Table;
  /** Returns the exit status. */
  run(values: GivenSettings<Table>, reporter: Reporter, positionals: readonly string[]): Promise<number>;
}

export interface Command {
  /** Returns the help for a command line that may contain other options. */
  help(args: readonly string[]): HelpPage | Promise<HelpPage>;
  /** Parses arguments, runs the command and returns the exit status. */
  run(args: readonly string[], reporter: Reporter): Promise<number>;
}

export function defineCommand<const Table extends SettingTable>(definition: CommandDefinition<Table>): Command {
  const { positionals = [], options, describeDefaults = (table) => table } = definition;
  return {
    help: (args) => ({ ...definition, options: describeDefaults(options, parseCommandArgs(options, args).values) }),
    run: async (args, reporter) => {
      const parsed = parseCommandArgs(options, args);
      checkPositionals(positionals, parsed.positionals, options);
      checkRequiredOptions(options, parsed.values);
      try {
        return await definition.run(parsed.values, reporter, parsed.positionals);
      } finally {
        reporter.endInterrupts();
      }
    },
  };
}

function checkPositionals(expected: readonly Positional[], given: readonly string[], options: SettingTable): void {
  const missing = expected.find(({ required }, i) => required && given[i] === undefined);
  if (missing !== undefined) throw new UsageError(`${missing.name} is missing: ${missing.description}`);
  const hasRest = expected.at(-1)?.repeated === true;
  if (hasRest || given.length <= expected.length) return;
  const [firstOption] = Object.keys(options);
  const advice = expected.length > 0 ? "" : ` Options begin with dashes, such as --${toOptionName(firstOption)}.`;
  throw new UsageError(`Unexpected argument "${given[expected.length]}".${advice}`);
}
