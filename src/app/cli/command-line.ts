import { basename, relative } from "node:path";
import { fileURLToPath } from "node:url";

const MAIN_PATH = fileURLToPath(new URL("./main.js", import.meta.url));

/** Returns a command line that runs llamagym where this process runs: through npx when installed, else by its path. */
export function formatCommandLine(args: string): string {
  const script = process.argv.at(1) ?? MAIN_PATH;
  const isInstalled = basename(script) === "llamagym" || /[\\/]node_modules[\\/]/.test(MAIN_PATH);
  return `${isInstalled ? "npx llamagym" : `node ${quoteArg(relative(process.cwd(), MAIN_PATH))}`} ${args}`;
}

/** Quotes an argument for a POSIX shell where it needs to be. */
export function quoteArg(arg: string): string {
  return /^[\w@%+=:,./-]+$/.test(arg) ? arg : `'${arg.replaceAll("'", "'\\''")}'`;
}
