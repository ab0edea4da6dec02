import { defineConfig } from "vitest/config";

/** Tests that train, sample at length or start processes. `npm run test:quick` leaves them out, and those in test/. */
const SLOW_TESTS = [
  "src/app/runs/*.test.ts",
  "src/app/sweeps/run-sweep.test.ts",
  "src/engine/graph/ops/operations.test.ts",
  "src/engine/runtime/memory.test.ts",
  "src/envs/bridges/**/*.test.ts",
  "src/envs/solvers/experts.test.ts",
  "src/envs/vector/*.test.ts",
  "src/generation/constraints/**/*.test.ts",
  "src/generation/sampling/sampler.test.ts",
  "src/models/files/**/{hub-faults,corrupted-headers}.test.ts",
  "src/models/hostile-files.test.ts",
  "src/models/text/jinja/chat-template.test.ts",
  "src/rl/agent/{constrained-completions,trained-tokens}.test.ts",
  "src/rl/agent/demonstrations/*.test.ts",
  "src/rl/algorithms/{losses,policy-learner}.test.ts",
  "src/rl/algorithms/{ppo,sft,update}/*.test.ts",
  "src/rl/train/**/*.test.ts",
  "src/text-world/house/make-house.test.ts",
];

export default defineConfig(({ mode }) => ({
  test: {
    include: mode === "quick" ? ["src/**/*.test.ts"] : ["src/**/*.test.ts", "test/**/*.test.ts"],
    exclude: mode === "quick" ? SLOW_TESTS : [],
    testTimeout: 60_000,
    pool: "forks",
    maxWorkers: 2,
  },
}));
