import { invalidArgument, LlamaGymError } from "../../core/errors.js";
import { excerpt } from "../../core/format.js";
import { isNestedDeeper, parseBoundedJson, type JsonObject, type JsonValue } from "../../core/json.js";
import { MAX_MESSAGE_DEPTH, MAX_MESSAGE_NODES } from "./limits.js";

/** A connection to a remote environment, one call at a time. */
export interface Channel {
  /** Name in error messages. */
  readonly name: string;
  /** @throws ENV_FAILED when there is no reply, or an error reply. */
  call(method: string, params: JsonObject): Promise<JsonValue>;
  close(): Promise<void>;
}

interface PendingCall {
  readonly id: number;
  readonly resolve: (reply: JsonObject) => void;
  readonly reject: (error: Error) => void;
}

/**
 * A connection whose replies come in the order of its calls. A call that times out, an unexpected
 * message or a lost connection ends it: the pending call and all later ones fail with the first
 * error.
 */
export abstract class SerialChannel implements Channel {
  protected pending: PendingCall | undefined;
  protected failure: Error | undefined;
  private queue: Promise<unknown> = Promise.resolve();
  private nextCallId = 0;

  constructor(
    readonly name: string,
    private readonly timeout: number,
  ) {}

  call(method: string, params: JsonObject, timeout = this.timeout): Promise<JsonValue> {
    const result = this.queue.then(() => this.exchange(method, params, timeout));
    this.queue = result.catch(() => {});
    return result;
  }

  abstract close(): Promise<void>;
  protected abstract send(id: number, method: string, params: JsonObject): void;
  /** Returns the result in a reply. @throws ENV_FAILED for an error reply. */
  protected abstract readResult(method: string, reply: JsonObject): JsonValue;
  /** Ends the connection at once. */
  protected abstract terminate(): void;

  /** Marks the channel as closed; calls fail from now on. */
  protected markClosed(): void {
    this.failure ??= bridgeError(this.name, "was closed.");
    this.pending?.reject(this.failure);
  }

  protected fail(problem: string, cause?: unknown): void {
    if (this.failure !== undefined) return;
    this.failure = bridgeError(this.name, problem, cause);
    this.pending?.reject(this.failure);
    this.terminate();
  }

  protected async exchange(method: string, params: JsonObject, timeout: number): Promise<JsonValue> {
    if (this.failure !== undefined) throw this.failure;
    const id = this.nextCallId++;
    const timer = setTimeout(() => this.fail(`did not answer ${method} within ${timeout} ms.`), timeout);
    try {
      const reply = await new Promise<JsonObject>((resolve, reject) => {
        this.pending = { id, resolve, reject };
        this.send(id, method, params);
      });
      return this.readResult(method, reply);
    } finally {
      clearTimeout(timer);
      this.pending = undefined;
    }
  }
}

/** Returns the error for a remote environment that failed. */
export function bridgeError(name: string, problem: string, cause?: unknown): LlamaGymError {
  return new LlamaGymError("ENV_FAILED", `${name} ${problem}`, { cause });
}

/** @throws INVALID_ARGUMENT unless the value is a number of milliseconds above 0. */
export function checkTimeoutMs(name: string, value = 60_000): number {
  // Maximum delay of a Node.js timer.
  if (value > 0 && value < 2 ** 31) return value;
  throw invalidArgument(`${name} must be milliseconds above 0 and below 2^31, got ${value}.`);
}

/**
 * Parses a message; undefined for text that is not JSON or is nested too deep for the readers of
 * messages.
 */
export function parseMessage(text: string): JsonValue | undefined {
  try {
    const json = parseBoundedJson(text, MAX_MESSAGE_NODES) as JsonValue;
    return isNestedDeeper(json, MAX_MESSAGE_DEPTH) ? undefined : json;
  } catch {
    return undefined;
  }
}

/** Formats a JSON value for an error message, truncated; strings unquoted. */
export function formatJson(json: JsonValue | undefined, length?: number): string {
  return excerpt(typeof json === "string" ? json : (JSON.stringify(json) ?? "nothing"), length);
}
