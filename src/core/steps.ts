import { yieldToEventLoop } from "#platform";

/**
 * Work that can be interrupted: a generator that yields after each bounded part and returns the
 * result.
 */
export type Steps<Result> = Generator<void, Result, void>;

/** Does all of the work at once. */
export function runSteps<Result>(steps: Steps<Result>): Result {
  for (;;) {
    const { done, value } = steps.next();
    if (done === true) return value;
  }
}

/** Time after which work pauses. */
const MAX_SLICE_MS = 5;

/** Does the work in slices of a few milliseconds, between which the event loop does other work. */
export async function runStepsWithPauses<Result>(steps: Steps<Result>): Promise<Result> {
  let start = performance.now();
  for (;;) {
    const { done, value } = steps.next();
    if (done === true) return value;
    if (performance.now() - start < MAX_SLICE_MS) continue;
    await yieldToEventLoop();
    start = performance.now();
  }
}
