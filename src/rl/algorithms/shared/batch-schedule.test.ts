import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { BatchSchedule } from "./batch-schedule.js";

const settings = { batchSize: 3, maxBatchTokens: undefined, numTrainEpochs: 2, maxSteps: undefined, seed: 1 };
const example = (length: number) => ({ tokens: Array.from({ length }, () => 1), lossMask: [] });
const countTokens = ({ tokens }: ReturnType<typeof example>) => tokens.length;

describe("BatchSchedule", () => {
  it("contains all examples in each epoch, in a new order each time", () => {
    const examples = Array.from({ length: 10 }, (_, i) => example(i + 1));
    const plan = new BatchSchedule(examples, settings, countTokens);
    expect(plan.totalSteps).toBe(8);
    const lengths = (from: number, to: number) =>
      Array.from({ length: to - from }, (_, i) => plan.batch(from + i).examples.map(({ tokens }) => tokens.length));
    const [first, second] = [lengths(0, 4).flat(), lengths(4, 8).flat()];
    const all = examples.map(({ tokens }) => tokens.length);
    expect([...first].sort((a, b) => a - b)).toEqual(all);
    expect([...second].sort((a, b) => a - b)).toEqual(all);
    expect(first).not.toEqual(second);
    expect(lengths(0, 4).map(({ length }) => length)).toEqual([3, 3, 3, 1]);
  });

  it("returns the epoch, and ends within an epoch if `numTrainEpochs` is fractional", () => {
    const examples = Array.from({ length: 12 }, () => example(1));
    const plan = new BatchSchedule(examples, { ...settings, numTrainEpochs: 1.5 }, countTokens);
    expect(plan.totalSteps).toBe(6);
    expect([0, 3, 5].map((step) => plan.batch(step).epoch)).toEqual([0.25, 1, 1.5]);
    expect(new BatchSchedule(examples, { ...settings, maxSteps: 7 }, countTokens).totalSteps).toBe(7);
  });

  it("depends only on the seed and the update's index", () => {
    const examples = Array.from({ length: 20 }, (_, i) => example(i + 1));
    const [one, same, other] = [1, 1, 2].map((seed) => new BatchSchedule(examples, { ...settings, seed }, countTokens));
    expect(same.batch(9)).toEqual(one.batch(9));
    expect(other.batch(9)).not.toEqual(one.batch(9));
  });

  it("stays within a token budget, unless one example is longer", () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 30 }), { minLength: 1, maxLength: 40 }), (lengths) => {
        const plan = new BatchSchedule(
          lengths.map(example),
          { ...settings, maxBatchTokens: 20, numTrainEpochs: 1 },
          countTokens,
        );
        let seen = 0;
        for (let step = 0; step < plan.totalSteps; step++) {
          const { examples } = plan.batch(step);
          const tokens = examples.reduce((sum, { tokens }) => sum + tokens.length, 0);
          expect(tokens <= 20 || examples.length === 1).toBe(true);
          seen += examples.length;
        }
        expect(seen).toBe(lengths.length);
      }),
    );
  });
});
