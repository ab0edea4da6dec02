import { system } from "#platform";
import { Reporter } from "./reporter.js";
import { runCommandLine } from "./run-command-line.js";

/** A reader that closes the pipe early (`llamagym ... | head`) is no error. */
function ignoreBrokenPipe(): void {
  for (const stream of [process.stdout, process.stderr]) {
    stream.on("error", (error: NodeJS.ErrnoException) => {
      if (error.code === "EPIPE") process.exit(0);
      throw error;
    });
  }
}

const args = process.argv.slice(2);
const reporter = new Reporter(args.includes("--debug"));
const exitWithError = (error: unknown): never => process.exit(reporter.fail(error));

ignoreBrokenPipe();
process.on("uncaughtException", exitWithError);
const stopWatching = system.watchOpenWork(() => {
  const resume = reporter.resumeCommand === undefined ? "" : ` Resume with: ${reporter.resumeCommand}`;
  return `llamagym ${args.at(0) ?? ""} ended before it was complete: nothing is left that could complete what it waits for.${resume}`;
});
// Not awaited: Node.js itself warns of a module's await that never ends.
void runCommandLine(
  args.filter((arg) => arg !== "--debug"),
  reporter,
)
  .catch(exitWithError)
  .then((status) => {
    stopWatching();
    process.exitCode = status;
  });
