import { fork, spawn, type ChildProcess, type ChildProcessWithoutNullStreams } from "node:child_process";
import { fileURLToPath } from "node:url";

/** The built command, as a user runs it. */
export const COMMAND_PATH = fileURLToPath(new URL("../../dist/app/cli/bin.js", import.meta.url));

export interface CommandResult {
  /** null if a signal ended the process. */
  readonly status: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly out: string;
  readonly err: string;
}

interface HostResult extends CommandResult {
  /** Number of writes to standard output. */
  readonly writeCount: number;
}

type Kill = (signal: NodeJS.Signals) => void;

export interface CommandOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  /** All of standard input. */
  readonly input?: string;
  /** The start of standard input, which then stays open. */
  readonly initialInput?: string;
  /** Called with all of standard error so far. */
  readonly onStderr?: (err: string, kill: Kill) => void;
  /** Called with all of standard output so far. */
  readonly onStdout?: (out: string, kill: Kill, child: ChildProcessWithoutNullStreams) => void;
}

/** Starts `llamagym` without W&B. */
export function startCommand(
  args: readonly string[],
  { env = {}, cwd }: Pick<CommandOptions, "env" | "cwd"> = {},
): ChildProcessWithoutNullStreams {
  return spawn(process.execPath, [COMMAND_PATH, ...args], {
    cwd,
    env: { ...process.env, WANDB_PROJECT: "", NO_COLOR: "1", ...env },
  });
}

/** Runs `llamagym` to its end. */
export async function runCommand(args: readonly string[], options: CommandOptions = {}): Promise<CommandResult> {
  const { input, initialInput, onStderr, onStdout } = options;
  const child = startCommand(args, options);
  const kill: Kill = (signal) => void child.kill(signal);
  let out = "";
  let err = "";
  child.stdout.on("data", (data: Buffer) => {
    out += data.toString();
    onStdout?.(out, kill, child);
  });
  child.stderr.on("data", (data: Buffer) => {
    err += data.toString();
    onStderr?.(err, kill);
  });
  child.stdin.on("error", () => {});
  if (initialInput !== undefined) child.stdin.write(initialInput);
  else child.stdin.end(input ?? "");
  return new Promise((resolve) => child.on("close", (status, signal) => resolve({ status, signal, out, err })));
}

/** Options for a command that gets `signal` as soon as it writes `text` to standard error. */
export function interruptAt(text: string, signal: NodeJS.Signals): Pick<CommandOptions, "env"> {
  const preload = fileURLToPath(new URL("interrupt-at-output.mjs", import.meta.url));
  return { env: { NODE_OPTIONS: `--import ${preload}`, INTERRUPT_AT: text, INTERRUPT_SIGNAL: signal } };
}

let host: ChildProcess | undefined;
let settle: (result: HostResult | Error) => void = () => {};
let lastCall: Promise<unknown> = Promise.resolve();

function startHost(): ChildProcess {
  const path = fileURLToPath(new URL("command-host.mjs", import.meta.url));
  const child = fork(path, { env: { ...process.env, WANDB_PROJECT: "", NO_COLOR: "1" } });
  child.on("message", (result) => settle(result as HostResult));
  child.on("exit", (status) => {
    if (child === host) settle(new Error(`The host of commands exited with status ${status}.`));
  });
  child.unref();
  child.channel?.unref();
  return child;
}

/** Ends the process of `runInHost`, which the next call starts again. */
export function closeHost(): void {
  host?.disconnect();
  host = undefined;
}

/**
 * Runs `llamagym` in a process that this test file keeps, one call after another: for everything
 * that is not about the process itself, such as signals, crashes and its end.
 */
export async function runInHost(
  args: readonly string[],
  { cwd, env, input }: Pick<CommandOptions, "env" | "cwd" | "input"> = {},
): Promise<HostResult> {
  const call = lastCall.then(async () => {
    host ??= startHost();
    const answer = new Promise<HostResult | Error>((resolve) => (settle = resolve));
    host.send({ args, cwd, env, input });
    const result = await answer;
    if (result instanceof Error) throw result;
    return result;
  });
  lastCall = call.catch(() => {});
  return call;
}
