// Runs commands one after another in this process, so that the modules are loaded once. See `runInHost` in command.ts.
import { runCommandLine } from "../../dist/app/cli/run-command-line.js";
import { Reporter } from "../../dist/app/cli/reporter.js";

async function run({ args, cwd, env }) {
  const [previousEnv, previousFolder] = [process.env, process.cwd()];
  const written = { stdout: "", stderr: "" };
  const streams = Object.keys(written).map((name) => ({ name, write: process[name].write }));
  process.env = { ...previousEnv, ...env };
  if (cwd !== undefined) process.chdir(cwd);
  for (const { name } of streams) process[name].write = (data) => ((written[name] += data), true);
  const reporter = new Reporter();
  const status = await runCommandLine(args, reporter).catch((error) => reporter.fail(error));
  for (const { name, write } of streams) process[name].write = write;
  process.chdir(previousFolder);
  process.env = previousEnv;
  return { status, signal: null, out: written.stdout, err: written.stderr, chunkCount: 0 };
}

process.on("message", async (request) => process.send(await run(request)));
