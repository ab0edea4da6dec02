import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { AutoModelForCausalLM } from "../../generation/auto-model.js";
import type { LanguageModel } from "../../generation/language-model.js";
import { Caller, type CallerOptions } from "./caller.js";
import { startHttpServer, type RunningServer } from "./http-server.js";
import { ModelChatEngine } from "./model-chat-engine.js";
import { serveModels } from "./serve-models.js";

const CONTEXTS = Array.from({ length: 30 }, (_, i) => `Your current total is ${i}. hit or stay?`);
const CANDIDATES = CONTEXTS.map((_, i) =>
  i % 2 === 0 ? ["hit", "stay"] : ["stay now", "hit", " hit again and again"],
);

let model: LanguageModel;
let server: RunningServer;
let caller: Caller;

beforeAll(async () => {
  model = await AutoModelForCausalLM.fromPretrained("embedded");
  server = await startHttpServer({ port: 0 }, (app) =>
    serveModels(app, [new ModelChatEngine(model, "embedded")], {
      outputs: { states: ({ hidden }) => hidden, logits: ({ logits }) => logits },
    }),
  );
  caller = new Caller({ baseURL: `${server.url}/v1` });
});

afterAll(async () => {
  await server.close();
  await model.close();
});

describe("Caller", () => {
  it("returns the model's scores, for many callers at once", async () => {
    const others = Array.from({ length: 8 }, () => new Caller({ baseURL: `${server.url}/v1`, model: "embedded" }));
    const results = await Promise.all(others.map((other) => other.score(CONTEXTS, CANDIDATES)));
    for (const [i, context] of CONTEXTS.entries()) {
      const expected = await model.score(context, CANDIDATES[i]);
      for (const scores of results) scores[i].forEach((score, k) => expect(score).toBeCloseTo(expected[k].logProb, 4));
    }
  });

  it("computes registered outputs of hidden states and logits for each token", async () => {
    const computed = await caller.compute(["states", "logits"], CONTEXTS.slice(0, 3), CANDIDATES.slice(0, 3));
    const scores = await caller.score(CONTEXTS.slice(0, 3), CANDIDATES.slice(0, 3));
    computed.forEach((candidates, i) =>
      candidates.forEach(({ states, logits }, k) => {
        const tokens = model.tokenizer.encodeContinuation(CANDIDATES[i][k], undefined);
        expect(states).toHaveLength(tokens.length);
        expect(states[0]).toHaveLength(model.causalLM.config.hiddenSize);
        const logProbs = logits.map(
          (row, j) => row[tokens[j]] - Math.log(row.reduce((sum, x) => sum + Math.exp(x), 0)),
        );
        expect(logProbs.reduce((sum, value) => sum + value, 0)).toBeCloseTo(scores[i][k], 3);
      }),
    );
  });

  it("generates completions of each context", async () => {
    const options = { numReturnSequences: 3, maxNewTokens: 4, seed: 1 };
    const completions = await caller.generate(CONTEXTS.slice(0, 2), options);
    expect(completions.map(({ length }) => length)).toEqual([3, 3]);
    expect(completions[0][0].logProb).toBeLessThan(0);
  });

  it.each([
    [{}, "`baseURL` must be a URL such as http://127.0.0.1:8080/v1, got undefined."],
    [{ baseURL: "127.0.0.1:8080" }, "`baseURL` must be a URL"],
    [{ baseURL: "http://127.0.0.1:8080/v1", apiKey: "a\nb" }, "The key in `apiKey` contains a line break"],
  ])("refuses %j", (options, message) => {
    expect(() => new Caller(options as CallerOptions)).toThrow(message);
  });

  it("throws the server's errors, and one for a server that does not answer", async () => {
    await expect(caller.compute(["norm"], ["a"], [["b"]])).rejects.toMatchObject({ code: "INVALID_ARGUMENT" });
    await expect(caller.score(["hit ".repeat(5000)], [["b"]])).rejects.toMatchObject({ code: "INVALID_ARGUMENT" });
    const other = new Caller({ baseURL: `${server.url}/other` });
    await expect(other.score(["a"], [["b"]])).rejects.toThrow("There is no POST /other/score");
    await expect(new Caller({ baseURL: "http://127.0.0.1:1" }).score(["a"], [["b"]])).rejects.toMatchObject({
      code: "INVALID_STATE",
    });
  });
});
