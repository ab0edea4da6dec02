import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { writeRandomModel } from "../../../test/support/random-model.js";
import { cursorAfter } from "../../../test/support/constrained-sampling.js";
import { AutoModelForCausalLM } from "../auto-model.js";
import { ChoiceConstraint } from "./choice-constraint.js";
import type { LanguageModel } from "../language-model.js";

const allowedAfter = (constraint: ChoiceConstraint, tokens: readonly number[]) => [
  ...cursorAfter(constraint, tokens).allowedTokens,
];

describe("ChoiceConstraint", () => {
  it("allows the tokens that lead to a choice, and an end token where a choice begins others", () => {
    const constraint = new ChoiceConstraint([[5, 3], [5, 3, 8], [5, 1], [9]], 2);
    expect(allowedAfter(constraint, [])).toEqual([5, 9]);
    expect(allowedAfter(constraint, [5])).toEqual([1, 3]);
    expect(allowedAfter(constraint, [5, 3])).toEqual([2, 8]);
    for (const end of [[5, 3, 2], [5, 3, 8], [5, 1], [9], [4], [9, 9]])
      expect(allowedAfter(constraint, end)).toEqual([]);
    expect([[5, 3, 2], [5, 3, 8], [5, 1], [9]].map((tokens) => constraint.findChoice(tokens))).toEqual([0, 1, 2, 3]);
    expect([[], [5], [5, 3], [4]].map((tokens) => constraint.findChoice(tokens))).toEqual([
      undefined,
      undefined,
      undefined,
      undefined,
    ]);
    expect(constraint.maxLength).toBe(3);
  });

  it("renormalizes the model's log-probabilities at each token", () => {
    const constraint = new ChoiceConstraint([[1, 2], [1], [3]], 0);
    // p(1) = 0.2, p(3) = 0.1; after 1: p(2) = 0.05, p(end) = 0.15.
    const logs = [[0.2, 0.05], [0.2, 0.15], [0.1]].map((row) => row.map(Math.log));
    const probabilities = constraint.logProbs(logs).map(Math.exp);
    [(2 / 3) * 0.25, (2 / 3) * 0.75, 1 / 3].forEach((value, i) => expect(probabilities[i]).toBeCloseTo(value, 12));
    const sharper = constraint.logProbs(logs, 0.5).map(Math.exp);
    [0.8 * 0.1, 0.8 * 0.9, 0.2].forEach((value, i) => expect(sharper[i]).toBeCloseTo(value, 12));
  });

  it.each([
    [[], 2, "The list of choices is empty"],
    [[[1], []], 2, 'The choice "" has no tokens'],
    [[[1, 2], [3], [1, 2]], 2, 'The choices "1 2" and "1 2" have the same tokens'],
    [[[1], [1, 3]], undefined, 'The choice "1" is a prefix of another, and this model has no end token'],
    [[[1], [1, 2]], 2, 'The choice "1 2" is "1" with an end token'],
  ])("rejects %j with end token %s", (choices, endToken, message) => {
    expect(() => new ChoiceConstraint(choices, endToken)).toThrowError(
      expect.objectContaining({ code: "INVALID_ARGUMENT", message: expect.stringContaining(message) as string }),
    );
  });
});

describe("a model constrained to choices", () => {
  const choices = ["left", "right", "go", "go left", "go right now", "up"];
  const messages = [{ role: "user", content: "Where to?" }];
  let model: LanguageModel;
  let remove: () => Promise<void>;
  beforeAll(async () => {
    const made = await writeRandomModel({ scale: 0.25 });
    remove = made.remove;
    model = await AutoModelForCausalLM.fromPretrained(made.folder, { device: "cpu", threads: 1 });
  });
  afterAll(async () => {
    await model.close();
    await remove();
  });

  it("computes probabilities that sum to 1 and are products of renormalized token probabilities", async () => {
    const { probabilities } = await model.choose(messages, choices, { seed: 1 });
    expect(probabilities.reduce((sum, value) => sum + value, 0)).toBeCloseTo(1, 6);
    const prompt = model.tokenizer.encodeChat(messages, { addGenerationPrompt: true }).ids;
    const end = model.tokenizer.eosTokenId!;
    const tokens = choices.map((choice) => model.tokenizer.encodeContinuation(choice, prompt.at(-1)));
    const sequences = tokens.map((own) =>
      tokens.some((other) => other.length > own.length && own.every((token, i) => token === other[i]))
        ? [...own, end]
        : own,
    );
    for (const [i, sequence] of sequences.entries()) {
      let expected = 1;
      for (let at = 0; at < sequence.length; at++) {
        const begins = (other: readonly number[]) => sequence.slice(0, at).every((token, k) => token === other[k]);
        const next = [
          ...new Set(sequences.filter((other) => other.length > at && begins(other)).map((other) => other[at])),
        ];
        const scores = await model.score(
          [...prompt, ...sequence.slice(0, at)],
          next.map((token) => [token]),
        );
        const mass = scores.reduce((sum, { logProb }) => sum + Math.exp(logProb), 0);
        expected *= Math.exp(scores[next.indexOf(sequence[at])].logProb) / mass;
      }
      expect(probabilities[i]).toBeCloseTo(expected, 5);
    }
  });

  it("generates 10,000 completions that are choices, with the frequencies of their probabilities", async () => {
    const { probabilities } = await model.choose(messages, choices, { seed: 1 });
    const draws = 10_000;
    const completions = await model.generateBatch(
      Array.from({ length: draws }, () => messages),
      {
        choices,
        seed: 0,
        temperature: 1,
      },
    );
    const counts = choices.map(() => 0);
    for (const completion of completions) {
      expect(completion.text).toBe(choices[completion.choice!]);
      counts[completion.choice!]++;
    }
    const chiSquared = counts.reduce(
      (sum, count, i) => sum + (count - draws * probabilities[i]) ** 2 / (draws * probabilities[i]),
      0,
    );
    // 99.9 % of the values for 5 degrees of freedom.
    expect(chiSquared).toBeLessThan(20.5);
    for (const { choice, logProbs } of completions.slice(0, 50)) {
      const sum = logProbs.reduce((total, value) => total + value, 0);
      expect(sum).toBeCloseTo(Math.log(probabilities[choice!]), 4);
    }
  });

  it("samples with `choose` from the same probabilities, and takes the best at temperature 0", async () => {
    const counts = choices.map(() => 0);
    const draws = 400;
    const all = await Promise.all(
      Array.from({ length: draws }, (_, seed) => model.choose(messages, choices, { seed })),
    );
    for (const { index, choice, logProb, probabilities } of all) {
      counts[index]++;
      expect(choice).toBe(choices[index]);
      expect(logProb).toBeCloseTo(Math.log(probabilities[index]), 6);
    }
    const { probabilities } = all[0];
    const chiSquared = counts.reduce(
      (sum, count, i) => sum + (count - draws * probabilities[i]) ** 2 / (draws * probabilities[i]),
      0,
    );
    expect(chiSquared).toBeLessThan(20.5);
    const best = await model.choose(messages, choices, { temperature: 0 });
    expect(best.probabilities[best.index]).toBe(Math.max(...best.probabilities));
    expect(best.probabilities).toEqual(probabilities.map((value) => expect.closeTo(value, 5) as number));
  });

  it("rejects an empty list and equal choices", async () => {
    await expect(model.choose(messages, [])).rejects.toMatchObject({ code: "INVALID_ARGUMENT" });
    await expect(model.generate(messages, { choices: ["a", "a"] })).rejects.toThrowError(
      /"a" and "a" have the same tokens/,
    );
    await expect(model.generate(messages, { choices: ["a", ""] })).rejects.toThrowError(/The choice "" has no tokens/);
  });
});
