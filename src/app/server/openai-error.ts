import type { RequestError } from "./request-error.js";
import type { ServerEvent } from "./wire-format.js";

const TYPES: Readonly<Record<number, string>> = {
  401: "authentication_error",
  403: "permission_error",
  404: "not_found_error",
  429: "rate_limit_error",
};

/** Formats an error as OpenAI's API does. */
export function formatOpenAiError({ status, message, code, param }: RequestError): object {
  const type = TYPES[status] ?? (status < 500 ? "invalid_request_error" : "server_error");
  return { error: { message, type, param: param ?? null, code: code ?? null } };
}

/** Formats an error of a stream as OpenAI's API does. */
export function openAiErrorEvent(error: RequestError): ServerEvent {
  return { data: JSON.stringify(formatOpenAiError(error)) };
}
