import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { writeRandomModel } from "../../../test/support/random-model.js";
import { cursorAfter } from "../../../test/support/constrained-sampling.js";
import { AutoModelForCausalLM } from "../auto-model.js";
import type { LanguageModel } from "../language-model.js";
import type { GenerationOptions } from "../generation-options.js";

const messages = [{ role: "user", content: "Where to?" }];

describe("generation constrained to a pattern", () => {
  let model: LanguageModel;
  let remove: () => Promise<void>;
  beforeAll(async () => {
    const made = await writeRandomModel({ scale: 0.25, generationConfig: { do_sample: true, top_k: 2, top_p: 0.3 } });
    remove = made.remove;
    model = await AutoModelForCausalLM.fromPretrained(made.folder, { device: "cpu", threads: 1 });
  });
  afterAll(async () => {
    await model.close();
    await remove();
  });

  const many = (count: number, options: GenerationOptions) =>
    model.generateBatch(
      Array.from({ length: count }, () => messages),
      { seed: 0, ...options },
    );

  it("generates only matches within any maximum length", async () => {
    const regex = /(go|look) \w{2,}( [é日🎲]*)?!/u;
    const lengths = [8, 16, 40];
    for (const maxNewTokens of lengths) {
      for (const completion of await many(60, { regex, maxNewTokens })) {
        expect(completion.text).toMatch(new RegExp(`^(?:${regex.source})$`, "u"));
        expect(completion.finishReason).toBe("stop");
        expect(completion.tokens.length).toBeLessThanOrEqual(maxNewTokens);
      }
    }
    const { text } = await model.generate("The player", { regex: " \\w+", maxNewTokens: 6, seed: 1 });
    expect(text).toMatch(/^ \w+$/);
    const greedy = await model.generate(messages, { regex, temperature: 0, maxNewTokens: 16 });
    expect(greedy.logProbs.every((logProb) => logProb === 0)).toBe(true);
    expect(greedy.text).toMatch(/^(go|look) /);
  });

  it("generates JSON of a schema, also with a repetition penalty or top-k", async () => {
    const jsonSchema = {
      type: "object",
      properties: { thought: { type: "string" }, action: { enum: ["left", "right"] } },
      required: ["thought", "action"],
    };
    for (const options of [{}, { repetitionPenalty: 1.3 }, { topK: 3, temperature: 0.5 }]) {
      for (const completion of await many(20, { jsonSchema, maxNewTokens: 60, ...options })) {
        const value = JSON.parse(completion.text) as { thought: string; action: string };
        expect(Object.keys(value)).toEqual(["thought", "action"]);
        expect(["left", "right"]).toContain(value.action);
      }
    }
  });

  it("samples tokens with p / sum of p over the allowed tokens, which the completion records", async () => {
    const [completion] = await many(1, { regex: "(up|down) \\d+[.!?]", maxNewTokens: 12, temperature: 0.7 });
    for (const [i, token] of completion.tokens.entries()) {
      const before = completion.tokens.slice(0, i);
      const allowed = [...completion.allowedTokens![i]];
      expect(allowed).toContain(token);
      const scores = await model.score(
        [...completion.promptTokens, ...before],
        allowed.map((id) => [id]),
      );
      const logits = scores.map(({ logProb }) => logProb / 0.7);
      const largest = Math.max(...logits);
      const mass = logits.reduce((sum, logit) => sum + Math.exp(logit - largest), 0);
      const expected = logits[allowed.indexOf(token)] - largest - Math.log(mass);
      expect(completion.logProbs[i]).toBeCloseTo(expected, 4);
    }
  });

  it("generates each text with the frequency of its probability", async () => {
    const [regex, maxNewTokens] = ["(go|up)!?", 4];
    const completions = await many(3_000, { regex, maxNewTokens });
    const [{ promptTokens }] = completions;
    const constraint = model.compilePattern({ regex }, { maxNewTokens });
    const probabilities = new Map<string, number>();
    const visit = async (tokens: readonly number[], probability: number): Promise<void> => {
      const allowed = [...cursorAfter(constraint, tokens).allowedTokens];
      if (allowed.length === 0) {
        const text = model.tokenizer.decode(tokens, { skipSpecialTokens: true });
        probabilities.set(text, (probabilities.get(text) ?? 0) + probability);
        return;
      }
      const scores = await model.score(
        [...promptTokens, ...tokens],
        allowed.map((id) => [id]),
      );
      const weights = scores.map(({ logProb }) => Math.exp(logProb));
      const mass = weights.reduce((sum, weight) => sum + weight, 0);
      for (const [i, token] of allowed.entries()) await visit([...tokens, token], (probability * weights[i]) / mass);
    };
    await visit([], 1);
    expect([...probabilities.keys()].sort()).toEqual(["go", "go!", "up", "up!"]);
    expect([...probabilities.values()].reduce((sum, value) => sum + value, 0)).toBeCloseTo(1, 6);
    let chiSquared = 0;
    for (const [text, probability] of probabilities) {
      const expected = probability * completions.length;
      const found = completions.filter((completion) => completion.text === text).length;
      chiSquared += (found - expected) ** 2 / expected;
    }
    // 99.9 % of the values for 3 degrees of freedom.
    expect(chiSquared).toBeLessThan(16.3);
  });

  it.each<[GenerationOptions, RegExp]>([
    [{ regex: "a", choices: ["a"] }, /`choices` and `regex` are mutually exclusive/],
    [{ regex: "a", jsonSchema: { type: "null" } }, /`regex` and `jsonSchema` are mutually exclusive/],
    [{ regex: "a", stop: "b" }, /`regex` is incompatible with `stop`/],
    [{ jsonSchema: { type: "null" }, ignoreEos: true }, /`jsonSchema` is incompatible with `ignoreEos`/],
    [{ regex: 3 as unknown as string }, /`regex` must be a string or RegExp, got 3/],
    [{ jsonSchema: [] as unknown as Record<string, unknown> }, /`jsonSchema` must be an object, got a list/],
    [{ regex: "(?=a)" }, /lookaheads/],
    [{ regex: "[]" }, /"\[\]" matches no text/],
    [
      { regex: "[a-z]{40}", maxNewTokens: 4 },
      /"\[a-z\]\{40\}" needs up to \d+ tokens, but the completion is limited to 4/,
    ],
    [{ jsonSchema: { unevaluatedItems: false } }, /"unevaluatedItems" is not supported/],
    [{ choices: [1, "a"] as unknown as string[] }, /`choices` must be a list of strings, got number/],
    [{ choices: null as unknown as string[] }, /`choices` must be a list of strings, got null/],
    [{ choices: [undefined] as unknown as string[] }, /`choices` must be a list of strings, got undefined/],
    [{ choices: Array.from({ length: 1_000_000 }, (_, i) => `choice ${i}`) }, /`choices` has 1000000 texts/],
    [{ choices: ["hit ".repeat(300_000)] }, /The choice "hit .* has 1200000 characters/],
    [{ choices: Array.from({ length: 20_000 }, (_, i) => `${"x".repeat(90)}${i}`) }, /`choices` has \d+ characters/],
  ])("rejects options, case %#", async (options, message) => {
    await expect(model.generate(messages, options)).rejects.toMatchObject({
      code: "INVALID_ARGUMENT",
      message: expect.stringMatching(message) as string,
    });
  });

  it("refuses a choice that does not fit into the context", async () => {
    const choices = ["hit ".repeat(20_000), "stay"];
    await expect(model.generate(messages, { choices })).rejects.toMatchObject({ code: "CONTEXT_OVERFLOW" });
    await expect(model.choose(messages, choices)).rejects.toMatchObject({ code: "CONTEXT_OVERFLOW" });
  });

  it("chooses among thousands of choices", async () => {
    const choices = Array.from({ length: 20_000 }, (_, i) => `choice ${i}`);
    const { text } = await model.generate(messages, { choices });
    expect(choices).toContain(text);
    await expect(model.choose(messages, choices)).rejects.toThrowError(
      /`choose` scores at most 4096 choices, got 20000/,
    );
  });
});
