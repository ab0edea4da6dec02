import { describe, expect, it } from "vitest";
import { RandomStream } from "../../../core/random/random-stream.js";
import { filterThreshold, filterTopP } from "./token-filters.js";

/** Probabilities whose logits have a standard deviation of `scale`; larger is more peaked. */
function probabilities(count: number, scale: number, seed: number): Float32Array {
  const random = new RandomStream(seed);
  const weights = Array.from({ length: count }, () => Math.exp(scale * random.normal()));
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  return Float32Array.from(weights, (weight) => weight / total);
}

const keptIds = ({ ids, count }: { ids: Int32Array; count: number }) =>
  [...ids.subarray(0, count)].sort((a, b) => a - b);

describe("filterTopP", () => {
  it.each([0, 0.5, 2, 6, 12])("keeps what sorting keeps, at scale %d", (scale) => {
    for (const count of [1, 5, 1_003, 20_000])
      for (const topP of [0, 0.3, 0.9, 0.999]) {
        const weights = probabilities(count, scale, count);
        const order = [...weights.keys()].sort((a, b) => weights[b] - weights[a] || a - b);
        let mass = 0;
        const expected = order.filter((id, rank) => {
          const isKept = rank === 0 || mass < topP;
          mass += weights[id];
          return isKept;
        });
        expect(keptIds(filterTopP(weights, topP))).toEqual(expected.sort((a, b) => a - b));
      }
  });
});

describe("filterThreshold", () => {
  it("keeps positive weights from the threshold on, in order", () => {
    const weights = Float32Array.of(0.5, 0, -0, 1e-45, 0.25, 0.125, 0.25);
    expect([...filterThreshold(weights, 0).ids]).toEqual([0, 3, 4, 5, 6]);
    expect([...filterThreshold(weights, 0.25).ids]).toEqual([0, 4, 6]);
    expect([...filterThreshold(weights, 0.25).probabilities]).toEqual([0.5, 0.25, 0.25]);
    expect(filterThreshold(weights.subarray(1, 3), 0).count).toBe(0);
  });
});
