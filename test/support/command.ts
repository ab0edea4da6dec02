import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";

/** The built command, as a user runs it. */
const COMMAND_PATH = fileURLToPath(new URL("../../dist/app/cli/main.js", import.meta.url));

export interface CommandResult {
  /** null where a signal ended it. */
  readonly status: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly out: string;
  readonly err: string;
}

export interface CommandOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  /** Called with all that was written to standard error so far; gives the signals to send. */
  readonly onStderr?: (err: string, kill: (signal: NodeJS.Signals) => void) => void;
}

/** Runs `llamagym` with arguments to its end, without standard input and without W&B. */
export async function runCommand(
  args: readonly string[],
  { env = {}, cwd, onStderr }: CommandOptions = {},
): Promise<CommandResult> {
  const child = spawn(process.execPath, [COMMAND_PATH, ...args], {
    cwd,
    env: { ...process.env, WANDB_PROJECT: "", NO_COLOR: "1", ...env },
  });
  let out = "";
  let err = "";
  child.stdout.on("data", (data: Buffer) => (out += data.toString()));
  child.stderr.on("data", (data: Buffer) => {
    err += data.toString();
    onStderr?.(err, (signal) => void child.kill(signal));
  });
  child.stdin.end();
  return new Promise((resolve) => child.on("close", (status, signal) => resolve({ status, signal, out, err })));
}
