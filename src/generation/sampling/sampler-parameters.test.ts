import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { expectClose, prompt, request, trainerLogProbs, whole } from "../../../test/support/sampler.js";
import { writeRandomModel } from "../../../test/support/random-model.js";
import { getPeftModel } from "../../models/adapters/get-peft-model.js";
import { CausalLM } from "../../models/causal-lm.js";
import { Session } from "../../engine/runtime/session.js";
import { FrozenStates } from "../../models/graphs/frozen-states.js";
import { ScoringGraph } from "../../models/graphs/training-graph.js";
import type { SampleOutput, SampleRequest } from "./sample-request.js";
import { Sampler } from "./sampler.js";

describe("Sampler", () => {
  let model: CausalLM;
  let remove: () => Promise<void>;
  beforeAll(async () => {
    const made = await writeRandomModel({ maxPositions: 2048 });
    remove = made.remove;
    model = await CausalLM.open(made.folder, { device: "cpu", threads: 1 });
  });
  afterAll(async () => {
    await model.close();
    await remove();
  });

  it("keeps the states of frozen layers, from which the trainer computes the same log-probabilities", async () => {
    const adapted = await getPeftModel(model, { r: 2, layersToTransform: [1] });
    const states = FrozenStates.create(adapted)!;
    await states.open();
    const scoring = await ScoringGraph.create(adapted, { frozenStates: states });
    const sampler = await Sampler.create(adapted, { frozenStates: states });
    const base = prompt(8, 25);
    // The first two share a prefix and the third continues the first.
    const outputs = await Promise.all([1, 2].map((seed) => sampler.sample(request([...base, seed], seed))));
    const longer = whole([...base, 1], outputs[0]);
    const last = await sampler.sample(request([...longer, 7], 3));
    const sequence = vi.spyOn(adapted.runtime, "sequence");
    for (const [tokens, output] of [
      [longer, outputs[0]],
      [whole([...base, 2], outputs[1]), outputs[1]],
      [[...longer, 7, ...last.tokens], last],
    ] as const) {
      expectClose(output.rawLogProbs, await trainerLogProbs(scoring, tokens, tokens.length - output.tokens.length));
    }
    // Only the last tokens, which the sampler does not process, are missing.
    const runs = sequence.mock.calls.map(([requests]) => requests.filter(({ kind }) => kind === "run").length);
    expect(runs).toEqual([1, 2, 2]);
    expect(states.size).toBeGreaterThan(25 + 2 * 8 + 8);
    sequence.mockRestore();
    for (const each of [sampler, scoring, states]) await each.release();
  });

  it("starts from kept states of frozen layers, and computes the layers again for tokens without a state", async () => {
    const adapted = await getPeftModel(model, { r: 2, layersToTransform: [1] });
    const states = FrozenStates.create(adapted)!;
    await states.open();
    const scoring = await ScoringGraph.create(adapted);
    const sampler = await Sampler.create(adapted, { frozenStates: states });
    const runs = vi.spyOn(Session.prototype, "request");
    const bases = [prompt(8, 25), [...prompt(8, 20), 1, 2, 3]];
    const sampleAll = (maxNewTokens: number, seed: number) =>
      Promise.all(bases.map((base, i) => sampler.sample(request(base, seed + i, { maxNewTokens }))));
    await sampleAll(1, 1);
    adapted.markParametersChanged();
    runs.mockClear();
    const first = await sampleAll(1, 3);
    // The shared prefix is computed, and the prompts after it start from states.
    expect(runs.mock.calls.map(([feeds]) => "frozen_states" in feeds)).toEqual([false, true]);
    adapted.markParametersChanged();
    runs.mockClear();
    const second = await sampleAll(3, 5);
    expect(runs.mock.calls.map(([feeds]) => "frozen_states" in feeds)).toEqual([false, true, false, false]);
    for (const outputs of [first, second])
      for (const [i, output] of outputs.entries())
        expectClose(output.rawLogProbs, await trainerLogProbs(scoring, whole(bases[i], output), bases[i].length));
    runs.mockRestore();
    for (const each of [sampler, scoring, states]) await each.release();
  });

  it("scores each token once where states are discarded between two steps of a long continuation", async () => {
    const adapted = await getPeftModel(model, { r: 2, layersToTransform: [1] });
    const states = FrozenStates.create(adapted)!;
    await states.open();
    const sampler = await Sampler.create(adapted, { frozenStates: states });
    const tokens = prompt(8, 700);
    const score = async () => sampler.score(tokens.slice(0, 400), tokens.slice(400));
    const expected = await score();
    adapted.markParametersChanged();
    const find = vi.spyOn(states, "find");
    const findStates = FrozenStates.prototype.find.bind(states);
    // The first time, the session that starts from states is opened.
    find
      .mockImplementationOnce(findStates)
      .mockImplementationOnce(findStates)
      .mockImplementationOnce((sequence) => {
        states.clear();
        return findStates(sequence);
      });
    expectClose(await score(), expected);
    expect(find.mock.results.map(({ value }) => value !== undefined)).toEqual([true, true, false, false]);
    find.mockRestore();
    for (const each of [sampler, states]) await each.release();
  });

  it("invalidates its caches when the parameters change, also while a completion runs", async () => {
    const adapted = await getPeftModel(model, { r: 2, targetModules: ["q_proj", "v_proj"] });
    const sampler = await Sampler.create(adapted);
    const scoring = await ScoringGraph.create(adapted);
    const base = prompt(7, 25);
    const ask = (options: Partial<SampleRequest> = {}) => sampler.sample(request(base, 1, options));
    await Promise.all([ask(), ask()]);
    const change = async (value: number) => {
      for (const name of adapted.parameters.names.filter((each) => each.includes("lora_B"))) {
        const size = adapted.parameters.shape(name).reduce((product, length) => product * length, 1);
        await adapted.parameters.write(name, new Float32Array(size).fill(value));
      }
      adapted.markParametersChanged();
    };
    await change(0.3);
    const changed = await Promise.all([ask(), ask({ maxNewTokens: 3 })]);
    for (const output of changed)
      expectClose(output.rawLogProbs, await trainerLogProbs(scoring, whole(base, output), base.length));

    let late: Promise<SampleOutput> | undefined;
    const running = ask({
      maxNewTokens: 12,
      onToken: () => {
        late ??= change(-0.2).then(() => ask());
      },
    });
    expect((await running).tokens).toHaveLength(12);
    const output = await late!;
    expectClose(output.rawLogProbs, await trainerLogProbs(scoring, whole(base, output), base.length));
    await sampler.release();
    await scoring.release();
  });
});
