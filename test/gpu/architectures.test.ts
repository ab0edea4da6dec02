import { fileURLToPath } from "node:url";
import { beforeAll, describe, expect, it } from "vitest";
import { RandomStream } from "../../src/core/random/random-stream.js";
import type { Tensor } from "../../src/engine/tensor/tensor.js";
import { Sampler } from "../../src/generation/sampling/sampler.js";
import { getPeftModel } from "../../src/models/adapters/get-peft-model.js";
import { supportedModelTypes } from "../../src/models/architectures/index.js";
import { CausalLM } from "../../src/models/causal-lm.js";
import type { PolicyNodes } from "../../src/models/graphs/policy-nodes.js";
import {
  type LossResult,
  ScoringGraph,
  type TokenScores,
  TrainingGraph,
} from "../../src/models/graphs/training-graph.js";
import { grpoInputs } from "../../src/rl/algorithms/grpo/loss-inputs.js";
import { grpoLoss } from "../../src/rl/algorithms/grpo/loss.js";
import { resolveGrpoConfig } from "../../src/rl/algorithms/grpo/settings.js";
import { ppoLoss } from "../../src/rl/algorithms/ppo/loss.js";
import { resolvePpoConfig } from "../../src/rl/algorithms/ppo/settings.js";
import { crossEntropyLoss, withUnusedValues } from "../../src/rl/algorithms/sft/loss.js";
import { lossNodes, tokenInputs } from "../../src/rl/algorithms/shared/loss-nodes.js";
import { floatVector } from "../../src/rl/algorithms/shared/sequence-nodes.js";
import { readJson } from "../../src/core/files/json-file.js";
import { whyNoGpu } from "../support/gpu.js";
import { writeRandomModel } from "../support/random-model.js";
import { request } from "../support/sampler.js";

const reason = await whyNoGpu();

const ROWS = [
  [20, 21, 22],
  [11, 3, 17, 9],
];
const batch = {
  groups: [{ prefix: [5, 6, 7, 8], rows: ROWS }],
  selected: ROWS.flatMap((row, i) => row.map((_, index) => ({ group: 0, row: i, index }))),
};
const random = new RandomStream(2);
const COUNT = batch.selected.length;
const draw = (scale: number) => Float64Array.from({ length: COUNT }, () => scale * random.normal());
const [shift, advantages, returns, weights] = [draw(0.05), draw(1), draw(1), draw(1).map(Math.abs)];

interface Loss {
  readonly objective: (policy: PolicyNodes) => LossResult;
  /** Inputs for what the CPU has scored. */
  readonly inputs: (scores: TokenScores) => Record<string, Tensor>;
}

const oldLogProbs = ({ logProbs }: TokenScores) => Float64Array.from(logProbs, (value, i) => value + shift[i]);
const grpoConfig = resolveGrpoConfig({ beta: 0.05, entropyCoef: 0.01 });

const LOSSES: Readonly<Record<string, Loss>> = {
  PPO: {
    objective: (policy) => ppoLoss(lossNodes(policy), resolvePpoConfig({ entropyCoef: 0.01 })),
    inputs: (scores) => {
      const columns = { oldLogProbs: oldLogProbs(scores), oldValues: scores.values!, advantages, returns };
      return tokenInputs([columns], { tokens: COUNT });
    },
  },
  GRPO: {
    objective: (policy) => {
      const result = grpoLoss(policy, grpoConfig);
      return { ...result, loss: withUnusedValues(result.loss, policy) };
    },
    inputs: (scores) => {
      let start = 0;
      const sequences = ROWS.map(({ length }) => {
        const of = (values: ArrayLike<number>) => Array.from(values).slice(start, start + length);
        const sequence = {
          oldLogProbs: of(oldLogProbs(scores)),
          refLogProbs: of(scores.logProbs.map((value, i) => value - shift[i])),
          advantages: of(advantages),
        };
        start += length;
        return sequence;
      });
      return grpoInputs(sequences, grpoConfig);
    },
  },
  SFT: { objective: crossEntropyLoss, inputs: () => ({ weights: floatVector(weights) }) },
};

/**
 * A software device compiles for minutes, so that CI computes one loss of one layer of the
 * architecture with the most kinds of operations; LLAMAGYM_TEST_DEVICE=webgpu computes all losses
 * of two layers of all architectures.
 */
const isComplete = process.env.LLAMAGYM_TEST_DEVICE === "webgpu";
const losses = isComplete ? Object.keys(LOSSES) : ["SFT"];
const modelTypes = isComplete ? supportedModelTypes.map((type) => type.replace("_text", "")) : ["gemma3"];

/** Writes a random model of one layer, or of two. */
async function writeModel(modelType: string) {
  const path = fileURLToPath(new URL(`../fixtures/models/${modelType}/config.json`, import.meta.url));
  const config = (await readJson(path)) as Readonly<Record<string, unknown>>;
  const layers = isComplete ? 2 : 1;
  const perLayer = Object.entries(config).filter(([, value]) => Array.isArray(value) && value.length === 2);
  const shortened = perLayer.map(([name, value]) => [name, (value as unknown[]).slice(-layers)]);
  const counts = { num_hidden_layers: layers, n_layer: layers };
  return writeRandomModel({
    config: { ...config, ...Object.fromEntries(shortened), ...counts },
    withTokenizer: false,
    scale: 0.2,
  });
}

/** Log-probabilities, sampled tokens and, of each loss, the gradient of each tensor. */
async function compute(folder: string, device: "cpu" | "webgpu", known?: TokenScores) {
  const base = await CausalLM.open(folder, { device, threads: 1 });
  const valueHead = { kind: "linear", dropout: 0 } as const;
  const model = await getPeftModel(base, { r: 4, targetModules: "all-linear", valueHead });
  const { parameters, runtime } = model;
  const values = new RandomStream(9);
  await runtime.write(
    parameters.values,
    Float32Array.from({ length: parameters.count }, () => values.normal(0, 0.1)),
  );
  const scores = await (await ScoringGraph.create(model, { entropy: "value" })).run(batch);
  const sampler = await Sampler.create(model);
  const sampled = await sampler.sample(request([5, 6, 7, 8, 9], 1, { maxNewTokens: 3 }));
  const results: Record<string, { loss: number; gradients: Map<string, Float32Array> }> = {};
  for (const name of losses) {
    const { objective, inputs } = LOSSES[name];
    const graph = await TrainingGraph.create(model, objective, { entropy: name === "SFT" ? "none" : "gradient" });
    const { loss } = await graph.run(batch, inputs(known ?? scores));
    const gradients = new Map<string, Float32Array>();
    for (const parameter of parameters.names) gradients.set(parameter, await parameters.readGradient(parameter));
    results[name] = { loss: loss.data[0], gradients };
  }
  await model.close();
  return { scores, sampled, losses: results };
}

/** Largest difference. */
function distance(actual: ArrayLike<number>, expected: ArrayLike<number>): number {
  expect(actual.length).toBe(expected.length);
  return Array.from(expected, (value, i) => Math.abs(value - actual[i])).reduce((a, b) => Math.max(a, b), 0);
}

describe.skipIf(reason !== undefined).each(modelTypes)(
  `%s on the GPU${reason === undefined ? "" : ` (${reason})`}`,
  (modelType) => {
    let [cpu, gpu]: Awaited<ReturnType<typeof compute>>[] = [];
    beforeAll(async () => {
      const { folder, remove } = await writeModel(modelType);
      cpu = await compute(folder, "cpu");
      gpu = await compute(folder, "webgpu", cpu.scores);
      await remove();
    }, 600_000);

    it("scores and samples as the CPU does", () => {
      const names = ["logProbs", "entropy", "values"] as const;
      expect(names.filter((name) => distance(gpu.scores[name]!, cpu.scores[name]!) >= 1e-4)).toEqual([]);
      expect(gpu.sampled.tokens).toEqual(cpu.sampled.tokens);
      expect(distance(gpu.sampled.logProbs, cpu.sampled.logProbs)).toBeLessThan(1e-4);
    });

    it.each(losses)("has the CPU's loss and gradients of %s", (name) => {
      const [actual, expected] = [gpu.losses[name], cpu.losses[name]];
      expect(Math.abs(actual.loss - expected.loss)).toBeLessThan(1e-4);
      const differing = [...expected.gradients].filter(([parameter, values]) => {
        const largest = values.reduce((a, b) => Math.max(a, Math.abs(b)), 0);
        return !(distance(actual.gradients.get(parameter)!, values) <= 1e-4 * largest);
      });
      expect(differing.map(([parameter]) => parameter)).toEqual([]);
    });
  },
);
