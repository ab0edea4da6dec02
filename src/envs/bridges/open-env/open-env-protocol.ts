import type { RawData } from "ws";
import { LlamaGymError } from "../../../core/errors.js";
import type { JsonObject } from "../../../core/json.js";

/**
 * Key of llamagym's extension in the action schema:
 * `{ protocol, observationSpace, actionSpace, renderModes, systemPrompt, actionNames }`.
 */
export const EXTENSION_KEY = "x-llamagym";
/** Version of the extension's format. */
export const EXTENSION_VERSION = 1;

/** Error codes that OpenEnv servers send. */
type OpenEnvErrorCode =
  | "INVALID_JSON"
  | "UNKNOWN_TYPE"
  | "VALIDATION_ERROR"
  | "EXECUTION_ERROR"
  | "CAPACITY_REACHED"
  | "FACTORY_ERROR"
  | "SESSION_ERROR";

export function errorReply(message: string, code: OpenEnvErrorCode): JsonObject {
  return { type: "error", data: { message, code } };
}

/** Returns whether the client caused an error. */
export function isClientError(error: unknown): boolean {
  return (
    error instanceof LlamaGymError && ["ENV_ACTION_INVALID", "ENV_NOT_RESET", "INVALID_ARGUMENT"].includes(error.code)
  );
}

/** Decodes a WebSocket message. */
export function decodeMessage(data: RawData): string {
  return (Array.isArray(data) ? Buffer.concat(data) : Buffer.from(data as Buffer)).toString("utf8");
}

/** A reply over HTTP, with a JSON body or none. */
export interface HttpReply {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: JsonObject;
}
