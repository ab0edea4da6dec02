import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { expectClose, GREEDY, PLAIN, request, trainerLogProbs, whole } from "../../../test/support/sampler.js";
import { supportedModelTypes } from "../../models/architectures/index.js";
import { CausalLM } from "../../models/causal-lm.js";
import { loadAdapter } from "../../models/save-model.js";
import { ScoringGraph } from "../../models/graphs/training-graph.js";
import { ModelFixture } from "../../../test/parity/models/model-fixture.js";
import { RandomStream } from "../../core/random/random-stream.js";
import { Sampler } from "./sampler.js";

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
