import { excerpt } from "../../../core/format.js";
import { spawn, type ChildProcessByStdio } from "node:child_process";
import type { Socket } from "node:net";
import type { Readable, Writable } from "node:stream";
import { bridgeError, formatJson, parseMessage, SerialChannel } from "../channel.js";
import { type JsonObject, type JsonValue, asJsonObject } from "../../../core/json.js";
import { LineSplitter } from "../line-splitter.js";

/** Maximum length of a line in bytes: a large image as JSON. The process is the user's own. */
const MAX_LINE_BYTES = 2 ** 28;
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

/**
 * A child process that replies to JSON lines with JSON lines. Errors include the end of its
 * standard error. It exits with its standard input, so it does not outlive this process, and an
 * idle one does not keep this process alive.
 */
export class ProcessChannel extends SerialChannel {
  private readonly child: ChildProcessByStdio<Writable, Readable, Readable>;
  private stderr = "";
  private readonly lines = new LineSplitter(MAX_LINE_BYTES);
  private readonly exited: Promise<void>;

  constructor({ name, command, args, environment, timeout }: ProcessOptions) {
    super(name, timeout);
    const env = { ...process.env, ...environment };
    const child = spawn(command, args, { stdio: ["pipe", "pipe", "pipe"], env, windowsHide: true });
    this.child = child;
    child.stdout.on("data", (data: Buffer) => this.readLines(data));
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      this.stderr = (this.stderr + text).slice(-MAX_STDERR_IN_ERROR);
    });
    // The "close" event reports an exited process.
    child.stdin.on("error", () => {});
    this.exited = new Promise((resolve) => {
      child.on("error", (error) => {
        this.fail(`could not be started by "${command}": ${error.message}.`, error);
        resolve();
      });
      child.on("close", (code, signal) => {
        this.fail(signal === null ? `ended with status ${code}.` : `was ended by ${signal}.`);
        resolve();
      });
    });
    this.setReferenced(false);
  }

  override async close(): Promise<void> {
    if (this.failure === undefined && this.pending === undefined)
      await this.call("close", {}, CLOSE_TIMEOUT_MS).catch(() => {});
    this.markClosed();
    this.terminate();
    this.child.ref();
    await this.exited;
  }

  protected override async exchange(method: string, params: JsonObject, timeout: number): Promise<JsonValue> {
    this.setReferenced(true);
    try {
      return await super.exchange(method, params, timeout);
    } finally {
      this.setReferenced(false);
    }
  }

  protected override send(id: number, method: string, params: JsonObject): void {
    this.child.stdin.write(`${JSON.stringify({ id, method, params })}\n`);
  }

  protected override terminate(): void {
    this.child.kill("SIGKILL");
  }

  protected override readResult(method: string, reply: JsonObject): JsonValue {
    const error = asJsonObject(reply.error);
    if (error === undefined) return reply.result ?? null;
    const { type = "error", message, traceback } = error;
    const cause = typeof traceback === "string" && traceback.trim() !== "" ? traceback.trim() : undefined;
    throw bridgeError(this.name, `failed in ${method}: ${formatJson(type)}: ${formatJson(message, 4000)}`, cause);
  }

  protected override fail(problem: string, cause?: unknown): void {
    const stderr = this.stderr.trim();
    super.fail(stderr === "" ? problem : `${problem} The end of its standard error: ${stderr}`, cause);
  }

  private readLines(data: Buffer): void {
    for (const line of this.lines.push(data)) this.receive(line);
    if (this.lines.isTooLong) this.fail(`sent a line of more than ${MAX_LINE_BYTES} bytes.`);
  }

  private receive(line: string): void {
    const reply = asJsonObject(parseMessage(line));
    const isReply = reply !== undefined && ("result" in reply || asJsonObject(reply.error) !== undefined);
    if (!isReply) this.fail(`sent an invalid reply: ${excerpt(line)}`);
    else if (reply.id !== this.pending?.id) this.fail(`sent an unexpected reply: ${excerpt(line)}`);
    else this.pending?.resolve(reply);
  }

  /** Sets whether Node.js waits for the process. */
  private setReferenced(isReferenced: boolean): void {
    const method = isReferenced ? "ref" : "unref";
    this.child[method]();
    for (const stream of [this.child.stdin, this.child.stdout, this.child.stderr])
      (stream as unknown as Socket)[method]?.();
  }
}
