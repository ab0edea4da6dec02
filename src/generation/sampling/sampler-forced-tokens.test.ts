import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { expectClose, GREEDY, PLAIN, prompt, request } from "../../../test/support/sampler.js";
import { constraintOf } from "../../../test/support/constrained-sampling.js";
import { writeRandomModel } from "../../../test/support/random-model.js";
import type { TokenDistribution } from "../../engine/runtime/kernels/sampling.js";
import { getPeftModel } from "../../models/adapters/get-peft-model.js";
import { CausalLM } from "../../models/causal-lm.js";
import { DecodeSession } from "../cache/decode-session.js";
import type { SampleRequest } from "./sample-request.js";
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
    // One step for the prompts and the first tokens, and one for each further token that is not
    // forced.
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
});
