import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { CausalLM } from "../../models/causal-lm.js";
import { ForwardPass } from "../../../test/parity/models/forward-pass.js";
import { Sampler } from "./sampler.js";

/** LongRoPE with an original length of 4: frequencies change between four and five tokens. */
const folder = fileURLToPath(new URL("../../../test/fixtures/models/phi3", import.meta.url));
const prompts = [[3, 7], [3, 7, 1, 20], Array.from({ length: 20 }, (_, i) => (5 * i) % 24), [3]];

let model: CausalLM;
let forward: ForwardPass;
let sampler: Sampler;

beforeAll(async () => {
  model = await CausalLM.open(folder, { device: "cpu" });
  forward = await ForwardPass.create(model);
  sampler = await Sampler.create(model);
});

afterAll(async () => {
  await model.close();
});

/** Computes the log-probability of a token after a sequence, without a cache. */
async function logProb(sequence: readonly number[], token: number): Promise<number> {
  const { logits } = await forward.run([sequence]);
  const last = logits.subarray(-model.config.vocabSize);
  return last[token] - Math.log(last.reduce((sum, value) => sum + Math.exp(value), 0));
}

describe("Sampler of a model whose rotary frequencies depend on the length", () => {
  it("samples as from each sequence alone, before and after its frequencies change", async () => {
    const sampling = { temperature: 0, topK: 0, topP: 1, minP: 0, repetitionPenalty: 1 };
    const draw = (prompt: number[]) =>
      sampler.sample({ prompt, sampling, maxNewTokens: 5, random: () => 0, stopTokens: new Set() });
    const replies = await Promise.all(prompts.map(draw));
    for (const [i, { tokens, rawLogProbs }] of replies.entries()) {
      for (const [k, token] of tokens.entries()) {
        const sequence = [...prompts[i], ...tokens.slice(0, k)];
        expect(rawLogProbs[k]).toBeCloseTo(await logProb(sequence, token), 4);
      }
    }
    // A prompt that continues a cached row must not reuse keys and values of other frequencies.
    const longer = [...prompts[0], ...replies[0].tokens.slice(0, 1)];
    const [again] = (await draw(longer)).rawLogProbs;
    expect(again).toBeCloseTo(replies[0].rawLogProbs[1], 4);
  });
});
