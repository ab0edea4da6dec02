import { LlamaGymError } from "../../core/errors.js";
import type { JsonValue } from "../../core/json.js";

export type JsonObject = { readonly [name: string]: JsonValue };

/** The way to an environment that lives elsewhere. Calls are answered one after the other. */
export interface Channel {
  /** What errors call it. */
  readonly name: string;
  /** @throws ENV_FAILED when no answer comes, or one that says so. */
  call(method: string, params: JsonObject): Promise<JsonValue>;
  close(): Promise<void>;
}

/** The error for an environment elsewhere that does not do what it should. */
export function bridgeError(name: string, problem: string, cause?: unknown): LlamaGymError {
  return new LlamaGymError("ENV_FAILED", `${name} ${problem}`, { cause });
}

/** @throws INVALID_ARGUMENT unless it is a number of milliseconds above 0. */
export function checkTimeoutMs(name: string, value: number): number {
  // A timer of Node takes no more.
  if (value > 0 && value < 2 ** 31) return value;
  throw new LlamaGymError("INVALID_ARGUMENT", `${name} must be milliseconds above 0 and below 2^31, got ${value}.`);
}

/** The object in a piece of JSON; undefined when it is something else. */
export function asJsonObject(json: unknown): JsonObject | undefined {
  return typeof json === "object" && json !== null && !Array.isArray(json) ? (json as JsonObject) : undefined;
}

/** At most `length` characters of a text, for an error message. */
export function truncateText(text: string, length = 200): string {
  return text.length > length ? `${text.slice(0, length)}...` : text;
}

/** A piece of JSON in an error message: text as it is. */
export function formatJson(json: JsonValue | undefined): string {
  return typeof json === "string" ? json : (JSON.stringify(json) ?? "nothing");
}
