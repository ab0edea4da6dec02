import { describeIssue, issuesOf } from "./schema-issue.js";

/** What can go wrong, as codes that a program can test for. */
export type ErrorCode =
  | "INVALID_ARGUMENT"
  | "INVALID_STATE"
  | "SHAPE_MISMATCH"
  | "DEVICE_UNAVAILABLE"
  | "RUNTIME_FAILED"
  | "FILE_NOT_FOUND"
  | "FILE_CORRUPT"
  | "FILE_READ_FAILED"
  | "FILE_WRITE_FAILED"
  | "FOLDER_IN_USE"
  | "FORMAT_UNSUPPORTED"
  | "MODEL_UNSUPPORTED"
  | "WEIGHTS_MISMATCH"
  | "TOKENIZER_UNSUPPORTED"
  | "TEMPLATE_FAILED"
  | "TEMPLATE_LIMIT"
  | "CONTEXT_OVERFLOW"
  | "HUB_NOT_FOUND"
  | "HUB_UNAUTHORIZED"
  | "HUB_UNREACHABLE"
  | "HUB_OFFLINE"
  | "TRACKING_FAILED"
  | "SERVICE_FAILED"
  | "ENV_UNKNOWN"
  | "ENV_INVALID"
  | "ENV_ACTION_INVALID"
  | "ENV_NOT_RESET"
  | "ENV_FAILED"
  | "AGENT_FAILED"
  | "AGENT_NO_ACTION"
  | "DEMONSTRATION_REJECTED"
  | "REWARD_FAILED"
  | "ALGORITHM_FAILED"
  | "TRAINING_DIVERGED"
  | "RUN_INCOMPATIBLE";

/**
 * The one error class of the library. The message names the thing, what was expected and what to
 * do; the code is for programs.
 */
export class LlamaGymError extends Error {
  override readonly name = "LlamaGymError";
  readonly code: ErrorCode;

  constructor(code: ErrorCode, message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.code = code;
  }

  override toString(): string {
    return `LlamaGymError [${this.code}]: ${this.message}`;
  }
}

/** Returns the message of a thrown value, for the end of another message. */
export function errorMessage(error: unknown): string {
  const issues = issuesOf(error);
  if (issues !== undefined) return describeIssue(issues);
  return error instanceof Error ? error.message : String(error);
}

export function invalidArgument(message: string): LlamaGymError {
  return new LlamaGymError("INVALID_ARGUMENT", message);
}

/** An ENV_INVALID error, for an environment that breaks the rules of the API. */
export function invalidEnv(message: string, cause?: unknown): LlamaGymError {
  return new LlamaGymError("ENV_INVALID", message, { cause });
}
