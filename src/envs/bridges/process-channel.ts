import { spawn, type ChildProcessByStdio } from "node:child_process";
import type { Socket } from "node:net";
import type { Readable, Writable } from "node:stream";
import type { JsonValue } from "../json.js";
import { asObject, bridgeFailed, type Channel, type JsonObject, plainText, shorten } from "./channel.js";
import { LineReader } from "./line-reader.js";

/** How much of what a process said last goes into an error. */
const STDERR_KEPT = 4000;
const STDERR_SHOWN = 1200;
/** How long a process may take to close its environment before it is ended. */
const CLOSE_TIMEOUT = 2000;

export interface ProcessOptions {
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  /** Milliseconds that a call may take. */
  readonly timeout: number;
}

interface PendingCall {
  readonly id: number;
  readonly resolve: (reply: JsonObject) => void;
  readonly reject: (error: Error) => void;
}

/**
 * A child process that answers lines of JSON with lines of JSON. One that dies, says something else or does not answer
 * is ended, and every later call fails with what it said on standard error. It ends when its standard input does, so it
 * does not outlive this process; and waiting for nothing it does not keep this process alive.
 */
export class ProcessChannel implements Channel {
  readonly name: string;
  private readonly child: ChildProcessByStdio<Writable, Readable, Readable>;
  private readonly timeout: number;
  private queue: Promise<unknown> = Promise.resolve();
  private pending: PendingCall | undefined;
  private calls = 0;
  private said = "";
  private failure: Error | undefined;
  private readonly ended: Promise<void>;

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
    child.stderr.setEncoding("utf8").on("data", (text: string) => (this.said = (this.said + text).slice(-STDERR_KEPT)));
    // A process that has gone is told by its "close".
    child.stdin.on("error", () => {});
    child.on("error", (error) => this.fail(`could not be started by "${command}": ${error.message}.`, error));
    this.ended = new Promise((resolve) => {
      child.on("error", () => resolve());
      child.on("close", (code, signal) => {
        this.fail(signal === null ? `ended with status ${code}.` : `was ended by ${signal}.`);
        resolve();
      });
    });
    this.keepAlive(false);
  }

  call(method: string, params: JsonObject, timeout = this.timeout): Promise<JsonValue> {
    const answer = this.queue.then(() => this.send(method, params, timeout));
    this.queue = answer.catch(() => {});
    return answer;
  }

  async close(): Promise<void> {
    if (this.failure === undefined && this.pending === undefined) {
      await this.call("close", {}, CLOSE_TIMEOUT).catch(() => {});
    }
    this.failure ??= bridgeFailed(this.name, "was closed.");
    this.pending?.reject(this.failure);
    this.child.kill("SIGKILL");
    this.child.ref();
    await this.ended;
  }

  private async send(method: string, params: JsonObject, timeout: number): Promise<JsonValue> {
    if (this.failure !== undefined) throw this.failure;
    const id = this.calls++;
    this.keepAlive(true);
    const timer = setTimeout(() => this.fail(`did not answer ${method} within ${timeout} ms.`), timeout);
    try {
      const reply = await new Promise<JsonObject>((resolve, reject) => {
        this.pending = { id, resolve, reject };
        this.child.stdin.write(`${JSON.stringify({ id, method, params })}\n`);
      });
      return this.resultOf(method, reply);
    } finally {
      clearTimeout(timer);
      this.pending = undefined;
      this.keepAlive(false);
    }
  }

  private resultOf(method: string, reply: JsonObject): JsonValue {
    const error = asObject(reply.error);
    if (error === undefined) return reply.result ?? null;
    const { type, message, traceback } = error;
    const where = typeof traceback === "string" && traceback !== "" ? `\n${traceback.trimEnd()}` : "";
    throw bridgeFailed(
      this.name,
      `failed in ${method}: ${plainText(type ?? "error")}: ${plainText(message)}`,
      where.trim() || undefined,
    );
  }

  private receive(line: string): void {
    let reply: JsonObject | undefined;
    try {
      reply = asObject(JSON.parse(line));
    } catch {
      reply = undefined;
    }
    const isReply = reply !== undefined && ("result" in reply || asObject(reply.error) !== undefined);
    if (!isReply) this.fail(`sent what is no answer: ${shorten(line)}`);
    else if (this.pending === undefined || reply?.id !== this.pending.id)
      this.fail(`answered what was not asked: ${shorten(line)}`);
    else this.pending.resolve(reply);
  }

  /** Ends the process; the call that waits and all later ones fail with the first reason. */
  private fail(problem: string, cause?: unknown): void {
    if (this.failure !== undefined) return;
    const said = this.said.trim();
    const told = said === "" ? "" : ` Its last words: ${said.slice(-STDERR_SHOWN)}`;
    this.failure = bridgeFailed(this.name, `${problem}${told}`, cause);
    this.child.kill("SIGKILL");
    this.pending?.reject(this.failure);
  }

  /** Whether Node waits for the process. */
  private keepAlive(isKept: boolean): void {
    const change = isKept ? "ref" : "unref";
    this.child[change]();
    for (const stream of [this.child.stdin, this.child.stdout, this.child.stderr])
      (stream as unknown as Socket)[change]?.();
  }
}
