import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import type { Answer, Measurement, Parameters, Request } from "./framework.js";

export type SideCommand = { program: string; arguments: string[] };

const REQUEST_TIMEOUT_MS = 30 * 60 * 1000;
const MAX_STDERR_CHARS = 4000;

type PendingRequest = { resolve: (answer: Answer) => void; reject: (error: Error) => void };

/** One side of a bench in its own process, which runs one request at a time. */
export class Side {
  readonly #child: ChildProcessWithoutNullStreams;
  readonly #name: string;
  readonly #ended: Promise<void>;
  #errors = "";
  #pending: PendingRequest | undefined;
  /** Why the process ended, such as a kill for lack of memory between two requests. */
  #failure: Error | undefined;

  /** @param verbose shows what the process writes to standard error */
  constructor(name: string, command: SideCommand, verbose: boolean) {
    this.#name = name;
    this.#child = spawn(command.program, command.arguments, { stdio: ["pipe", "pipe", "pipe"] });
    this.#child.stderr.setEncoding("utf8").on("data", (text: string) => {
      if (verbose) process.stderr.write(text);
      this.#errors = (this.#errors + text).slice(-MAX_STDERR_CHARS);
    });
    createInterface({ input: this.#child.stdout }).on("line", (line) => this.#receive(line));
    // Writing to a process that has ended is reported by its exit, below.
    this.#child.stdin.on("error", () => undefined);
    // A side is never left running after the bench.
    const kill = () => this.#child.kill("SIGKILL");
    process.once("exit", kill);
    this.#child.once("close", () => process.removeListener("exit", kill));
    this.#ended = new Promise((resolve) => {
      this.#child.once("error", (error) => this.#fail(`cannot be started: ${error.message}`, resolve));
      this.#child.once("close", (code, signal) => this.#fail(`ended with ${signal ?? `exit code ${code}`}`, resolve));
    });
  }

  /**
   * Sends one request and waits for its answer. Throws when the side reports an error, ends or
   * takes half an hour.
   */
  async request(request: Request<Parameters>): Promise<Measurement> {
    if (this.#failure !== undefined) throw this.#failure;
    let timer: NodeJS.Timeout | undefined;
    const answer = await new Promise<Answer>((resolve, reject) => {
      this.#pending = { resolve, reject };
      timer = setTimeout(() => this.#child.kill("SIGKILL"), REQUEST_TIMEOUT_MS);
      this.#child.stdin.write(`${JSON.stringify(request)}\n`);
    }).finally(() => clearTimeout(timer));
    if ("error" in answer) throw new Error(`${this.#name}, case ${request.case}: ${answer.error}`);
    return answer;
  }

  /** Ends the process: its input closes, and it is killed if that is not enough. */
  async close(): Promise<void> {
    this.#child.stdin.end();
    const timer = setTimeout(() => this.#child.kill("SIGKILL"), 10_000);
    await this.#ended;
    clearTimeout(timer);
  }

  #receive(line: string): void {
    const pending = this.#pending;
    this.#pending = undefined;
    if (!pending) return;
    try {
      pending.resolve(JSON.parse(line) as Answer);
    } catch {
      pending.reject(new Error(`${this.#name} printed something else than an answer: ${line.slice(0, 200)}`));
    }
  }

  #fail(reason: string, done: () => void): void {
    this.#failure = new Error(`${this.#name} ${reason}\n${this.#errors.trim()}`);
    this.#pending?.reject(this.#failure);
    this.#pending = undefined;
    done();
  }
}
