import { LlamaGymError } from "../../core/errors.js";
import type { MaybePromise } from "../../core/maybe-promise.js";
import { resolveSettings } from "../../core/settings.js";
import { withTimeout } from "../../core/with-timeout.js";
import { callSettings, type RolloutSettings } from "./rollout-settings.js";

/** The time limit of calls of the user's code. */
export type CallLimit = Pick<RolloutSettings, "callTimeoutSeconds">;

export const DEFAULT_CALL_LIMIT: CallLimit = resolveSettings("A call", callSettings, {});

/** What a call of the user's code is, for its error. */
interface UserCall {
  /** Names the call. */
  readonly subject: () => string;
  readonly code: "AGENT_FAILED" | "ENV_FAILED";
}

/**
 * Calls the user's code within the time limit of the settings. @throws `code` if its promise does
 * not settle in time.
 */
export async function limitCall<Result>(
  { callTimeoutSeconds: seconds }: CallLimit,
  call: () => MaybePromise<Result>,
  { subject, code }: UserCall,
): Promise<Result> {
  const advice = "Resolve its promise, or raise callTimeoutSeconds (0: no limit).";
  const createError = () => new LlamaGymError(code, `${describeTimeout(subject(), seconds)} ${advice}`);
  return withTimeout(call, seconds, createError);
}

export function describeTimeout(subject: string, seconds: number): string {
  return `${subject} did not settle within ${seconds} s.`;
}
