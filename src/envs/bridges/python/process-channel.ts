import { spawn, type ChildProcessByStdio } from "node:child_process";
import type { Socket } from "node:net";
import type { Readable, Writable } from "node:stream";
import type { JsonValue } from "../../../core/json.js";
import { asJsonObject, bridgeError, type Channel, type JsonObject, formatJson, truncateText } from "../channel.js";
import { LineReader } from "./line-reader.js";

/** Characters of the last output that an error message includes. */
const MAX_STDERR_LENGTH = 4000;
const MAX_STDERR_IN_ERROR = 1200;
/** Time for a process to close its environment before it is killed, in milliseconds. */
const CLOSE_TIMEOUT_MS = 2000;

export interface ProcessOptions {
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  /** Call timeout in milliseconds. */
  readonly timeout: number;
}

interface PendingCall {
  readonly id: number;
  readonly resolve: (reply: JsonObject) => void;
  readonly reject: (error: Error) => void;
}

/**
 * A child process that replies to JSON lines with JSON lines. A process that exits, sends anything else or times out
 * is killed, and every later call fails with its standard error. It exits with its standard input, so it
 * does not outlive this process, and an idle one does not keep this process alive.
 */
export class ProcessChannel implements Channel {
  readonly name: string;
  private readonly child: ChildProcessByStdio<Writable, Readable, Readable>;
  private readonly timeout: number;
  private queue: Promise<unknown> = Promise.resolve();
  private pending: PendingCall | undefined;
  private nextCallId = 0;
  private said = "";
  private failure: Error | undefined;
  private readonly exited: Promise<void>;

  constructor({ name, command, args, environment, timeout }: ProcessOptions) {
    this.name = name;
    this.timeout = timeout;
    this.child = spawn(command, args, {
      stdio: ["pipe", "pipe", "pipe"],
      env: { ...process.env, ...environment },
      windowsHide: true,
    });
    const { child } = this;
    const lines = new LineReader(
      (line) => this.receive(line),
      () => this.fail("sent a line without an end."),
    );
    child.stdout.on("data", (data: Buffer) => lines.push(data));
    child.stderr
      .setEncoding("utf8")
      .on("data", (text: string) => (this.said = (this.said + text).slice(-MAX_STDERR_LENGTH)));
    // The "close" event reports an exited process.
    child.stdin.on("error", () => {});
    child.on("error", (error) => this.fail(`could not be started by "${command}": ${error.message}.`, error));
    this.exited = new Promise((resolve) => {
      child.on("error", () => resolve());
      child.on("close", (code, signal) => {
        this.fail(signal === null ? `ended with status ${code}.` : `was ended by ${signal}.`);
        resolve();
      });
    });
    this.setReferenced(false);
  }

  call(method: string, params: JsonObject, timeout = this.timeout): Promise<JsonValue> {
    const result = this.queue.then(() => this.send(method, params, timeout));
    this.queue = result.catch(() => {});
    return result;
  }

  async close(): Promise<void> {
    if (this.failure === undefined && this.pending === undefined) {
      await this.call("close", {}, CLOSE_TIMEOUT_MS).catch(() => {});
    }
    this.failure ??= bridgeError(this.name, "was closed.");
    this.pending?.reject(this.failure);
    this.child.kill("SIGKILL");
    this.child.ref();
    await this.exited;
  }

  private async send(method: string, params: JsonObject, timeout: number): Promise<JsonValue> {
    if (this.failure !== undefined) throw this.failure;
    const id = this.nextCallId++;
    this.setReferenced(true);
    const timer = setTimeout(() => this.fail(`did not answer ${method} within ${timeout} ms.`), timeout);
    try {
      const reply = await new Promise<JsonObject>((resolve, reject) => {
        this.pending = { id, resolve, reject };
        this.child.stdin.write(`${JSON.stringify({ id, method, params })}\n`);
      });
      return this.readResult(method, reply);
    } finally {
      clearTimeout(timer);
      this.pending = undefined;
      this.setReferenced(false);
    }
  }

  private readResult(method: string, reply: JsonObject): JsonValue {
    const error = asJsonObject(reply.error);
    if (error === undefined) return reply.result ?? null;
    const { type, message, traceback } = error;
    const traceText = typeof traceback === "string" && traceback !== "" ? `\n${traceback.trimEnd()}` : "";
    throw bridgeError(
      this.name,
      `failed in ${method}: ${formatJson(type ?? "error")}: ${formatJson(message)}`,
      traceText.trim() || undefined,
    );
  }

  private receive(line: string): void {
    let reply: JsonObject | undefined;
    try {
      reply = asJsonObject(JSON.parse(line));
    } catch {
      reply = undefined;
    }
    const isReply = reply !== undefined && ("result" in reply || asJsonObject(reply.error) !== undefined);
    if (!isReply) this.fail(`sent what is no answer: ${truncateText(line)}`);
    else if (this.pending === undefined || reply?.id !== this.pending.id)
      this.fail(`answered what was not asked: ${truncateText(line)}`);
    else this.pending.resolve(reply);
  }

  /** Kills the process; the pending call and all later ones fail with the first error. */
  private fail(problem: string, cause?: unknown): void {
    if (this.failure !== undefined) return;
    const stderr = this.said.trim();
    const stderrNote = stderr === "" ? "" : ` Its last words: ${stderr.slice(-MAX_STDERR_IN_ERROR)}`;
    this.failure = bridgeError(this.name, `${problem}${stderrNote}`, cause);
    this.child.kill("SIGKILL");
    this.pending?.reject(this.failure);
  }

  /** Sets whether Node.js waits for the process. */
  private setReferenced(isReferenced: boolean): void {
    const method = isReferenced ? "ref" : "unref";
    this.child[method]();
    for (const stream of [this.child.stdin, this.child.stdout, this.child.stderr])
      (stream as unknown as Socket)[method]?.();
  }
}
