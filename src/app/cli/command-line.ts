import { basename, delimiter, dirname, relative } from "node:path";
import { fileURLToPath } from "node:url";

/** Path of the command. */
export const BIN_PATH = fileURLToPath(new URL("./bin.js", import.meta.url));

/** How package managers run the command of an installed package; npm by default. */
const RUNNERS: Readonly<Record<string, string>> = {
  pnpm: "pnpm exec llamagym",
  yarn: "yarn llamagym",
  bun: "bunx llamagym",
};

/** Returns a command line that runs llamagym as this process was started. */
export function formatCommandLine(args: string): string {
  return `${findProgram(process.argv.at(1) ?? BIN_PATH, process.env)} ${args}`;
}

/**
 * Returns the program of a process with this script: on the PATH, by a package manager, or by its
 * path in a clone.
 */
export function findProgram(
  script: string,
  { PATH = "", npm_config_user_agent: agent = "" }: NodeJS.ProcessEnv,
): string {
  const isLink = basename(script) === "llamagym";
  const isPackage = [script, BIN_PATH].some((path) => /[\\/]node_modules[\\/]/.test(path));
  if (isLink && !isPackage && PATH.split(delimiter).includes(dirname(script))) return "llamagym";
  if (isLink || isPackage) return RUNNERS[agent.split("/")[0]] ?? "npx llamagym";
  const relativePath = relative(process.cwd(), BIN_PATH);
  return `node ${quoteArg(relativePath.length < BIN_PATH.length ? relativePath : BIN_PATH)}`;
}

/** Quotes an argument for a POSIX shell where it needs to be. */
export function quoteArg(arg: string): string {
  return /^[\w@%+=:,./-]+$/.test(arg) ? arg : `'${arg.replaceAll("'", "'\\''")}'`;
}
