import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { toDatum } from "../../../test/support/tinker-client.js";
import { AutoModelForCausalLM } from "../../generation/auto-model.js";
import type { LanguageModel } from "../../generation/index.js";
import { checkPass, splitPass, type PassPart } from "./training-pass.js";

/** Longer than a shared prefix must be to pay off. */
const PROMPT = Array.from({ length: 200 }, (_, i) => 5 + (i % 50));
const ANSWERS = [
  [60, 61, 62],
  [60, 61, 63],
  [70, 71],
];

let model: LanguageModel;
beforeAll(async () => void (model = await AutoModelForCausalLM.fromPretrained("embedded")));
afterAll(() => model.close());

function split(lossFn: string, inputs: readonly string[]): { parts: PassPart[]; count: number } {
  const data = ANSWERS.map((answer) => {
    const tokens = [...PROMPT, ...answer];
    const values = tokens.slice(1).map((_, i) => (i < PROMPT.length - 1 ? 0 : 1));
    return toDatum(tokens.slice(0, -1), tokens.slice(1), Object.fromEntries(inputs.map((name) => [name, values])));
  });
  const { config } = model.causalLM;
  const pass = checkPass({ modelId: "m", seqId: 1, data, lossFn, lossFnConfig: {}, forwardOnly: false }, config);
  return { parts: [...splitPass(pass, config)], count: data.reduce((sum, { tokens }) => sum + tokens.length, 0) };
}

describe("parts of a training pass", () => {
  it.each([
    ["cross_entropy", ["weights"], 199 + 3 + 1 + 2],
    // Tokens with an advantage keep their own place.
    ["importance_sampling", ["logprobs", "advantages"], 199 + 3 + 3 + 2],
    ["gspo", ["logprobs", "advantages", "sequence_ratio_mask"], 199 + 3 + 3 + 2],
    // Without an advantage it still has a part in the loss.
    ["dro", ["logprobs", "advantages"], 202 + 202 + 201],
  ])("have equal targets of a shared prompt once in %s", (loss, inputs, expected) => {
    const { parts, count } = split(loss, inputs);
    const cells = parts.flatMap((part) => part.cells.flat().map(([datum, index]) => `${datum} ${index}`));
    expect(new Set(cells).size).toBe(count);
    expect(cells).toHaveLength(count);
    expect(parts.reduce((sum, { batch }) => sum + batch.selected.length, 0)).toBe(expected);
  });
});
