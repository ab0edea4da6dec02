import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { ParityReport } from "../../../../test/parity/parity-report.js";
import { runSamplingParity } from "../../../../test/parity/sampling.js";
import { tokenProbabilities } from "../../../../test/parity/token-probabilities.js";
import { argMax, rawLogProb, sampleToken, type SamplingParams } from "./sampling.js";

const PLAIN: SamplingParams = { temperature: 1, topK: 0, topP: 1, minP: 0, repetitionPenalty: 1 };

function softmax(logits: readonly number[]): Float32Array {
  const largest = Math.max(...logits);
  const weights = logits.map((logit) => Math.exp(logit - largest));
  const sum = weights.reduce((total, weight) => total + weight, 0);
  return Float32Array.from(weights, (weight) => weight / sum);
}

const scores = (logits: readonly number[]) => ({ logits: Float32Array.from(logits), probabilities: softmax(logits) });

describe("tokenProbabilities", () => {
  it("match Transformers for each parameter alone and for all together", async () => {
    const lines: string[] = [];
    const report = new ParityReport((line) => lines.push(line));
    await runSamplingParity(fileURLToPath(new URL("../../../../test/fixtures/sampling", import.meta.url)), report, {});
    expect(lines.filter((line) => !line.startsWith("ok"))).toEqual([]);
    expect(report.passed).toBe(40);
  });

  it("are restricted to the allowed tokens, even where their probabilities underflow", () => {
    const logits = [300, 0, Math.log(3), 0];
    const ours = tokenProbabilities(scores(logits), PLAIN, [], Int32Array.of(1, 2));
    expect([...ours]).toEqual([0, expect.closeTo(0.25, 6), expect.closeTo(0.75, 6), 0]);
  });
});

describe("sampleToken", () => {
  const logits = [1, 3, 2, 0.5, -1];

  it.each([
    PLAIN,
    { ...PLAIN, topK: 3 },
    { ...PLAIN, topP: 0.8 },
    { ...PLAIN, minP: 0.2 },
    { ...PLAIN, repetitionPenalty: 1.5 },
  ])("cuts the unit interval into the distribution's probabilities: %j", (settings) => {
    const seen = [1, 4];
    const expected = tokenProbabilities(scores(logits), settings, seen);
    const counts = new Float64Array(logits.length);
    const draws = 2_000;
    for (let i = 0; i < draws; i++) {
      const { token, logProb } = sampleToken(scores(logits), settings, seen, (i + 0.5) / draws);
      counts[token] += 1 / draws;
      expect(logProb).toBeCloseTo(Math.log(expected[token]), 6);
    }
    counts.forEach((share, token) => expect(Math.abs(share - expected[token])).toBeLessThan(1e-3));
  });

  it("selects the first best token after the repetition penalty at temperature 0", () => {
    const greedy = { ...PLAIN, temperature: 0 };
    expect(sampleToken(scores(logits), greedy, [], 0.99)).toEqual({ token: 1, logProb: 0 });
    expect(sampleToken(scores(logits), { ...greedy, repetitionPenalty: 2 }, [1], 0).token).toBe(2);
    expect(sampleToken(scores(logits), greedy, [], 0, Int32Array.of(0, 4)).token).toBe(0);
    expect(argMax(Float32Array.of(2, 2))).toBe(0);
  });

  it("rejects logits that are not finite", () => {
    const broken = { logits: Float32Array.of(NaN, NaN), probabilities: Float32Array.of(NaN, NaN) };
    expect(() => sampleToken(broken, PLAIN, [], 0.5)).toThrowError(/not finite/);
    expect(() => sampleToken(broken, { ...PLAIN, topP: 0.5 }, [], 0.5)).toThrowError(/not finite/);
    expect(() => sampleToken(broken, { ...PLAIN, temperature: 0 }, [], 0.5)).toThrowError(/not finite/);
    for (const values of [
      [1, NaN],
      [NaN, 1],
      [Infinity, 1],
      [-Infinity, -Infinity],
    ])
      expect(() => argMax(Float32Array.from(values))).toThrowError(/not finite/);
    expect(argMax(Float32Array.of(-Infinity, 1))).toBe(1);
    expect(() => rawLogProb(Float32Array.of(1, NaN), Float32Array.of(NaN, NaN), 0)).toThrowError(/not finite/);
  });
});

describe("rawLogProb", () => {
  it("equals the log-softmax, even below the smallest float32", () => {
    const logits = [250, 249, 10, -200];
    const sum = 250 + Math.log(1 + Math.exp(-1));
    logits.forEach((logit, token) =>
      expect(rawLogProb(Float32Array.from(logits), softmax(logits), token)).toBeCloseTo(logit - sum, 4),
    );
  });
});
