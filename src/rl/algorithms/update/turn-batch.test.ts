import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { writeRandomModel } from "../../../../test/support/random-model.js";
import { input, mul, reduceSum } from "../../../engine/graph/index.js";
import { EnginePolicy } from "../../../generation/engine-policy.js";
import { getPeftModel, makeTrainable } from "../../../models/adapters/get-peft-model.js";
import { commonPrefixLength } from "../../../models/graphs/sequence-batch.js";
import type { PolicyNodes } from "../../../models/graphs/policy-nodes.js";
import { CausalLM } from "../../../models/causal-lm.js";
import { TrainingGraph, type GraphOptions } from "../../../models/graphs/training-graph.js";
import type { TokenBatch } from "../../../models/graphs/token-batch.js";
import { tensor } from "../../../engine/tensor/tensor.js";
import { constrainedPolicyNodes } from "./constrained-policy-nodes.js";
import { layOutSequences, packedSize } from "../../../models/graphs/prefix-layout.js";
import { packSharedPrefixes } from "../../../models/graphs/prefix-packing.js";
import { LogProbScorer } from "./log-prob-scorer.js";
import {
  buildTurnBatch,
  constraintFeeds,
  decisionIndices,
  decisionsByTurn,
  decisionSequences,
  type TurnTokens,
} from "./turn-batch.js";

let files: Awaited<ReturnType<typeof writeRandomModel>>;
let model: CausalLM;
beforeAll(async () => {
  files = await writeRandomModel();
  const base = await CausalLM.open(files.folder, { device: "cpu", threads: 1 });
  model = await getPeftModel(base, {
    r: 2,
    targetModules: "all-linear",
    valueHead: { kind: "linear", dropout: 0 },
    seed: 1,
  });
  // A new adapter's second matrix is zero; with other values all gradients count.
  await setParameters((i) => 0.1 * Math.sin(7 * i));
});
afterAll(async () => {
  await model.close();
  await files.remove();
});

async function setParameters(value: (i: number) => number): Promise<void> {
  const { runtime, parameters } = model;
  await runtime.write(
    parameters.values,
    Float32Array.from({ length: parameters.count }, (_, i) => value(i)),
  );
}

const prompt = Array.from({ length: 30 }, (_, i) => i + 5);

/** Turns that share beginnings in every way: prompts, replies, whole conversations up to a turn. */
const free: readonly TurnTokens[] = [
  { prompt, tokens: [20, 21, 22], allowedTokens: undefined },
  { prompt, tokens: [20, 21, 23], allowedTokens: undefined },
  { prompt, tokens: [20, 21, 22], allowedTokens: undefined },
  { prompt, tokens: [30], allowedTokens: undefined },
  { prompt: [...prompt, 20, 21, 22, 40], tokens: [50, 51], allowedTokens: undefined },
  { prompt: [...prompt, 20, 21, 22, 40], tokens: [50, 52, 53], allowedTokens: undefined },
  { prompt: [99, 98], tokens: [1, 2, 3], allowedTokens: undefined },
];

/**
 * Rows that all begin with the same two tokens of a reply, which then stand in the shared prefix.
 */
const alike: readonly TurnTokens[] = [22, 23, 24].map((third) => ({
  prompt,
  tokens: [20, 21, third, 60],
  allowedTokens: undefined,
}));

/** Two prompts that begin alike, each with several replies, and one that is asked alone. */
const asked: readonly TurnTokens[] = [70, 80, 90].flatMap((question, i) =>
  Array.from({ length: i === 2 ? 1 : 3 }, (_, reply) => ({
    prompt: [...prompt, ...Array.from({ length: 20 }, (_, k) => question + k)],
    tokens: [10 + reply, 20, 30],
    allowedTokens: undefined,
  })),
);

const held: readonly TurnTokens[] = [
  { prompt, tokens: [20, 21], allowedTokens: [Int32Array.of(20, 30), Int32Array.of(21, 22, 23)] },
  { prompt, tokens: [30], allowedTokens: [Int32Array.of(20, 30)] },
  // Only one token can follow the first: no decision.
  { prompt: [99, 98], tokens: [4, 5, 6], allowedTokens: [Int32Array.of(4, 7), Int32Array.of(5), Int32Array.of(6, 8)] },
  { prompt: [99, 98, 97], tokens: [4], allowedTokens: undefined },
];

const temperature = 0.7;

interface Decided {
  readonly logProbs: readonly number[];
  readonly values: readonly number[];
  readonly gradients: Float32Array;
}

/**
 * Log-probabilities, values and the gradient of a weighted sum of both, of a batch as it was laid
 * out.
 */
async function decide(
  batches: readonly { tokens: TokenBatch; feeds: Record<string, ReturnType<typeof tensor>> }[],
  { trained = model, ...options }: { trained?: CausalLM } & GraphOptions = {},
) {
  const lossFn = (policy: PolicyNodes) => {
    const { logProbs, values } = constrainedPolicyNodes(policy);
    const weights = input("weights", "float32", [constrainedPolicyNodes(policy).selected]);
    return { loss: reduceSum(mul(weights, mul(logProbs, values!))), statistics: { logProbs, values: values! } };
  };
  const graph = await TrainingGraph.create(trained, lossFn, options);
  const logProbs: number[] = [];
  const values: number[] = [];
  for (const [i, { tokens, feeds }] of batches.entries()) {
    const count = feeds.decision_first.data.length;
    const start = logProbs.length;
    const weights = tensor(
      "float32",
      [count],
      Float32Array.from({ length: count }, (_, j) => 1 + ((start + j) % 3)),
    );
    const outputs = await graph.run(tokens, { ...feeds, weights }, { accumulate: i > 0 });
    logProbs.push(...outputs.logProbs.data);
    values.push(...outputs.values.data);
  }
  const { data } = await trained.runtime.read(trained.parameters.gradients);
  await graph.release();
  return { logProbs, values, gradients: (data as Float32Array).slice() };
}

const rowsOf = (turns: readonly TurnTokens[], hiddenSize: number) =>
  layOutSequences(turns.flatMap(decisionSequences), { hiddenSize });

const laid = (turns: readonly TurnTokens[]) => {
  const batch = buildTurnBatch(turns, rowsOf(turns, model.config.hiddenSize), temperature);
  return { tokens: batch.tokens, feeds: constraintFeeds(batch) };
};

function expectSame(found: Decided, expected: Decided): void {
  const size = Math.max(...expected.gradients.map(Math.abs));
  expect(size).toBeGreaterThan(0.1);
  found.logProbs.forEach((value, i) => expect(value).toBeCloseTo(expected.logProbs[i], 4));
  found.values.forEach((value, i) => expect(value).toBeCloseTo(expected.values[i], 4));
  found.gradients.forEach((value, i) => expect(value / size).toBeCloseTo(expected.gradients[i] / size, 4));
}

it("decides where several tokens were allowed, and at the first token where there were none", () => {
  const [one, two] = [Int32Array.of(20), Int32Array.of(20, 21)];
  const tokens = [20, 20, 20, 20];
  expect(decisionIndices({ tokens, allowedTokens: undefined })).toEqual([0, 1, 2, 3]);
  expect(decisionIndices({ tokens, allowedTokens: [one, two, one, two] })).toEqual([1, 3]);
  expect(decisionIndices({ tokens, allowedTokens: [one, one, one, undefined] })).toEqual([3]);
  expect(decisionIndices({ tokens, allowedTokens: [one, one, one, one] })).toEqual([0]);
  expect(decisionIndices({ tokens: [], allowedTokens: undefined })).toEqual([]);
});

describe("buildTurnBatch", () => {
  it.each([
    ["unconstrained completions", free],
    ["completions with a shared prefix", alike],
    ["completions of several prompts with a shared prefix", asked],
    ["constrained completions", held],
  ])("computes the same log-probabilities, values and gradients for %s as for single turns", async (_, turns) => {
    const alone = await decide(turns.map((turn) => laid([turn])));
    const together = await decide([laid(turns)]);
    expectSame(together, alone);
  });

  it("selects the tokens of equal turns once, with the same gradient", async () => {
    const turns = [...free, ...free, ...held, free[3]];
    const [microBatch, ...others] = packSharedPrefixes(turns.map(decisionSequences), {
      microBatchTokens: 1000,
      config: model.config,
    });
    expect(others).toEqual([]);
    const inOrder = microBatch.indices.map((i) => turns[i]);
    const batch = buildTurnBatch(inOrder, microBatch, temperature);
    const { selected } = batch.tokens;
    expect(new Set(selected.map((token) => JSON.stringify(token))).size).toBe(selected.length);
    expect(selected.length).toBeLessThan(batch.decisions.length / 2 + 10);
    const together = { tokens: batch.tokens, feeds: constraintFeeds(batch) };
    expectSame(await decide([together]), await decide(inOrder.map((turn) => laid([turn]))));
  });

  it("computes tokens that completions share once", () => {
    const { groups, selected } = buildTurnBatch(alike, rowsOf(alike, 32)).tokens;
    expect(groups).toEqual([{ prefix: [...prompt, 20, 21], rows: [[24], [23], [22]] }]);
    expect(selected.map(({ row, index }) => [row, index])).toEqual(
      [2, 1, 0].flatMap((row) => [-2, -1, 0, 1].map((index) => [row, index])),
    );
  });

  it("computes tokens that prompts share once, and each prompt once for all completions", () => {
    const { groups } = rowsOf(asked, 32);
    expect(groups.map(({ prefix, rows }) => [prefix.length, rows.length])).toEqual([
      [30, 1],
      [50, 3],
      [50, 3],
    ]);
    expect(commonPrefixLength(groups)).toBe(30);
    expect(packedSize(groups).tokens).toBe(30 + 22 + 2 * (20 + 3 * 2));
  });

  it.each([
    ["an adapter of the layers", "all-linear"],
    ["an adapter of the output matrix", ["q_proj", "lm_head"]],
    ["trained weights", undefined],
  ])("computes the same from the logits of the tokens in use, with %s", async (_, targetModules) => {
    const base = model.withoutTrainable();
    const valueHead = { kind: "linear", dropout: 0 } as const;
    const trained =
      targetModules === undefined
        ? await makeTrainable(base, "all", { valueHead })
        : await getPeftModel(base, { r: 2, targetModules, valueHead });
    if (targetModules !== undefined) {
      const values = Float32Array.from({ length: trained.parameters.count }, (__, i) => 0.1 * Math.sin(7 * i));
      await trained.runtime.write(trained.parameters.values, values);
    }
    const many = Int32Array.from({ length: 20 }, (__, i) => 20 + 2 * i);
    const constrained = [...held.slice(0, 3), { prompt, tokens: [22, 40], allowedTokens: [many, many] }];
    const batch = laid(constrained);
    expect(batch.tokens.headTokens).toEqual([4, 6, 7, 8, ...many, 21, 23].sort((a, b) => a - b));
    const [all, some] = [false, true].map((withHeadTokens) => ({ trained, withAllowedTokens: true, withHeadTokens }));
    expectSame(await decide([batch], some), await decide([batch], all));
    trained.parameters.free();
  });

  it("has the logits of all tokens where a token is not constrained, or a turn scored by the whole of its text", () => {
    const scored = { sequences: [[1], [2, 3]], weights: [1, 1], chosen: 0 };
    // The second token is free, the others are given, as results of tools are.
    const mixed = {
      prompt,
      tokens: [1, 2, 3],
      allowedTokens: [Int32Array.of(1), undefined, Int32Array.of(3)] as never,
    };
    for (const turns of [
      held,
      free,
      [mixed],
      [{ prompt, tokens: [1], allowedTokens: undefined, actionCandidates: scored }],
    ])
      expect(laid(turns).tokens.headTokens).toBeUndefined();
    expect(laid([...held.slice(0, 1), { prompt, tokens: [], allowedTokens: undefined }]).tokens.headTokens).toEqual([
      0, 20, 21, 22, 23, 30,
    ]);
  });

  it("has the same gradient in several micro-batches as in one", async () => {
    const turns = [...free, ...held];
    const packingOptions = { microBatchTokens: 45, config: model.config };
    const order = packSharedPrefixes(turns.map(decisionSequences), packingOptions).map(({ indices }) => indices);
    expect(order.length).toBeGreaterThan(1);
    const inOrder = order.flat().map((i) => turns[i]);
    expectSame(await decide(order.map((numbers) => laid(numbers.map((i) => turns[i])))), await decide([laid(inOrder)]));
  });

  it("has a decision per unconstrained token, and per constrained token with several allowed", () => {
    const batch = buildTurnBatch(held, rowsOf(held, 32));
    expect(batch.decisions).toEqual([
      { turn: 0, token: 0 },
      { turn: 0, token: 1 },
      { turn: 1, token: 0 },
      { turn: 2, token: 0 },
      { turn: 2, token: 2 },
      { turn: 3, token: 0 },
    ]);
    expect(decisionsByTurn(batch)).toEqual([[0, 1], [2], [3, 4], [5]]);
    expect(batch.chosen).toEqual([0, 0, 1, 0, 0, 0]);
    expect(batch.alternatives.map(({ length }) => length)).toEqual([2, 3, 2, 2, 2, 1]);
  });
});

describe("LogProbScorer", () => {
  it("scores as the training graph at any micro-batch size", async () => {
    const turns = [...free, ...held];
    const { logProbs, values } = await decide([laid(turns)]);
    for (const microBatchTokens of [36, 1000]) {
      const scorer = new LogProbScorer(new EnginePolicy(model), { microBatchTokens });
      const scores = await scorer.score(turns, { temperature });
      expect(scores.logProbs.map(({ length }) => length)).toEqual([3, 3, 3, 1, 2, 3, 3, 2, 1, 2, 1]);
      scores.logProbs.flatMap((row) => [...row]).forEach((value, i) => expect(value).toBeCloseTo(logProbs[i], 4));
      scores.values!.flatMap((row) => [...row]).forEach((value, i) => expect(value).toBeCloseTo(values[i], 4));
      await scorer.release();
    }
  });

  it("returns the value of a prompt without a completion", async () => {
    const scorer = new LogProbScorer(new EnginePolicy(model), { microBatchTokens: 1000 });
    const state = { prompt, tokens: [], allowedTokens: undefined };
    const { values } = await scorer.score([state, free[0], free[4]]);
    expect(values![0]).toHaveLength(1);
    expect(values![0][0]).toBeCloseTo(values![1][0], 5);
    await scorer.release();
  });

  it("scores the reference policy without the adapter", async () => {
    const scorer = new LogProbScorer(new EnginePolicy(model), { microBatchTokens: 1000 });
    const reference = await scorer.score(free, { adapter: false });
    const adapted = await scorer.score(free);
    const kept = ((await model.runtime.read(model.parameters.values)).data as Float32Array).slice();
    await setParameters(() => 0);
    const base = await scorer.score(free);
    await model.runtime.write(model.parameters.values, kept);
    expect(Math.abs(adapted.logProbs[0][0] - base.logProbs[0][0])).toBeGreaterThan(1e-2);
    reference.logProbs.forEach((row, turn) =>
      row.forEach((value, i) => expect(value).toBeCloseTo(base.logProbs[turn][i], 5)),
    );
    await scorer.release();
  });
});
