import { configDefaults, defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";

/** Tests that train, sample at length or start processes. `npm run test:quick` leaves them out, and those in test/. */
const SLOW_TESTS = [
  "src/app/judge/episode-judge.test.ts",
  "src/app/runs/*.test.ts",
  "src/app/sweeps/run-sweep.test.ts",
  "src/engine/graph/ops/operations.test.ts",
  "src/engine/runtime/memory.test.ts",
  "src/envs/bridges/**/*.test.ts",
  "src/envs/solvers/experts.test.ts",
  "src/envs/vector/*.test.ts",
  "src/generation/constraints/**/*.test.ts",
  "src/generation/sampling/*.test.ts",
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

/** Tests that replace a module, which other tests in their process would get, too, or list all registered environments. */
const ISOLATED_TESTS = [
  "src/rl/algorithms/ppo/ppo.test.ts",
  "src/envs/documentation.test.ts",
  "src/envs/solvers/experts.test.ts",
];

/** Tests outside src/ that start no processes and change nothing global. */
const SHARED_TESTS = [
  "test/contracts/{architectures,operations,trackers}.test.ts",
  "test/{docs-settings,embedded-model,embedded-model-recipe,export,links,metrics-page}.test.ts",
  "test/parity/*.test.ts",
];

/** Files that run first, because a long file at the end would run alone. */
const LONG_TESTS = [
  "test/examples.test.ts",
  "test/dashboard-page.test.ts",
  "test/train-command.test.ts",
  "test/workers-command.test.ts",
  "test/clients.test.ts",
  "test/fuzz/fuzz.test.ts",
  "src/app/distributed/transports.test.ts",
  "src/app/sweeps/run-sweep.test.ts",
  "src/rl/train/trainer.test.ts",
];

/** Runs the long files first. */
class Sequencer extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const isLong = ({ moduleId }: TestSpecification) => LONG_TESTS.some((name) => moduleId.endsWith(`/${name}`));
    return (await super.sort(files)).toSorted((a, b) => Number(isLong(b)) - Number(isLong(a)));
  }
}

/** Unit tests share processes, so that a module is loaded once per process; `npm test` adds those in test/. */
export default defineConfig(({ mode }) => {
  const common = { testTimeout: 180_000, hookTimeout: 180_000, pool: "forks" as const };
  const excluded = [...configDefaults.exclude, ...(mode === "quick" ? SLOW_TESTS : ISOLATED_TESTS)];
  const include = ["src/**/*.test.ts", ...(mode === "quick" ? [] : SHARED_TESTS)];
  const unit = { ...common, name: "unit", include, exclude: excluded, isolate: false };
  const others = {
    include: ["test/**/*.test.ts", ...ISOLATED_TESTS],
    exclude: [...configDefaults.exclude, ...SHARED_TESTS],
    setupFiles: ["test/support/close-command-host.ts"],
  };
  const whole = { ...common, name: "whole", ...others };
  const projects = [{ test: unit }, ...(mode === "quick" ? [] : [{ test: whole }])];
  return { test: { maxWorkers: 2, sequence: { sequencer: Sequencer }, projects } };
});
