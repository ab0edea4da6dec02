import { LlamaGymError, invalidArgument } from "../../core/errors.js";
import type { JsonValue } from "../../core/json.js";

export type JsonObject = { readonly [name: string]: JsonValue };

/** A connection to a remote environment, one call at a time. */
export interface Channel {
  /** Name in error messages. */
  readonly name: string;
  /** @throws ENV_FAILED when there is no reply, or an error reply. */
  call(method: string, params: JsonObject): Promise<JsonValue>;
  close(): Promise<void>;
}

/** Returns the error for a remote environment that failed. */
export function bridgeError(name: string, problem: string, cause?: unknown): LlamaGymError {
  return new LlamaGymError("ENV_FAILED", `${name} ${problem}`, { cause });
}

/** @throws INVALID_ARGUMENT unless the value is a number of milliseconds above 0. */
export function checkTimeoutMs(name: string, value: number): number {
  // Maximum delay of a Node.js timer.
  if (value > 0 && value < 2 ** 31) return value;
  throw invalidArgument(`${name} must be milliseconds above 0 and below 2^31, got ${value}.`);
}

/** Parses a JSON object; undefined for anything else. */
export function asJsonObject(json: unknown): JsonObject | undefined {
  return typeof json === "object" && json !== null && !Array.isArray(json) ? (json as JsonObject) : undefined;
}

/** Truncates text for an error message. */
export function truncateText(text: string, length = 200): string {
  return text.length > length ? `${text.slice(0, length)}...` : text;
}

/** Formats a JSON value for an error message; strings unquoted. */
export function formatJson(json: JsonValue | undefined): string {
  return typeof json === "string" ? json : (JSON.stringify(json) ?? "nothing");
}
