import { LlamaGymError } from "../../../core/errors.js";
import type { JsonObject } from "../channel.js";

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

/** Formats an error reply. */
export function errorReply(message: string, code: OpenEnvErrorCode): JsonObject {
  return { type: "error", data: { message, code } };
}

/** Maximum message size; OpenEnv's limit is 100 MB. */
export const MAX_MESSAGE_BYTES = 100 * 2 ** 20;

/** Returns whether the client caused an error. */
export function isClientError(error: unknown): boolean {
  return error instanceof LlamaGymError && ["ENV_ACTION_INVALID", "INVALID_ARGUMENT"].includes(error.code);
}
