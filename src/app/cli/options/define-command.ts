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
  /** Follows the error about an argument without an option, for a command that takes none. */
  readonly argumentAdvice?: string;
  /** Options of other commands that this one does not have, with what to do about it. */
  readonly unsupported?: Readonly<Record<string, string>>;
  /**
   * Returns the options with the defaults that a run with the given options would use, for the
   * help.
   */
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
  const { name, options, unsupported = {}, describeDefaults = (table) => table } = definition;
  return {
    help: (args) => ({ ...definition, options: describeDefaults(options, parseCommandArgs(options, args).values) }),
    run: async (args, reporter) => {
      checkSupported(name, unsupported, args);
      const parsed = parseCommandArgs(options, args);
      checkPositionals(definition, parsed.positionals);
      checkRequiredOptions(options, parsed.values);
      try {
        return await definition.run(parsed.values, reporter, parsed.positionals);
      } finally {
        reporter.endInterrupts();
      }
    },
  };
}

function checkSupported(command: string, unsupported: Readonly<Record<string, string>>, args: readonly string[]): void {
  const names = args.flatMap((arg) => /^--(?:no-)?([^=]+)/u.exec(arg)?.slice(1).map(toOptionName) ?? []);
  const found = names.find((name) => Object.hasOwn(unsupported, name));
  if (found !== undefined) throw new UsageError(`llamagym ${command} has no --${found}: ${unsupported[found]}.`);
}

function checkPositionals(
  {
    positionals: expected = [],
    options,
    argumentAdvice,
  }: Omit<CommandDefinition<SettingTable>, "run" | "describeDefaults">,
  given: readonly string[],
): void {
  const missing = expected.find(({ required }, i) => required && given[i] === undefined);
  if (missing !== undefined) throw new UsageError(`${missing.name} is missing: ${missing.description}`);
  const hasRest = expected.at(-1)?.repeated === true;
  if (hasRest || given.length <= expected.length) return;
  const [firstOption] = Object.keys(options);
  const advice =
    argumentAdvice ?? (expected.length > 0 ? "" : `Options begin with dashes, such as --${toOptionName(firstOption)}.`);
  throw new UsageError(`Unexpected argument "${given[expected.length]}". ${advice}`.trimEnd());
}
