import { yieldToEventLoop } from "#platform";

/** Work that can be interrupted: a generator that yields after each bounded part and returns the result. */
export type Steps<Result> = Generator<void, Result, void>;

/** Does all of the work at once. */
export function runSteps<Result>(steps: Steps<Result>): Result {
  for (;;) {
    const { done, value } = steps.next();
    if (done === true) return value;
  }
}

/** Does the work with pauses, in which the event loop does other work. */
export async function runStepsWithPauses<Result>(steps: Steps<Result>): Promise<Result> {
  for (;;) {
    const { done, value } = steps.next();
    if (done === true) return value;
    await yieldToEventLoop();
  }
}
