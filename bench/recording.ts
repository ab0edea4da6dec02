import type { Bench, BenchCase } from "./framework.js";

/** Pairs of runs with equal seeds, one with and one without recorded rollouts. Count: 1. */
export type RecordingWork = {
  work: "pairs";
  pairs: number;
  /** Arguments of `llamagym train`. */
  args: string[];
};

const pairCase = (name: string, args: string): BenchCase => ({
  name,
  parameters: { work: "pairs", pairs: 10, args: args.split(" ") } satisfies RecordingWork,
  metric: { kind: "seconds" },
  warmup: 0,
  maxRuns: 1,
});

export const bench: Bench = {
  name: "recording",
  description:
    "Pairs of training runs of the embedded model with `--rollouts samples` (the default) and `--rollouts none`, side by side with " +
    "one thread each: processor seconds of a recorded run; also what recording adds to processor time and time, in percent of the run " +
    "without it (mean over the pairs with its standard error), and the share of `time/recording` in the recorded runs.",
  ours: { module: "ours/recording.js", arguments: () => [] },
  peers: {},
  cases: [
    pairCase("blackjack_ppo", "blackjack --turns 16384"),
    pairCase("frozenlake_grpo", "frozenlake --algorithm grpo --episodes 4096"),
    pairCase("cartpole_ppo", "cartpole --turns 4096"),
  ],
};
