import { LlamaGymError } from "../../../core/errors.js";
import type { JsonObject } from "../channel.js";

/**
 * What llamagym's servers say of an environment besides OpenEnv's own words, in the schema of actions under this name:
 * `{ protocol, observationSpace, actionSpace, renderModes, systemPrompt, actionNames }`.
 */
export const EXTENSION_KEY = "x-llamagym";
/** Changes when what stands in it does. */
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

/** How an error goes over the wire. */
export function errorReply(message: string, code: OpenEnvErrorCode): JsonObject {
  return { type: "error", data: { message, code } };
}

/** Longer messages are refused; 100 MB is OpenEnv's own limit. */
export const MAX_MESSAGE_BYTES = 100 * 2 ** 20;

/** Whether an error is the client's fault. */
export function isClientError(error: unknown): boolean {
  return error instanceof LlamaGymError && ["ENV_ACTION_INVALID", "INVALID_ARGUMENT"].includes(error.code);
}
