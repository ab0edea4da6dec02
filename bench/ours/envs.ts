import { make, type Env, type ResetResult, type StepResult } from "../../src/envs.js";
import type { EnvsWork } from "../envs.js";
import { serve, timeRuns } from "../serve.js";

/** Plays the actions in turn; these environments are synchronous. */
function play(env: Env, actions: readonly unknown[]): void {
  for (const action of actions) {
    const { terminated, truncated } = env.step(action) as StepResult<unknown>;
    if (terminated || truncated) env.reset() as ResetResult<unknown>;
  }
}

await serve<EnvsWork>(async ({ id, steps, repeat }) => {
  const env = make(id);
  env.actionSpace.seed(0);
  const actions = Array.from({ length: steps }, () => env.actionSpace.sample());
  const seconds = await timeRuns(repeat, () => {
    env.reset({ seed: 0 }) as ResetResult<unknown>;
    play(env, actions);
  });
  return { seconds, count: steps };
});
