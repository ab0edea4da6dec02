// Runs commands one after another in this process, so that the modules are loaded once. See
// `runInHost` in command.ts.
import { Readable } from "node:stream";
import { fileURLToPath } from "node:url";
import { runCommandLine } from "../../dist/app/cli/run-command-line.js";
import { Reporter } from "../../dist/app/cli/reporter.js";

// Commands that are printed for the user name the program that runs.
process.argv[1] = fileURLToPath(new URL("../../dist/app/cli/bin.js", import.meta.url));

/**
 * Replaces variables of the real environment, which `os.homedir()` and native libraries also read.
 */
function setVariables(variables) {
  for (const [name, value] of Object.entries(variables))
    if (value === undefined) delete process.env[name];
    else process.env[name] = value;
}

async function run({ args, cwd, env = {}, input = "" }) {
  const previousEnv = Object.fromEntries(Object.keys(env).map((name) => [name, process.env[name]]));
  const previousFolder = process.cwd();
  const written = { stdout: "", stderr: "" };
  let writeCount = 0;
  const streams = Object.keys(written).map((name) => ({ name, write: process[name].write }));
  setVariables(env);
  if (cwd !== undefined) process.chdir(cwd);
  Object.defineProperty(process, "stdin", { value: Readable.from(input === "" ? [] : [input]), configurable: true });
  for (const { name } of streams)
    process[name].write = (data) => {
      written[name] += data;
      if (name === "stdout") writeCount++;
      return true;
    };
  const reporter = new Reporter(args.includes("--debug"));
  const withoutDebug = args.filter((arg) => arg !== "--debug");
  const status = await runCommandLine(withoutDebug, reporter).catch((error) => reporter.fail(error));
  for (const { name, write } of streams) process[name].write = write;
  process.chdir(previousFolder);
  setVariables(previousEnv);
  return { status, signal: null, out: written.stdout, err: written.stderr, writeCount };
}

process.on("message", async (request) => process.send(await run(request)));
