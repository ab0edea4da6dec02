import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startTinkerServer } from "../src/app/tinker/start-tinker-server.js";
import type { RunningServer } from "../src/app/server/http-server.js";
import { add, clip, exp, input, minimum, mul, neg, reduceSum, stopGradient, sub } from "../src/engine/graph/index.js";
import { float32, int32, tensor, type Tensor } from "../src/engine/tensor/index.js";
import { AutoModelForCausalLM, type LanguageModel } from "../src/generation/index.js";
import type { LossResult, PolicyNodes, TokenBatch } from "../src/models/graphs/index.js";
import { grpoInputs } from "../src/rl/algorithms/grpo/loss-inputs.js";
import { grpoLoss } from "../src/rl/algorithms/grpo/loss.js";
import { resolveGrpoConfig, type GrpoOptions } from "../src/rl/algorithms/grpo/settings.js";
import { constrainedPolicyNodes } from "../src/rl/algorithms/update/constrained-policy-nodes.js";
import { ServiceSession } from "../src/tinker/client/service-session.js";
import { probeService, type ServiceTraits } from "../src/tinker/probe-service.js";
import { TinkerPolicy } from "../src/tinker/tinker-policy.js";

const folder = await mkdtemp(join(tmpdir(), "tinker-losses-"));
let model: LanguageModel;
let server: RunningServer;
let traits: ServiceTraits;
const connection = () => ({ baseUrl: server.url, apiKey: "tml-test" });

beforeAll(async () => {
  model = await AutoModelForCausalLM.fromPretrained("embedded", { device: "cpu", threads: 1 });
  server = await startTinkerServer(model, { folder, modelName: "embedded", port: 0 });
  traits = await probeService(connection(), "embedded");
});

afterAll(async () => {
  await server.close();
  await model.close();
  await rm(folder, { recursive: true, force: true });
});

/** Two completions of a prompt and one of another: three sequences, eleven tokens. */
const groups = [
  {
    prefix: [5, 6, 7],
    rows: [
      [8, 9, 10, 11],
      [12, 13, 14],
    ],
  },
  { prefix: [20, 21], rows: [[22, 23, 24, 25]] },
];
const lengths = [4, 3, 4];
const COUNT = 11;
const batch: TokenBatch = {
  groups,
  selected: [
    [0, 0],
    [0, 1],
    [1, 0],
  ].flatMap(([group, row], i) => Array.from({ length: lengths[i] }, (_, index) => ({ group, row, index }))),
};

/** Sequences that are trained from the second token on. */
const wholeSequences: TokenBatch = {
  groups: [
    [5, 8, 9, 10, 11],
    [6, 12, 13, 14],
    [7, 22, 23, 24, 25],
  ].map(([first, ...rest]) => ({
    prefix: [],
    rows: [[first, ...rest]],
  })),
  selected: lengths.flatMap((length, group) =>
    Array.from({ length }, (_, index) => ({ group, row: 0, index: index + 1 })),
  ),
};

type Inputs = Readonly<Record<string, Tensor>>;
interface Case {
  readonly lossFn: (policy: PolicyNodes) => LossResult;
  /** Returns the inputs for log-probabilities near those of the policy. */
  readonly inputs: (old: readonly number[]) => Inputs;
  /** Default `batch`. */
  readonly tokens?: TokenBatch;
}

const ADVANTAGES = [0.5, 0.5, -1.5, 2, 1, -0.25, -1, 0.75, 3, -2, 1];
const sampled = (old: readonly number[]): Inputs => ({ oldLogProbs: float32(old), advantages: float32(ADVANTAGES) });

function ofGrpo(options: GrpoOptions): Case {
  const config = resolveGrpoConfig({ ...options, maxCompletionLength: 4 });
  const split = <Value>(values: readonly Value[]) =>
    lengths.map((length, i) => {
      const start = lengths.slice(0, i).reduce((sum, each) => sum + each, 0);
      return values.slice(start, start + length);
    });
  return {
    lossFn: (policy) => grpoLoss(policy, config),
    inputs: (old) => {
      const advantages = split(ADVANTAGES);
      const sequences = split(old).map((oldLogProbs, i) => ({
        oldLogProbs,
        advantages: advantages[i],
        refLogProbs: oldLogProbs.map((value) => value - 0.1),
      }));
      return grpoInputs(sequences, config);
    },
  };
}

const perToken = ({ selected }: PolicyNodes, name: string) => input(name, "float32", [selected]);
const ratioOf = (policy: PolicyNodes) => exp(sub(policy.logProbs, perToken(policy, "oldLogProbs")));

const dro: Case = {
  lossFn: (policy) => {
    const distance = sub(policy.logProbs, perToken(policy, "oldLogProbs"));
    const gain = mul(policy.logProbs, perToken(policy, "advantages"));
    return { loss: reduceSum(sub(mul(0.05, mul(distance, distance)), gain)) };
  },
  inputs: sampled,
};

const CASES: Readonly<Record<string, Case>> = {
  cross_entropy: {
    lossFn: (policy) => ({ loss: reduceSum(mul(neg(policy.logProbs), perToken(policy, "weights"))) }),
    inputs: () => ({ weights: float32(ADVANTAGES) }),
  },
  importance_sampling: {
    lossFn: (policy) => ({ loss: reduceSum(mul(neg(ratioOf(policy)), perToken(policy, "advantages"))) }),
    inputs: sampled,
  },
  ppo: ofGrpo({ lossType: "bnpo", epsilon: 0.2, epsilonHigh: 0.28 }),
  cispo: ofGrpo({ lossType: "cispo", epsilonHigh: 1.5 }),
  dro: { ...dro, tokens: wholeSequences },
};

/** Losses that no service has. */
const OTHERS: Readonly<Record<string, Case>> = {
  "the KL to a reference": ofGrpo({ lossType: "bnpo", beta: 0.1 }),
  "the ratio of a sequence": ofGrpo({ lossType: "grpo", importanceSamplingLevel: "sequence" }),
  "dro, which has a loss at the tokens of prompts": dro,
  sapo: ofGrpo({ lossType: "sapo" }),
  "two bounds for losses": ofGrpo({ lossType: "bnpo", delta: 1.5 }),
  "a bound that a token's neighbors have": {
    lossFn: (policy) => {
      const ratio = ratioOf(policy);
      const mean = stopGradient(mul(reduceSum(ratio), 1 / COUNT));
      const advantages = perToken(policy, "advantages");
      return { loss: reduceSum(neg(minimum(mul(ratio, advantages), mul(clip(add(ratio, mean), 0, 3), advantages)))) };
    },
    inputs: sampled,
  },
};

async function openPolicy(how: ServiceTraits): Promise<TinkerPolicy> {
  const form = { baseModel: "embedded", rank: 4, seed: 3, trainAttn: true, trainMlp: true, trainUnembed: false };
  const { vocabSize, maxPositions } = model.policy.config;
  const session = await ServiceSession.open(connection());
  return new TinkerPolicy({ session, form, vocabSize, maxPositions, probe: async () => how });
}

/** Takes two optimizer steps, the first of them after a gradient that is dropped. */
async function train({ lossFn, inputs, tokens = batch }: Case, how: ServiceTraits) {
  const policy = await openPolicy(how);
  const scorer = await policy.createScorer();
  const { logProbs } = await scorer.run(tokens);
  // Within the bounds and beyond them, for tokens of either sign.
  const given = inputs(Array.from(logProbs, (value, i) => value + [0, 0.1, -0.3, 0.4, -0.02][i % 5]));
  const trainer = await policy.createTrainer(lossFn);
  const optimizer = policy.createOptimizer({ learningRate: 1e-3, maxGradNorm: 1, weightDecay: 0 });
  const results: number[] = [];
  const run = async () => {
    const outputs = await trainer.run(tokens, given);
    results.push(...Object.values(outputs).flatMap(({ data }) => Array.from(data)));
  };
  await run();
  for (let step = 0; step < 2; step++) {
    await run();
    const { gradNorm } = await optimizer.update();
    policy.markParametersChanged();
    results.push(gradNorm);
  }
  const scores = await scorer.run(tokens);
  results.push(...scores.logProbs);
  const { usage, usedLosses } = policy;
  await policy.close();
  return { results, usedLosses, passes: usage.counts };
}

const maxDifference = (a: readonly number[], b: readonly number[]) => {
  expect(a).toHaveLength(b.length);
  return Math.max(...a.map((value, i) => Math.abs(value - b[i]) / Math.max(1, Math.abs(b[i]))));
};
const linear = () => ({ ...traits, losses: [], reduction: "sum" as const });

describe("a loss that the service has", () => {
  it.each(Object.keys(CASES))("%s is trained in one pass, and equals the linear one", async (name) => {
    const own = await train(CASES[name], traits);
    const other = await train(CASES[name], { ...linear(), reduction: name === "cross_entropy" ? undefined : "sum" });
    expect(own.usedLosses).toContain(name);
    expect(other.usedLosses).toEqual(["linear"]);
    expect(maxDifference(own.results, other.results)).toBeLessThan(1e-5);
  });

  it("saves the passes without a gradient", async () => {
    const scored = async (how: ServiceTraits) => {
      const policy = await openPolicy(how);
      const trainer = await policy.createTrainer(CASES.ppo.lossFn);
      const optimizer = policy.createOptimizer({});
      for (let step = 0; step < 3; step++) {
        await trainer.run(batch, CASES.ppo.inputs(ADVANTAGES.map(() => -3)));
        await optimizer.update();
      }
      const { scored: tokens, trained } = policy.usage.counts;
      await policy.close();
      return [tokens, trained];
    };
    const tokens = [6, 5, 5].reduce((sum, length) => sum + length, 0);
    expect(await scored(traits)).toEqual([0, 3 * tokens]);
    expect(await scored(linear())).toEqual([3 * tokens, 3 * tokens]);
  });

  /** Decisions of which some share a selected token: [decision] of selected ones. */
  async function trainDecisions(routes: readonly number[], how: ServiceTraits) {
    const vector = (values: readonly number[]) => int32(values);
    const count = routes.length;
    const cells = (values: readonly number[]) => tensor("float32", [count, 1, 1], Float32Array.from(values));
    const ones = routes.map(() => 1);
    const old = (logProbs: readonly number[]) => routes.map((route) => logProbs[route]);
    const { inputs } = CASES.importance_sampling;
    return train(
      {
        lossFn: (policy) => CASES.importance_sampling.lossFn(constrainedPolicyNodes(policy)),
        inputs: (logProbs) => ({
          ...inputs(old(logProbs)),
          advantages: float32(routes.map((_, i) => ADVANTAGES[i % COUNT])),
          decision_routes: tensor("int32", [count, 1, 1], Int32Array.from(routes)),
          decision_weights: cells(ones),
          decision_barred: tensor("float32", [count, 1], new Float32Array(count)),
          decision_chosen: vector(routes.map(() => 0)),
          decision_first: vector(routes),
          decision_free: float32(ones),
        }),
      },
      how,
    );
  }

  it("is trained for decisions that share a token, unless many do", async () => {
    const all = Array.from({ length: COUNT }, (_, i) => i);
    const few = [...all, 0];
    const own = await trainDecisions(few, traits);
    expect(own.usedLosses).toContain("importance_sampling");
    expect(maxDifference(own.results, (await trainDecisions(few, linear())).results)).toBeLessThan(1e-5);
    expect((await trainDecisions([...all, ...all], traits)).usedLosses).toEqual(["linear"]);
  });

  it("is not used where the service clips at other bounds that cannot be set", async () => {
    const fixed = { ...traits, clipSettings: [] };
    expect((await train(CASES.ppo, fixed)).usedLosses).toEqual(["linear"]);
    const standard = ofGrpo({ lossType: "bnpo", epsilon: 0.2, epsilonHigh: 0.2 });
    expect((await train(standard, fixed)).usedLosses).toContain("ppo");
  });

  it("is not used where the service averages", async () => {
    expect((await train(CASES.importance_sampling, { ...traits, reduction: undefined })).usedLosses).toEqual([
      "linear",
    ]);
  });
});

it.each(Object.keys(OTHERS))("%s is trained by its derivative", async (name) => {
  expect((await train(OTHERS[name], traits)).usedLosses).toEqual(["linear"]);
});
