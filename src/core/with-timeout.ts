import { system } from "#platform";
import type { MaybePromise } from "./maybe-promise.js";

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
