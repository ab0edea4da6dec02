import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { writeRandomModel } from "../../../test/support/random-model.js";
import { getPeftModel } from "../../models/adapters/get-peft-model.js";
import { CausalLM } from "../../models/causal-lm.js";
import type { PolicyNodes } from "../../models/graphs/policy-nodes.js";
import { ScoringGraph, TrainingGraph, type LossResult } from "../../models/graphs/training-graph.js";
import { Optimizer } from "../../engine/optim/index.js";
import type { Tensor } from "../../engine/tensor/tensor.js";
import { LOSS_TYPES, resolveGrpoConfig, type GrpoOptions } from "./grpo/settings.js";
import { grpoInputs } from "./grpo/loss-inputs.js";
import { grpoLoss } from "./grpo/loss.js";
import { resolvePpoConfig } from "./ppo/settings.js";
import { ppoLoss } from "./ppo/loss.js";
import { resolveReinforceConfig } from "./reinforce/settings.js";
import { reinforceLoss } from "./reinforce/loss.js";
import { lossNodes, tokenInputs } from "./shared/loss-nodes.js";
import { resolveRlooConfig } from "./rloo/settings.js";
import { rlooInputs, rlooLoss } from "./rloo/loss.js";

let base: CausalLM;
let remove: () => Promise<void>;
beforeAll(async () => {
  const model = await writeRandomModel({ withTokenizer: false });
  ({ remove } = model);
  base = await CausalLM.open(model.folder, { device: "cpu", threads: 1 });
});
afterAll(async () => {
  await base.close();
  await remove();
});

/** Three replies to one prompt: the first earned more than the others. */
const ROWS = [
  [20, 21, 22],
  [30, 31],
  [40, 41, 42, 43],
];
const EARNED = [1, -0.5, -0.5];
const batch = {
  groups: [{ prefix: [5, 6, 7, 8], rows: ROWS }],
  selected: ROWS.flatMap((row, i) => row.map((_, index) => ({ group: 0, row: i, index }))),
};
const LENGTHS = ROWS.map(({ length }) => length);
const spread = (values: readonly number[]) => LENGTHS.flatMap((length, i) => Array.from({ length }, () => values[i]));

interface Before {
  readonly logProbs: readonly number[];
  readonly values: readonly number[];
}

interface Algorithm {
  readonly objective: (policy: PolicyNodes) => LossResult;
  readonly inputs: (before: Before, advantages: readonly number[]) => Record<string, Tensor>;
}

const RETURN = 10;

const ppo: Algorithm = {
  objective: (policy) => ppoLoss(lossNodes(policy), resolvePpoConfig({ entropyCoef: 0.001, vfCoef: 1 })),
  inputs: ({ logProbs, values }, advantages) =>
    tokenInputs(
      [
        {
          oldLogProbs: Float64Array.from(logProbs),
          oldValues: Float64Array.from(values),
          advantages: spread(advantages),
          returns: values.map(() => RETURN),
        },
      ],
      { tokens: logProbs.length },
    ),
};

const reinforce: Algorithm = {
  objective: (policy) => reinforceLoss(lossNodes(policy), resolveReinforceConfig({ entropyCoef: 0.001 })),
  inputs: ({ logProbs }, advantages) =>
    tokenInputs([{ oldLogProbs: Float64Array.from(logProbs), advantages: spread(advantages) }], {
      tokens: logProbs.length,
    }),
};

const rloo: Algorithm = {
  objective: (policy) => rlooLoss(policy, resolveRlooConfig()),
  inputs: ({ logProbs }, advantages) =>
    rlooInputs(
      perRow(logProbs).map((row, i) => ({ length: row.length, oldLogProb: sum(row), advantage: advantages[i] })),
    ),
};

function grpo(options: GrpoOptions): Algorithm {
  const config = resolveGrpoConfig({ beta: 0.01, entropyCoef: 0.001, ...options });
  return {
    objective: (policy) => grpoLoss(policy, config),
    inputs: ({ logProbs }, advantages) => {
      const rows = perRow(logProbs).map((row, i) => ({
        oldLogProbs: row,
        refLogProbs: row,
        advantages: row.map(() => advantages[i]),
      }));
      return grpoInputs(rows, config);
    },
  };
}

const algorithms: Readonly<Record<string, Algorithm>> = {
  ppo,
  reinforce,
  rloo,
  ...Object.fromEntries(
    LOSS_TYPES.map((lossType) => [lossType, grpo({ lossType, ...(lossType === "cispo" ? { epsilonHigh: 5 } : {}) })]),
  ),
  gspo: grpo({ lossType: "grpo", importanceSamplingLevel: "sequence", offPolicyMaskThreshold: 1 }),
};

const sum = (values: ArrayLike<number>): number => Array.from(values).reduce((total, value) => total + value, 0);

function perRow(values: ArrayLike<number>): number[][] {
  const all = Array.from(values);
  let start = 0;
  return LENGTHS.map((length) => all.slice(start, (start += length)));
}

/** How far each reply's log-probability, and the values, moved in a few steps. */
async function train(algorithm: Algorithm, sign: 1 | -1): Promise<{ moved: number[]; values: number }> {
  const valueHead = algorithm === ppo ? ({ kind: "linear", dropout: 0 } as const) : undefined;
  const model = await getPeftModel(base, { r: 4, seed: 3, valueHead });
  const scoring = await ScoringGraph.create(model);
  const before = await scoring.run(batch);
  const training = await TrainingGraph.create(model, algorithm.objective, { entropy: "gradient" });
  const optimizer = new Optimizer(model.parameters, { learningRate: 5e-3 });
  const inputs = algorithm.inputs(
    { logProbs: Array.from(before.logProbs), values: Array.from(before.values ?? []) },
    EARNED.map((advantage) => sign * advantage),
  );
  for (let step = 0; step < 3; step++) {
    await training.run(batch, inputs);
    await optimizer.update();
  }
  const after = await scoring.run(batch);
  await scoring.release();
  await training.release();
  const [old, now] = [perRow(before.logProbs), perRow(after.logProbs)];
  return {
    moved: now.map((row, i) => sum(row) - sum(old[i])),
    values: sum(after.values ?? []) - sum(before.values ?? []),
  };
}

describe.each(Object.keys(algorithms))("%s in a model", (name) => {
  it("raises the better completion above the others, and the reverse with the sign flipped", async () => {
    const [right, wrong] = [await train(algorithms[name], 1), await train(algorithms[name], -1)];
    const [better, ...others] = right.moved;
    expect(better).toBeGreaterThan(Math.max(0, ...others));
    const [worse, ...rest] = wrong.moved;
    expect(worse).toBeLessThan(Math.min(0, ...rest));
    // All returns are above the values at the start.
    expect([right.values, wrong.values].map(Math.sign)).toEqual(name === "ppo" ? [1, 1] : [0, 0]);
  });
});
