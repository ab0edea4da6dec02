import { expect } from "vitest";
import { RandomStream } from "../../src/core/random/random-stream.js";
import type { SamplingParams } from "../../src/engine/runtime/kernels/sampling.js";
import type { SampleOutput, SampleRequest } from "../../src/generation/sampling/sample-request.js";
import type { ScoringGraph } from "../../src/models/graphs/training-graph.js";

export const PLAIN: SamplingParams = { temperature: 1, topK: 0, topP: 1, minP: 0, repetitionPenalty: 1 };
export const GREEDY = { ...PLAIN, temperature: 0 };

/** A request of up to 8 tokens with its own random stream. */
export function request(prompt: readonly number[], seed: number, options: Partial<SampleRequest> = {}): SampleRequest {
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
export async function trainerLogProbs(
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

/** Expects numbers within a relative difference of 1e-4. */
export function expectClose(ours: readonly number[], expected: readonly number[]): void {
  expect(ours).toHaveLength(expected.length);
  ours.forEach((value, i) =>
    expect(Math.abs(value - expected[i])).toBeLessThanOrEqual(1e-4 * Math.max(1, Math.abs(expected[i]))),
  );
}

/** The tokens of prompt and completion. */
export const whole = (prompt: readonly number[], { tokens }: SampleOutput) => [...prompt, ...tokens];

/** Random tokens of the vocabulary of `writeRandomModel`. */
export function prompt(seed: number, length: number): number[] {
  const random = new RandomStream(seed);
  return Array.from({ length }, () => random.integers(320));
}
