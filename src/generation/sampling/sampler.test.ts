import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { constraintOf } from "../../../test/support/constrained-sampling.js";
import { writeRandomModel } from "../../../test/support/random-model.js";
import type { SamplingParams, TokenDistribution } from "../../engine/runtime/kernels/sampling.js";
import { getPeftModel } from "../../models/adapters/get-peft-model.js";
import { supportedModelTypes } from "../../models/architectures/index.js";
import { CausalLM } from "../../models/causal-lm.js";
import { Session } from "../../engine/runtime/session.js";
import { loadAdapter } from "../../models/save-model.js";
import { FrozenStates } from "../../models/graphs/frozen-states.js";
import { ScoringGraph } from "../../models/graphs/training-graph.js";
import { ModelFixture } from "../../../test/parity/models/model-fixture.js";
import { RandomStream } from "../../core/random/random-stream.js";
import { DecodeSession } from "../cache/decode-session.js";
import type { SampleOutput, SampleRequest } from "./sample-request.js";
import { Sampler } from "./sampler.js";

const PLAIN: SamplingParams = { temperature: 1, topK: 0, topP: 1, minP: 0, repetitionPenalty: 1 };
const GREEDY = { ...PLAIN, temperature: 0 };

function request(prompt: readonly number[], seed: number, options: Partial<SampleRequest> = {}): SampleRequest {
  const random = new RandomStream(seed);
  return {
    prompt,
    sampling: PLAIN,
    maxNewTokens: 8,
    random: () => random.random(),
    stopTokens: new Set(),
    ...options,
  };
}

/** Computes the trainer's log-probabilities of the tokens from `start`. */
async function trainerLogProbs(
  scoring: ScoringGraph,
  tokens: readonly number[],
  start: number,
  { temperature = 1, adapter = true } = {},
): Promise<number[]> {
  const selected = tokens.slice(start).map((_, i) => ({ group: 0, row: 0, index: start + i }));
  const { logProbs } = await scoring.run(
    { groups: [{ prefix: [], rows: [tokens] }], selected, temperature },
    { adapter },
  );
  return [...logProbs];
}

function expectClose(ours: readonly number[], expected: readonly number[]): void {
  expect(ours).toHaveLength(expected.length);
  ours.forEach((value, i) =>
    expect(Math.abs(value - expected[i])).toBeLessThanOrEqual(1e-4 * Math.max(1, Math.abs(expected[i]))),
  );
}

const whole = (prompt: readonly number[], { tokens }: SampleOutput) => [...prompt, ...tokens];

describe.each(supportedModelTypes.map((type) => type.replace("_text", "")))("%s", (name) => {
  const folder = fileURLToPath(new URL(`../../../test/fixtures/models/${name}`, import.meta.url));
  let model: CausalLM;
  let adapted: CausalLM;
  let fixture: ModelFixture;
  beforeAll(async () => {
    model = await CausalLM.open(folder, { device: "cpu", threads: 1 });
    adapted = await loadAdapter(model, `${folder}/adapter`);
    fixture = await ModelFixture.open(folder);
  });
  afterAll(async () => {
    await fixture.close();
    await model.close();
  });

  it.each([
    ["greedy", false],
    ["adapter.greedy", true],
  ] as const)("samples Transformers' %s tokens, in one batch and one by one", async (expected, withAdapter) => {
    const sampler = await Sampler.create(withAdapter ? adapted : model);
    const rows = await fixture.readIntegerRows(expected);
    const ask = (row: number) =>
      sampler.sample(request(fixture.rows[row], 0, { sampling: GREEDY, maxNewTokens: rows[row].length }));
    const batch = await Promise.all(rows.map((_, row) => ask(row)));
    expect(batch.map(({ tokens }) => tokens)).toEqual(rows);
    for (let row = 0; row < rows.length; row++) expect((await ask(row)).tokens).toEqual(rows[row]);
    await sampler.release();
  });

  it("returns the trainer's log-probabilities with a shared prefix, in later turns and without the adapter", async () => {
    const scoring = await ScoringGraph.create(adapted);
    const sampler = await Sampler.create(adapted);
    const reference = sampler.withAdapter({ adapter: false });
    const random = new RandomStream(3);
    const text = (length: number) => Array.from({ length }, () => random.integers(24));
    const prefix = text(17);
    const prompts = [
      [...prefix, ...text(2)],
      [...prefix, ...text(5)],
      [...prefix, 4],
    ];
    for (const [each, adapter] of [
      [sampler, true],
      [reference, false],
    ] as const) {
      const outputs = await Promise.all(
        prompts.map((prompt, i) => each.sample(request(prompt, i, { maxNewTokens: 4 }))),
      );
      const alone = await each.sample(request(text(7), 9));
      expect(alone.tokens).toHaveLength(8);
      for (const [i, output] of outputs.entries()) {
        const tokens = whole(prompts[i], output);
        expectClose(output.rawLogProbs, await trainerLogProbs(scoring, tokens, prompts[i].length, { adapter }));
        expect(output.logProbs).toEqual(output.rawLogProbs.map((value) => expect.closeTo(value, 5) as number));
        const next = [...tokens, 5, 6];
        const second = await each.sample(
          request(next, i, { sampling: { ...PLAIN, temperature: 0.7 }, maxNewTokens: 2 }),
        );
        const all = whole(next, second);
        expectClose(second.rawLogProbs, await trainerLogProbs(scoring, all, next.length, { adapter }));
        expectClose(second.logProbs, await trainerLogProbs(scoring, all, next.length, { adapter, temperature: 0.7 }));
        expectClose(await each.score(prompts[i], output.tokens), [...output.rawLogProbs]);
      }
    }
    await reference.release();
    await sampler.release();
    await scoring.release();
  });
});

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
  const prompt = (seed: number, length: number) => {
    const random = new RandomStream(seed);
    return Array.from({ length }, () => random.integers(320));
  };

  it.each([1, 3, 17])("samples the same tokens for the same seed among %i other sequences", async (others) => {
    const alone = await Sampler.create(model);
    const shared = prompt(1, 20);
    const base = request([...shared, 1, 2, 3], 42, { maxNewTokens: 24, sampling: { ...PLAIN, topP: 0.95 } });
    const expected = await alone.sample({ ...base, random: streamOf(42) });
    await alone.release();

    const sampler = await Sampler.create(model, { maxNumSequences: 8 });
    const ours = sampler.sample({ ...base, random: streamOf(42) });
    const rest = Array.from({ length: others }, (_, i) =>
      sampler.sample(
        request(i % 2 === 0 ? [...shared, i] : prompt(50 + i, 5 + 3 * i), i, { maxNewTokens: 1 + (i % 9) }),
      ),
    );
    const late = ours.then(() => sampler.sample({ ...base, random: streamOf(42) }));
    const joined = rest[0].then(() => sampler.sample(request(prompt(99, 30), 5)));
    expect((await ours).tokens).toEqual(expected.tokens);
    expect((await late).tokens).toEqual(expected.tokens);
    expect((await joined).tokens).toHaveLength(8);
    expect((await Promise.all(rest)).map(({ tokens }) => tokens.length)).toEqual(rest.map((_, i) => 1 + (i % 9)));
    await sampler.release();
  });

  it("processes prompts and continuations that are longer than one step", async () => {
    const scoring = await ScoringGraph.create(model);
    const sampler = await Sampler.create(model);
    const long = prompt(5, 1100);
    const output = await sampler.sample(request(long, 1));
    expectClose(output.rawLogProbs, await trainerLogProbs(scoring, whole(long, output), long.length));
    expectClose(await sampler.score(long.slice(0, 20), long.slice(20)), await trainerLogProbs(scoring, long, 20));
    await sampler.release();
    await scoring.release();
  });

  it("processes a prompt of several rows once, each time it grows", async () => {
    const scoring = await ScoringGraph.create(model);
    const sampler = await Sampler.create(model);
    const prepare = vi.spyOn(DecodeSession.prototype, "prepare");
    const tokensRead = () => prepare.mock.calls.reduce((sum, [{ rows }]) => sum + sumOf(rows), 0);
    const sumOf = (rows: readonly { readonly tokens: readonly number[] }[]) =>
      rows.reduce((sum, { tokens }) => sum + tokens.length, 0);
    // Two prompts of 40 tokens with 20 in common, each requested three times, and a third prompt; completions of one token.
    const common = prompt(8, 20);
    let prompts = [1, 2, 1, 1, 2, 2, 3].map((seed) => [...common, ...prompt(seed, 20)]);
    for (const expected of [20 + 3 * 20, 3 * 20]) {
      prepare.mockClear();
      const outputs = await Promise.all(
        prompts.map((tokens, i) => sampler.sample(request(tokens, i, { maxNewTokens: 1 }))),
      );
      expect(tokensRead()).toBe(expected);
      for (const [i, output] of outputs.entries())
        expectClose(output.rawLogProbs, await trainerLogProbs(scoring, whole(prompts[i], output), prompts[i].length));
      expect(new Set(outputs.map(({ tokens }) => tokens[0])).size).toBeGreaterThan(3);
      prompts = prompts.map((tokens) => [...tokens, ...prompt(tokens[20], 20)]);
    }
    prepare.mockRestore();
    await sampler.release();
    await scoring.release();
  });

  it("restores rows that were stashed while a longer completion ran", async () => {
    const scoring = await ScoringGraph.create(model);
    const sampler = await Sampler.create(model);
    const prompts = Array.from({ length: 6 }, (_, i) => prompt(10 + i, 6 + 5 * i));
    const lengths = [40, 2, 3, 9, 14, 1];
    const first = await Promise.all(
      prompts.map((tokens, i) => sampler.sample(request(tokens, i, { maxNewTokens: lengths[i] }))),
    );
    const next = first.map((output, i) => [...whole(prompts[i], output), 9, 8]);
    const second = await Promise.all(next.map((tokens, i) => sampler.sample(request(tokens, i))));
    for (const [i, output] of second.entries())
      expectClose(output.rawLogProbs, await trainerLogProbs(scoring, whole(next[i], output), next[i].length));
    expectClose(first[0].rawLogProbs, await trainerLogProbs(scoring, whole(prompts[0], first[0]), 6));
    await sampler.release();
    await scoring.release();
  });

  it("admits a prompt without the prefix that running sequences share", async () => {
    const scoring = await ScoringGraph.create(model);
    const sampler = await Sampler.create(model);
    const [shared, other] = [prompt(1, 40), prompt(2, 30)];
    let isOtherFinished = false;
    let late: Promise<SampleOutput> | undefined;
    const onToken = () => {
      late ??= sampler.sample(request(other, 9)).finally(() => (isOtherFinished = true));
    };
    const prompts = [0, 1].map((i) => [...shared, i]);
    const outputs = await Promise.all(
      prompts.map((tokens, i) => sampler.sample(request(tokens, i, { maxNewTokens: 60, onToken }))),
    );
    expect(isOtherFinished).toBe(true);
    for (const [i, output] of [...outputs, await late!].entries()) {
      const tokens = prompts[i] ?? other;
      expectClose(output.rawLogProbs, await trainerLogProbs(scoring, whole(tokens, output), tokens.length));
    }
    // A prompt that continues one of them reuses its row, which now has the prefix.
    const next = [...whole(prompts[0], outputs[0]), 7];
    const continued = await sampler.sample(request(next, 3));
    expect(continued.cachedTokens).toBeGreaterThan(90);
    expectClose(continued.rawLogProbs, await trainerLogProbs(scoring, whole(next, continued), next.length));
    await sampler.release();
    await scoring.release();
  });

  it("serves a queue that is longer than its rows", async () => {
    const sampler = await Sampler.create(model, { maxNumSequences: 2 });
    const ask = (i: number) => sampler.sample(request(prompt(i, 4 + i), i));
    const together = await Promise.all(Array.from({ length: 7 }, (_, i) => ask(i)));
    for (let i = 0; i < 7; i++) expect((await ask(i)).tokens).toEqual(together[i].tokens);
    await sampler.release();
  });

  it("ends at a stop token, by shouldStop and at maxNewTokens", async () => {
    const sampler = await Sampler.create(model);
    const full = await sampler.sample(request(prompt(2, 5), 1));
    expect(full.finishReason).toBe("length");
    const stop = await sampler.sample(request(prompt(2, 5), 1, { stopTokens: new Set([full.tokens[3]]) }));
    expect(stop).toMatchObject({
      finishReason: "stop",
      tokens: full.tokens.slice(0, full.tokens.indexOf(full.tokens[3]) + 1),
    });
    const when = await sampler.sample(request(prompt(2, 5), 1, { shouldStop: ({ length }) => length === 2 }));
    expect(when).toMatchObject({ finishReason: "stop_string", tokens: full.tokens.slice(0, 2) });
    await sampler.release();
  });

  it("ends aborted completions, running or waiting, and continues the others", async () => {
    const sampler = await Sampler.create(model, { maxNumSequences: 2 });
    const expected = await sampler.sample(request(prompt(3, 6), 3));
    const abort = new AbortController();
    let seen = 0;
    const onToken = () => {
      if (++seen === 3) abort.abort();
    };
    const [running, other, waiting] = await Promise.all([
      sampler.sample(request(prompt(2, 5), 1, { signal: abort.signal, onToken, maxNewTokens: 500 })),
      sampler.sample(request(prompt(3, 6), 3)),
      sampler.sample(request(prompt(4, 5), 1, { signal: abort.signal, maxNewTokens: 500 })),
    ]);
    expect(running).toMatchObject({ finishReason: "aborted" });
    expect(running.tokens).toHaveLength(3);
    expect(waiting).toMatchObject({ finishReason: "aborted", tokens: [] });
    expect(other.tokens).toEqual(expected.tokens);
    await sampler.release();
  });

  it("appends forced tokens without running the model, and samples the same completion", async () => {
    const sampler = await Sampler.create(model);
    const prepare = vi.spyOn(DecodeSession.prototype, "prepare");
    // Two tokens are forced, two free, three forced, one of two, and a forced end.
    const allowed = [[7], [8], undefined, undefined, [9], [10], [11], [3, 4], [0]];
    const allTokens = Array.from({ length: model.config.vocabSize }, (_, token) => token);
    const constraint = constraintOf(({ length }) => (length < allowed.length ? (allowed[length] ?? allTokens) : []));
    const base = { constraint, maxNewTokens: 20 };
    const forced = allowed.map((tokens) => tokens?.length === 1);
    const draw = async (skipForcedTokens: boolean) => {
      prepare.mockClear();
      const distributions: TokenDistribution[] = [];
      const onDistribution = (each: TokenDistribution) => void distributions.push(each);
      const outputs = await Promise.all([
        sampler.sample(request(prompt(2, 30), 5, { ...base, skipForcedTokens, onDistribution })),
        sampler.sample(request(prompt(3, 12), 6, { ...base, skipForcedTokens, sampling: GREEDY })),
        sampler.sample(request(prompt(4, 9), 7, { maxNewTokens: 4, skipForcedTokens })),
      ]);
      return { outputs, runs: prepare.mock.calls.length, distributions };
    };
    const [all, skipping] = [await draw(false), await draw(true)];
    skipping.outputs.forEach((output, i) => {
      expect(output.tokens).toEqual(all.outputs[i].tokens);
      expect(output.finishReason).toBe(all.outputs[i].finishReason);
      expectClose(output.logProbs, all.outputs[i].logProbs);
      const isForced = (k: number) => i < 2 && forced[k];
      expect(output.rawLogProbs.map(Number.isNaN)).toEqual(output.tokens.map((_, k) => isForced(k)));
    });
    expect(all.outputs[0].rawLogProbs.some(Number.isNaN)).toBe(false);
    expect(skipping.distributions).toHaveLength(allowed.length);
    // One step for the prompts and the first tokens, and one for each further token that is not forced.
    expect([all.runs, skipping.runs]).toEqual([allowed.length, 4]);
    prepare.mockRestore();
    await sampler.release();
  });

  it.each([
    ["at temperature 0.7", { temperature: 0.7 }],
    ["of the most probable token", { temperature: 0 }],
    ["with top-k", { topK: 2 }],
    ["with top-p", { topP: 0.6 }],
    ["with min-p", { minP: 0.3 }],
    ["with a repetition penalty", { repetitionPenalty: 1.7 }],
  ])("samples the same from the logits of the allowed tokens alone, %s", async (_, params) => {
    const adapted = await getPeftModel(model, {
      targetModules: ["q_proj", "lm_head"],
      valueHead: { kind: "linear", dropout: 0 },
    });
    const sampler = await Sampler.create(adapted);
    const prepare = vi.spyOn(DecodeSession.prototype, "prepare");
    const sets = [
      [3, 7, 9, 200],
      [8, 250, 251],
      [4, 5, 6],
    ];
    const constraint = constraintOf(({ length }) => sets[length] ?? []);
    const draw = async (options: Partial<SampleRequest>) => {
      const sampling = { ...PLAIN, ...params };
      return Promise.all(
        [5, 6, 7].map((seed) => sampler.sample(request([1, 2, seed, 7], seed, { sampling, ...options }))),
      );
    };
    const all = await draw({ constraint });
    prepare.mockClear();
    const some = await draw({ constraint, skipRawLogProbs: true });
    expect(prepare.mock.calls.map(([{ selectedTokens, headTokens }]) => [selectedTokens, headTokens])).toEqual(
      sets.map((tokens) => [[], tokens]),
    );
    some.forEach(({ tokens, logProbs, values, rawLogProbs, allowedTokens }, i) => {
      expect([tokens, allowedTokens]).toEqual([all[i].tokens, all[i].allowedTokens]);
      expectClose(logProbs, all[i].logProbs);
      expectClose(values, all[i].values);
      expect(rawLogProbs).toEqual([NaN, NaN, NaN]);
    });
    // Completions that need all logits have them, whatever else is in the batch.
    const [free, held] = await Promise.all([
      sampler.sample(request([1, 2, 5, 7], 5)),
      sampler.sample(
        request([1, 2, 5, 7], 5, { constraint, skipRawLogProbs: true, sampling: { ...PLAIN, ...params } }),
      ),
    ]);
    expect(free.rawLogProbs.some(Number.isNaN)).toBe(false);
    expect(held.tokens).toEqual(some[0].tokens);
    prepare.mockRestore();
    await sampler.release();
  });

  it("returns at once if all tokens are forced", async () => {
    const sampler = await Sampler.create(model);
    const constraint = constraintOf(({ length }) => (length < 3 ? [5 + length] : []));
    const output = await sampler.sample(request(prompt(2, 5), 1, { constraint, skipForcedTokens: true }));
    expect(output).toEqual({
      cachedTokens: 0,
      tokens: [5, 6, 7],
      logProbs: [0, 0, 0],
      rawLogProbs: [NaN, NaN, NaN],
      values: [NaN, NaN, NaN],
      allowedTokens: [5, 6, 7].map((token) => Int32Array.of(token)),
      finishReason: "stop",
    });
    await sampler.release();
  });

  it("rejects all sequences of a step that fails, and remains usable", async () => {
    const sampler = await Sampler.create(model);
    const expected = await sampler.sample(request(prompt(3, 6), 3));
    const base = request(prompt(4, 6), 1);
    const random = () => {
      throw new Error("no numbers left");
    };
    const failing = { ...base, sampling: { ...base.sampling, temperature: 1 }, random };
    const outcomes = await Promise.allSettled([
      sampler.sample(failing),
      sampler.sample(request(prompt(3, 6), 3)),
      sampler.score([1, 2], [3]),
    ]);
    expect(outcomes.map(({ status }) => status)).toEqual(["rejected", "rejected", "rejected"]);
    expect((await sampler.sample(request(prompt(3, 6), 3))).tokens).toEqual(expected.tokens);
    await sampler.release();
  });

  it("rejects invalid tokens without affecting other sequences", async () => {
    const sampler = await Sampler.create(model);
    const other = sampler.sample(request(prompt(3, 6), 3));
    await expect(sampler.sample(request([5, 1_000_000], 1))).rejects.toThrow(", got 1000000.");
    await expect(sampler.score([1], [-1])).rejects.toThrow(", got -1.");
    expect((await other).tokens).toHaveLength(8);
    await sampler.release();
  });

  it("scores continuations with a common prefix, also improbable ones", async () => {
    const scoring = await ScoringGraph.create(model);
    const sampler = await Sampler.create(model);
    const base = prompt(6, 30);
    const continuations = [[1], [1, 2], [300, 4, 5], [1, 2]];
    const scores = await Promise.all(continuations.map((tokens) => sampler.score(base, tokens)));
    for (const [i, tokens] of continuations.entries())
      expectClose(scores[i], await trainerLogProbs(scoring, [...base, ...tokens], base.length));
    expect(await sampler.score(base, [])).toEqual([]);
    await sampler.release();
    await scoring.release();
  });

  it("keeps the states of frozen layers, from which the trainer computes the same log-probabilities", async () => {
    const adapted = await getPeftModel(model, { r: 2, layersToTransform: [1] });
    const states = (await FrozenStates.create(adapted))!;
    const scoring = await ScoringGraph.create(adapted, { keepsFrozenStates: true });
    const sampler = await Sampler.create(adapted);
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
    const states = (await FrozenStates.create(adapted))!;
    const scoring = await ScoringGraph.create(adapted);
    const sampler = await Sampler.create(adapted);
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

function streamOf(seed: number): () => number {
  const random = new RandomStream(seed);
  return () => random.random();
}
