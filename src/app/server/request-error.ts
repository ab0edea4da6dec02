import { LlamaGymError, type ErrorCode } from "../../core/errors.js";
import { DROP_OLDEST_ADVICE } from "../../generation/index.js";
import { HttpError } from "../../core/platform/node/http/http-error.js";

/** Details of a `RequestError`. */
export interface RequestErrorOptions {
  /** Code for programs, such as "model_not_found". */
  readonly code?: string;
  /** The field of the request that is wrong. */
  readonly param?: string;
  /** Seconds after which the client may try again. */
  readonly retryAfter?: number;
  readonly cause?: unknown;
}

/** An error of a request, which is shown in the shape of the client's API. */
export class RequestError extends HttpError {
  override readonly name = "RequestError";
  readonly code: string | undefined;
  readonly param: string | undefined;
  readonly retryAfter: number | undefined;

  /** `status` is the HTTP status. */
  constructor(status: number, message: string, { code, param, retryAfter, cause }: RequestErrorOptions = {}) {
    super(status, message, { cause });
    this.code = code;
    this.param = param;
    this.retryAfter = retryAfter;
  }
}

/** Returns the error of a request whose client has left. */
export function clientClosedError(): RequestError {
  return new RequestError(499, "The client closed the connection.");
}

/** Codes of errors that the request causes. */
const CLIENT_ERRORS: readonly ErrorCode[] = [
  "INVALID_ARGUMENT",
  "TEMPLATE_FAILED",
  "TEMPLATE_LIMIT",
  "TOKENIZER_UNSUPPORTED",
  "SHAPE_MISMATCH",
];

/**
 * Converts any error to a `RequestError`; what the client did not cause becomes status 500 without
 * details.
 */
export function toRequestError(error: unknown): RequestError {
  if (error instanceof RequestError) return error;
  if (error instanceof HttpError) return new RequestError(error.status, error.message, { cause: error });
  if (error instanceof LlamaGymError) {
    const { message, code, cause } = error;
    if (code === "CONTEXT_OVERFLOW") {
      const overflow = message.replace(DROP_OLDEST_ADVICE, "");
      return new RequestError(400, overflow, { code: "context_length_exceeded", cause });
    }
    if (CLIENT_ERRORS.includes(code)) return new RequestError(400, message, { code: code.toLowerCase(), cause });
  }
  return new RequestError(500, "The server failed to answer the request; its log has the reason.", { cause: error });
}
