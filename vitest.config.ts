import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { configDefaults, defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";

/**
 * Tests that train, sample at length or start processes. `npm run test:quick` leaves them out, and
 * those in test/.
 */
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

/**
 * Tests that replace a module, which other tests in their process would get, too, or list all
 * registered environments.
 */
const ISOLATED_TESTS = [
  "test/made-up-setting.test.ts",
  "src/rl/algorithms/ppo/ppo.test.ts",
  "src/app/runs/expect-to-learn.test.ts",
  "src/envs/documentation.test.ts",
  "src/envs/solvers/experts.test.ts",
  "test/contracts/environments.test.ts",
  "test/envs-command.test.ts",
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

/** Orders files: the long ones, the others, those with their own process. */
class Sequencer extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ project, moduleId }: TestSpecification) =>
      LONG_TESTS.some((name) => moduleId.endsWith(`/${name}`)) ? 0 : project.name === "isolated" ? 2 : 1;
    return (await super.sort(files)).toSorted((a, b) => rank(a) - rank(b));
  }
}

/** Test files share processes, so that a module is loaded once per process. */
export default defineConfig(({ mode }) => {
  const common = {
    testTimeout: 180_000,
    hookTimeout: 180_000,
    pool: "forks" as const,
    // Two test files run at once, so one of them, and the processes that it starts, get one thread
    // for inference.
    env: { OMP_NUM_THREADS: "1", LLAMAGYM_CACHE: join(tmpdir(), "llamagym-test-cache") },
    setupFiles: ["test/support/close-command-host.ts"],
    // A test whose expectations are all in a loop over nothing fails.
    expect: { requireAssertions: true },
  };
  const skipped = [...configDefaults.exclude, ...(mode === "quick" ? [...SLOW_TESTS, "test/**"] : [])];
  const shared = { ...common, name: "shared", include: ["{src,test}/**/*.test.ts"], isolate: false };
  const isolated = { ...common, name: "isolated", include: ISOLATED_TESTS, exclude: skipped };
  // The built files of package.json's imports would have classes and registries of their own.
  const source = (path: string) => fileURLToPath(new URL(`src/${path}`, import.meta.url));
  const alias = {
    "#compute-workers": source("engine/runtime/workers/node.ts"),
    "#env-bridges": source("envs/bridges/register-openers.ts"),
    "#onnxruntime": source("engine/runtime/onnxruntime/node.ts"),
  };
  const projects = [
    { resolve: { alias }, test: { ...shared, exclude: [...skipped, ...ISOLATED_TESTS] } },
    { resolve: { alias }, test: isolated },
  ];
  return { test: { maxWorkers: 2, sequence: { sequencer: Sequencer }, projects } };
});
