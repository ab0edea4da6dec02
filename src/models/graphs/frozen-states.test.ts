import { fileURLToPath } from "node:url";
import { describe, expect, it, vi } from "vitest";
import { RandomStream } from "../../core/random/random-stream.js";
import { countElements } from "../../core/numbers.js";
import { add, input, mul, neg, reduceSum } from "../../engine/graph/index.js";
import type { Session } from "../../engine/runtime/session.js";
import { float32 } from "../../engine/tensor/tensor.js";
import { getPeftModel, type PeftOptions } from "../adapters/get-peft-model.js";
import { CausalLM } from "../causal-lm.js";
import { FrozenStates } from "./frozen-states.js";
import { ScoringGraph, TrainingGraph } from "./training-graph.js";
import type { TokenBatch } from "./token-batch.js";

const fixture = (name: string): string =>
  fileURLToPath(new URL(`../../../test/fixtures/models/${name}`, import.meta.url));

/** An adapted model with a value head whose parameters are all random. */
async function adapt(base: CausalLM, options: PeftOptions): Promise<CausalLM> {
  const model = await getPeftModel(base, { r: 2, valueHead: { kind: "linear", dropout: 0 }, ...options });
  const random = new RandomStream(3);
  for (const name of model.parameters.names) {
    const length = countElements(model.parameters.shape(name));
    await model.parameters.write(
      name,
      Float32Array.from({ length }, () => random.normal(0, 0.2)),
    );
  }
  return model;
}

/**
 * Batches that share prefixes with one another, of which the second has rows that the first has.
 */
function batchOf(groups: TokenBatch["groups"]): TokenBatch {
  const selected = groups.flatMap(({ rows }, group) =>
    rows.flatMap((tokens, row) => tokens.map((_, index) => ({ group, row, index }))),
  );
  return { groups, selected, temperature: 0.8 };
}
const first = { prefix: [5, 6, 7, 8], rows: [[20, 21, 22, 7, 9], [10, 11, 5], [3]] };
const second = { prefix: [5, 6, 9], rows: [[4, 4, 4, 4], [0]] };
const batches = [
  batchOf([first]),
  batchOf([first, second]),
  batchOf([
    {
      prefix: [5, 6, 7, 8],
      rows: [
        [10, 11, 5],
        [10, 11, 6, 2],
      ],
    },
  ]),
];

async function createTraining(model: CausalLM, frozenStates?: FrozenStates) {
  return TrainingGraph.create(
    model,
    ({ logProbs, entropy, values, selected }) => {
      const weigh = (name: string, node: typeof logProbs) => reduceSum(mul(input(name, "float32", [selected]), node));
      return { loss: neg(add(add(weigh("p", logProbs), weigh("e", entropy!)), weigh("v", values!))) };
    },
    { entropy: "gradient", frozenStates },
  );
}

async function openStates(model: CausalLM, maxStates?: number): Promise<FrozenStates> {
  const states = FrozenStates.create(model, { maxStates })!;
  await states.open();
  return states;
}

/** Scores under policy and reference, loss and gradient of each batch. */
async function evaluate(model: CausalLM, frozenStates?: FrozenStates): Promise<number[][]> {
  const scoring = await ScoringGraph.create(model, { entropy: "value", frozenStates });
  const training = await createTraining(model, frozenStates);
  const results: number[][] = [];
  for (const batch of batches) {
    for (const adapter of [true, false]) {
      const { logProbs, entropy, values } = await scoring.run(batch, { adapter });
      results.push([...logProbs, ...entropy!, ...values!]);
    }
    const inputs = (scale: number) => float32(batch.selected.map((_, i) => scale * (i + 1)));
    const { loss } = await training.run(batch, { p: inputs(0.1), e: inputs(0.01), v: inputs(0.02) });
    const gradients = (await model.runtime.read(model.parameters.gradients)).data as Float32Array;
    results.push([loss.data[0], ...gradients]);
  }
  await scoring.release();
  await training.release();
  return results;
}

function expectEqual(actual: readonly number[][], expected: readonly number[][]): void {
  actual.forEach((row, i) => {
    const scale = Math.max(1, ...expected[i].map(Math.abs));
    const error = Math.max(...row.map((value, j) => Math.abs(value - expected[i][j])));
    expect(error / scale).toBeLessThan(1e-5);
  });
}

// GPT-2 learns positions, Gemma has windows and norms after each block, Phi computes attention and
// feed-forward in parallel.
describe.each(["llama", "gpt2", "gemma3", "phi", "qwen3"])("kept states of %s", (name) => {
  it("give the losses, gradients and scores that computing everything gives", async () => {
    const base = await CausalLM.open(fixture(name), { device: "cpu", threads: 1 });
    const { length } = base.config.layers;
    for (const options of [{ layersToTransform: [length - 1] }, { targetModules: ["lm_head"] }]) {
      const model = await adapt(base, options);
      expect(model.frozenLayers).toBe("targetModules" in options ? length : length - 1);
      const expected = await evaluate(model);
      const states = await openStates(model);
      expectEqual(await evaluate(model, states), expected);
      expect(states.size).toBe(new Set(batches.flatMap(beginnings)).size);
    }
    await base.close();
  });
});

function beginnings({ groups }: TokenBatch): string[] {
  return groups.flatMap(({ prefix, rows }) =>
    rows.flatMap((row) => [...prefix, ...row].map((_, i, all) => all.slice(0, i + 1).join())),
  );
}

describe("FrozenStates", () => {
  it("computes each state once, and again after clear", async () => {
    const base = await CausalLM.open(fixture("llama"), { device: "cpu", threads: 1 });
    const model = await adapt(base, { layersToTransform: [1] });
    const runs: number[] = [];
    const sequence = model.runtime.sequence.bind(model.runtime);
    model.runtime.sequence = (requests) => {
      runs.push(requests.filter(({ kind }) => kind === "run").length);
      return sequence(requests);
    };
    const states = await openStates(model);
    const scoring = await ScoringGraph.create(model, { frozenStates: states });
    for (const batch of [batches[0], batches[0], batches[1], batches[1]]) await scoring.run(batch);
    expect(runs.splice(0)).toEqual([2, 1, 2, 1]);
    states.clear();
    await scoring.run(batches[0]);
    expect(runs).toEqual([2]);
    await base.close();
  });

  it("keeps states up to a limit and computes those beyond it for each batch", async () => {
    const base = await CausalLM.open(fixture("llama"), { device: "cpu", threads: 1 });
    const model = await adapt(base, { layersToTransform: [1] });
    const expected = await evaluate(model);
    const states = await openStates(model, 8);
    expectEqual(await evaluate(model, states), expected);
    expect(states.size).toBeLessThan(8);
    expect(states.size).toBeGreaterThan(4);
    await base.close();
  });

  it("are saved and restored, and discarded after an update that had few of them", async () => {
    const base = await CausalLM.open(fixture("llama"), { device: "cpu", threads: 1 });
    const model = await adapt(base, { layersToTransform: [1] });
    const states = await openStates(model);
    const scoring = await ScoringGraph.create(model, { frozenStates: states });
    expect(await states.getState()).toBeUndefined();
    const scores = await scoring.run(batches[1]);
    const saved = (await states.getState())!;
    expect(saved.states).toHaveLength(saved.parents.length * base.config.hiddenSize);
    states.clear();
    await states.setState(saved);
    expect(await states.getState()).toEqual(saved);
    const sequence = vi.spyOn(model.runtime, "sequence");
    expect(await scoring.run(batches[1])).toEqual(scores);
    expect(sequence.mock.calls[0][0].filter(({ kind }) => kind === "run")).toHaveLength(1);

    const { size } = states;
    states.endUpdate();
    await scoring.run(batches[2]);
    states.endUpdate();
    expect(states.size).toBeGreaterThan(size);
    await scoring.run(batchOf([{ prefix: [1], rows: [Array.from({ length: 40 }, (_, i) => i % 20)] }]));
    states.endUpdate();
    expect(states.size).toBe(0);
    await expect(states.setState({ ...saved, states: saved.states.subarray(1) })).rejects.toMatchObject({
      code: "INVALID_ARGUMENT",
    });
    await base.close();
  });

  it("keeps states until all that opened it have released it, and can be opened again", async () => {
    const base = await CausalLM.open(fixture("llama"), { device: "cpu", threads: 1 });
    const model = await adapt(base, { layersToTransform: [1] });
    const states = FrozenStates.create(model)!;
    const decoded = [{ cached: [], tokens: [5, 6], sequenceLength: 2, flatIndex: 0 }];
    const view = model.runtime.allocate("float32", [2, base.config.hiddenSize]);
    const find = () => states.find({ cached: [5], tokens: [6], sequenceLength: 2 });
    expect(states.keep(decoded, view)).toEqual([]);
    for (let i = 0; i < 2; i++) {
      await Promise.all([states.open(), states.open()]);
      expect(find()).toBeUndefined();
      await model.runtime.sequence(states.keep(decoded, view));
      await states.release();
      expect(find()).toHaveLength(1);
      await states.release();
      expect([find(), states.size]).toEqual([undefined, 0]);
    }
    expect(states.keep(decoded, view)).toEqual([]);
    await base.close();
  });

  it("leaves frozen layers out of the graph, and the plain graph's backward pass ends above them", async () => {
    const base = await CausalLM.open(fixture("llama"), { device: "cpu", threads: 1 });
    const model = await adapt(base, { layersToTransform: [1] });
    const { session } = (await createTraining(model, await openStates(model))) as unknown as { session: Session };
    const layers = session.graph.weights.flatMap(({ name }) => /layers\.(\d+)/u.exec(name)?.[1] ?? []);
    expect(new Set(layers)).toEqual(new Set(["1"]));
    const products = async (layersToTransform: number[]) => {
      const adapted = await adapt(base, { layersToTransform, targetModules: ["q_proj"] });
      const { session: plain } = (await createTraining(adapted)) as unknown as { session: Session };
      const bytes = plain.graph.serialize(({ name }) => ({ file: name, offset: 0, byteLength: 0 }));
      return Buffer.from(bytes).toString("latin1").split("FusedMatMul").length;
    };
    const [last, both] = [await products([1]), await products([0, 1])];
    // Two products of the adapter forward and three backward, and one product backward for each of
    // eight products of layer 1, of which attention's two have two.
    expect(both - last).toBeGreaterThanOrEqual(2 + 3 + 7);
    await base.close();
  });

  it("is absent from models without trained layers and from those whose first layer is trained", async () => {
    const base = await CausalLM.open(fixture("llama"), { device: "cpu", threads: 1 });
    for (const options of [{}, { targetModules: ["embed_tokens"] }, { targetModules: ["lm_head", "embed_tokens"] }])
      expect(FrozenStates.create(await adapt(base, options))).toBeUndefined();
    expect(FrozenStates.create(base)).toBeUndefined();
    await base.close();
  });
});
