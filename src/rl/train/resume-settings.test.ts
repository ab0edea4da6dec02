import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { CountingRuns, recordRun } from "../../../test/support/counting-runs.js";
import type { SettingTable } from "../../core/settings.js";
import { VALUE_HEAD_DEFAULTS } from "../../engine/nn/value-head.js";
import { grpo, onlineDpo, ppo, reinforce, rloo } from "../algorithms/index.js";
import type { ConfiguredAlgorithm } from "../algorithms/define-algorithm.js";

let runs: CountingRuns;
beforeAll(async () => {
  runs = await CountingRuns.open();
});
afterAll(() => runs.close());

interface Subject {
  readonly create: (options: Record<string, unknown>) => ConfiguredAlgorithm;
  readonly settings: SettingTable;
  /** Options of all runs. */
  readonly options: Readonly<Record<string, unknown>>;
  /** Values of settings, other than switches, that may have a state. */
  readonly others?: readonly Readonly<Record<string, unknown>>[];
}

const subject = (
  algorithm: { readonly settings: SettingTable } & ((options: never) => ConfiguredAlgorithm),
  { options, others }: Pick<Subject, "options" | "others">,
): Subject => ({
  create: (given) => algorithm(given as never),
  settings: algorithm.settings,
  options,
  others,
});

const PAIRS = { batchSize: 4, numGenerations: 2, learningRate: 0.02, miniBatchSize: 6, entropyCoef: 0.01 };
const ITERATED = { numIterations: 2, warmupSteps: 4, weightDecay: 0.1 };
const SUBJECTS: Readonly<Record<string, Subject>> = {
  ppo: subject(ppo, {
    options: { batchSize: 12, miniBatchSize: 6, numPpoEpochs: 2, learningRate: 0.01, lrSchedulerType: "cosine" },
    others: [
      { explorationBonus: 0.1 },
      { valueWarmup: 2 },
      { targetKl: 0.001 },
      { entropyCoef: 0.1, entropySchedulerType: "linear" },
      { valueHeadLearningRate: 0.02 },
    ],
  }),
  grpo: subject(grpo, {
    options: { ...PAIRS, beta: 0.1 },
    others: [ITERATED, { topEntropyQuantile: 0.5 }, { maxResamples: 2 }, { grouping: "observation" }],
  }),
  rloo: subject(rloo, { options: PAIRS, others: [ITERATED] }),
  reinforce: subject(reinforce, { options: PAIRS, others: [ITERATED, { baseline: "group" }] }),
  onlineDpo: subject(onlineDpo, {
    options: { batchSize: 4, numGenerations: 2, learningRate: 0.02 },
    others: [{ lossType: "ipo" }],
  }),
};
/** Settings that a switch needs, so that it has an effect on a short run. */
const COMPANIONS: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  syncRefModel: { refModelSyncSteps: 3 },
  stateBaseline: { advantageLevel: "turn" },
  useAdaptiveEntropy: { entropyTarget: 0.5, entropyCoefDelta: 0.05 },
};

/** All switches of an algorithm in the position that is not the default, and the other settings. */
const listVariants = ({ settings, others = [] }: Subject) => [
  ...Object.entries(settings).flatMap(([name, { default: value }]) =>
    typeof value === "boolean" ? [{ [name]: !value, ...COMPANIONS[name] }] : [],
  ),
  ...others,
];

const cases = Object.entries(SUBJECTS).flatMap(([name, each]) =>
  listVariants(each).map((variant) => [name, JSON.stringify(variant), { ...each.options, ...variant }] as const),
);

describe("a run resumes with the numbers of an uninterrupted one", () => {
  it.each(cases)("with %s and %s", async (name, _, options) => {
    const setUp = (checkpointDir?: string) => {
      const algorithm = SUBJECTS[name].create(options);
      const valueHead = algorithm.hasCritic ? { ...VALUE_HEAD_DEFAULTS, dropout: 0 } : undefined;
      const limit = algorithm.hasCritic ? { turns: 36 } : { turns: undefined, episodes: 20 };
      return runs.setUp(
        { ...limit, checkpointDir, saveSteps: 1 },
        { agent: { algorithm }, peft: { valueHead }, env: { length: 3 } },
      );
    };
    const whole = await recordRun(await setUp());
    expect(whole.logs.length).toBeGreaterThan(2);
    const checkpointDir = await runs.createFolder();
    const begun = await recordRun(await setUp(checkpointDir), { updates: 1 });
    const resumed = await setUp(checkpointDir);
    expect(await resumed.trainer.resume()).toBe(1);
    const rest = await recordRun(resumed);
    expect([...begun.logs, ...rest.logs]).toEqual(whole.logs);
    expect(rest.values).toEqual(whole.values);
  });
});
