import { system } from "#platform";
import { LlamaGymError } from "../../core/errors.js";
import type { MaybePromise } from "../../core/maybe-promise.js";
import { resolveSettings } from "../../core/settings.js";
import { callSettings, type RolloutSettings } from "./rollout-settings.js";

/** The longest delay of setTimeout. */
const MAX_DELAY_MS = 2 ** 31 - 1;

interface PendingCall {
  readonly limitMs: number;
  deadline: number;
  readonly expire: () => void;
}

const pendingCalls = new Set<PendingCall>();
let timer: NodeJS.Timeout | undefined;
let timerDeadline = Infinity;

/**
 * Calls the user's code and rejects with `createError()` if its promise does not settle within
 * `seconds`; 0 waits forever, and nothing expires while a debugger is attached. The process stays
 * alive as long as the promise is pending. All pending calls share one timer, and a call that
 * returns a plain value needs none.
 */
export async function withTimeout<Result>(
  call: () => MaybePromise<Result>,
  seconds: number,
  createError: () => Error,
): Promise<Result> {
  const result = call();
  if (!isPromiseLike(result)) return result;
  return new Promise((resolve, reject) => {
    const limitMs = seconds > 0 ? seconds * 1000 : Infinity;
    const pending = { limitMs, deadline: performance.now() + limitMs, expire: () => reject(createError()) };
    const settle = () => {
      pendingCalls.delete(pending);
      if (pendingCalls.size === 0) stopTimer();
    };
    pendingCalls.add(pending);
    startTimer(pending.deadline);
    result.then(resolve, reject).then(settle, settle);
  });
}

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

function isPromiseLike<Result>(value: MaybePromise<Result>): value is Promise<Result> {
  return typeof (value as Partial<PromiseLike<Result>> | null | undefined)?.then === "function";
}

function startTimer(deadline: number): void {
  if (timer !== undefined && deadline >= timerDeadline) return;
  stopTimer();
  timerDeadline = deadline;
  timer = setTimeout(expireCalls, Math.min(MAX_DELAY_MS, Math.max(0, deadline - performance.now())));
}

function stopTimer(): void {
  clearTimeout(timer);
  timer = undefined;
  timerDeadline = Infinity;
}

function expireCalls(): void {
  stopTimer();
  const now = performance.now();
  for (const call of pendingCalls) {
    if (call.deadline > now) continue;
    if (!system.isDebuggerAttached()) {
      pendingCalls.delete(call);
      call.expire();
    } else call.deadline = now + call.limitMs;
  }
  if (pendingCalls.size > 0) startTimer(Math.min(...Array.from(pendingCalls, ({ deadline }) => deadline)));
}
