import { LlamaGymError } from "../../../core/errors.js";
/**
 * Key of llamagym's extension in the action schema:
 * `{ protocol, observationSpace, actionSpace, renderModes, systemPrompt, actionNames }`.
 */
export const EXTENSION_KEY = "x-llamagym";
/** Version of the extension's format. */
export const EXTENSION_VERSION = 1;
export function errorReply(message, code) {
    return { type: "error", data: { message, code } };
}
/** Returns whether the client caused an error. */
export function isClientError(error) {
    return (error instanceof LlamaGymError && ["ENV_ACTION_INVALID", "ENV_NOT_RESET", "INVALID_ARGUMENT"].includes(error.code));
}
/** Decodes a WebSocket message. */
export function decodeMessage(data) {
    return (Array.isArray(data) ? Buffer.concat(data) : Buffer.from(data)).toString("utf8");
}
