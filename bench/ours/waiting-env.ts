import { setTimeout as sleep } from "node:timers/promises";
import { make, register } from "../../src/envs.js";

/**
 * Registers Blackjack whose turns wait as long as LLAMAGYM_BENCH_WAIT_MS, as environments that call
 * tools.
 */
register({
  id: "bench/Waiting-v0",
  entryPoint: () => {
    const env = make("Blackjack-v1");
    const step = env.step.bind(env);
    return Object.assign(env, {
      step: async (action: unknown) => {
        await sleep(Number(process.env.LLAMAGYM_BENCH_WAIT_MS));
        return step(action);
      },
    });
  },
});
