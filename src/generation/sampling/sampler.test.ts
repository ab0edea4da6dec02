import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { expectClose, GREEDY, PLAIN, prompt, request, trainerLogProbs, whole } from "../../../test/support/sampler.js";
import { writeRandomModel } from "../../../test/support/random-model.js";
import { CausalLM } from "../../models/causal-lm.js";
import { ScoringGraph } from "../../models/graphs/training-graph.js";
import { RandomStream } from "../../core/random/random-stream.js";
import { DecodeSession } from "../cache/decode-session.js";
import type { SampleOutput } from "./sample-request.js";
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

  it.each([28, 29, 30, 31])(
    "scores a continuation after %i tokens of a prefix of 30 that running sequences share",
    async (length) => {
      const alone = await Sampler.create(model);
      const tokens = [...prompt(1, 30), 1, 2, 3, 4, 5];
      const expected = await alone.score(tokens.slice(0, length), tokens.slice(length));
      await alone.release();
      const sampler = await Sampler.create(model, { maxNumSequences: 2 });
      const running = [4, 24].map((maxNewTokens) =>
        sampler.sample(request([...tokens.slice(0, 30), maxNewTokens], 1, { maxNewTokens })),
      );
      expectClose(await sampler.score(tokens.slice(0, length), tokens.slice(length)), expected);
      await Promise.all(running);
      await sampler.release();
    },
  );

  it.each([
    ["first", 0],
    ["last", 1],
  ])("samples the same tokens after a part of a stashed row was restored to the %s row", async (_, ended) => {
    const sampler = await Sampler.create(model);
    const greedy = (tokens: readonly number[], maxNewTokens: number) =>
      sampler.sample(request(tokens, 0, { sampling: GREEDY, maxNewTokens }));
    const short = [prompt(50, 5), prompt(60, 6)];
    const long = Array.from({ length: 16 }, (_, i) => prompt(100 + i, 40));
    const expected = await Promise.all([...short.map((tokens) => greedy(tokens, 24)), greedy(long[5].slice(0, 25), 1)]);
    await Promise.all(long.map((tokens) => greedy(tokens, 1)));
    const running = short.map((tokens, i) => greedy(tokens, i === ended ? 12 : 24));
    await running[ended];
    expect((await greedy(long[5].slice(0, 25), 1)).tokens).toEqual(expected[2].tokens);
    expect((await running[1 - ended]).tokens).toEqual(expected[1 - ended].tokens);
    await sampler.release();
  });

  it("rejects every sequence when a request to the worker fails, also those that are about to get a row", async () => {
    const sampler = await Sampler.create(model);
    await sampler.sample(request(prompt(1, 40), 1));
    const fail = vi.spyOn(model.runtime, "sequence").mockRejectedValueOnce(new Error("the worker failed"));
    const outcomes = await Promise.allSettled([2, 3, 4].map((seed) => sampler.sample(request(prompt(seed, 60), seed))));
    expect(outcomes.map(({ status }) => status)).toEqual(["rejected", "rejected", "rejected"]);
    fail.mockRestore();
    expect((await sampler.sample(request(prompt(5, 6), 5))).tokens).toHaveLength(8);
    await sampler.release();
  });

  it("ends only the sequence whose callback throws", async () => {
    const sampler = await Sampler.create(model);
    const thrown = new Error("the reader is gone");
    const onToken = () => {
      throw thrown;
    };
    const [failed, other] = await Promise.allSettled([
      sampler.sample(request(prompt(1, 5), 1, { onToken })),
      sampler.sample(request(prompt(2, 5), 2)),
    ]);
    expect(failed).toEqual({ status: "rejected", reason: thrown });
    expect(other).toMatchObject({ status: "fulfilled", value: { tokens: { length: 8 } } });
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

  it("prefills at most 512 tokens of short prompts per step", async () => {
    const scoring = await ScoringGraph.create(model);
    const sampler = await Sampler.create(model);
    const prepare = vi.spyOn(DecodeSession.prototype, "prepare");
    // The prompts of each pair are equal, and computed once.
    const prompts = Array.from({ length: 12 }, (_, i) => prompt(i >> 1, 150));
    const outputs = await Promise.all(prompts.map((tokens, i) => sampler.sample(request(tokens, i))));
    const counts = prepare.mock.calls.map(([{ rows }]) => rows.reduce((sum, { tokens }) => sum + tokens.length, 0));
    expect(counts.filter((count) => count > 12)).toEqual([450, 450]);
    for (const [i, output] of outputs.entries())
      expectClose(output.rawLogProbs, await trainerLogProbs(scoring, whole(prompts[i], output), prompts[i].length));
    prepare.mockRestore();
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
    // Two prompts of 40 tokens with 20 in common, each requested three times, and a third prompt;
    // completions of one token.
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

  it.each([2, 5, 64])("scores the continuations of several prompts together, with %i rows", async (maxNumSequences) => {
    const alone = await Sampler.create(model);
    const sampler = await Sampler.create(model, { maxNumSequences });
    const bases = [prompt(6, 30), prompt(7, 12), [...prompt(6, 30), 4], prompt(8, 3)];
    const continuations = [[1], [1, 2], [300, 4, 5], [1, 2], Array.from({ length: 9 }, (_, i) => i), prompt(9, 12)];
    const running = sampler.sample(request(prompt(6, 31), 2, { maxNewTokens: 8 }));
    for (let repeat = 0; repeat < 2; repeat++) {
      const pairs = bases.flatMap((base) => continuations.map((tokens) => [base, tokens] as const));
      const scores = pairs.map(([base, tokens]) => sampler.score(base, tokens, { sharesPrompt: true }));
      for (const [i, [base, tokens]] of pairs.entries()) expectClose(await scores[i], await alone.score(base, tokens));
    }
    expect((await running).tokens).toHaveLength(8);
    await sampler.release();
    await alone.release();
  });
});

function streamOf(seed: number): () => number {
  const random = new RandomStream(seed);
  return () => random.random();
}
