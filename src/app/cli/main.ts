import { system } from "#platform";
import { printWarning } from "../../core/terminal-text.js";
import { Reporter } from "./reporter.js";
import { runCommandLine } from "./run-command-line.js";

/** A reader that closes the pipe early (`llamagym ... | head`) is no error. */
function ignoreBrokenPipe(): void {
  for (const stream of [process.stdout, process.stderr]) {
    stream.on("error", (error: NodeJS.ErrnoException) => {
      if (error.code === "EPIPE") {
        process.off("exit", reportEarlyExit);
        process.exit(0);
      }
      throw error;
    });
  }
}

const args = process.argv.slice(2);
const reporter = new Reporter(args.includes("--debug"));
const exitWithError = (error: unknown): never => process.exit(reporter.fail(error));

ignoreBrokenPipe();
process.on("uncaughtException", exitWithError);

function describeEnd(reason: string): string {
  const resume = reporter.resumeCommand === undefined ? "" : ` Resume with: ${reporter.resumeCommand}`;
  return `llamagym ${args.at(0) ?? ""} ended before it was complete: ${reason}.${resume}`;
}

/** Tells a command that is not complete from one that succeeded. */
function reportEarlyExit(status: number): void {
  if (status !== 0) return;
  printWarning(describeEnd("code that it ran, such as the environment's, called process.exit()"));
  process.exitCode = 1;
}

const stopWatching = system.watchOpenWork(() => describeEnd("nothing is left that could complete what it waits for"));
process.on("exit", reportEarlyExit);
// Not awaited: Node.js itself warns of a module's await that never ends.
void runCommandLine(
  args.filter((arg) => arg !== "--debug"),
  reporter,
)
  .catch(exitWithError)
  .then((status) => {
    stopWatching();
    process.off("exit", reportEarlyExit);
    process.exitCode = status;
  });
