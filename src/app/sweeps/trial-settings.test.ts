import { describe, expect, it } from "vitest";
import { RandomStream } from "../../core/random/random-stream.js";
import { enumerateGrid, sampleTrials } from "./trial-settings.js";

describe("enumerateGrid", () => {
  it("enumerates all combinations, the last setting changing fastest", () => {
    expect(enumerateGrid({ gamma: [0.9, 1], replies: ["choices", "scored", "free"] })).toEqual(
      [0.9, 1].flatMap((gamma) => ["choices", "scored", "free"].map((replies) => ({ gamma, replies }))),
    );
  });

  it("spaces the points of ranges evenly on their scale", () => {
    const values = (name: string, dimension: object) =>
      enumerateGrid({ [name]: dimension as never }).map((t) => t[name]);
    expect(values("gamma", { min: 0.9, max: 1, scale: "linear", points: 3 })).toEqual([0.9, 0.95, 1]);
    expect(values("learningRate", { min: 1e-4, max: 1, scale: "log", points: 5 })).toEqual([1e-4, 1e-3, 1e-2, 0.1, 1]);
    expect(values("batchSize", { min: 8, max: 128, scale: "log", points: 5 })).toEqual([8, 16, 32, 64, 128]);
    // Whole numbers that points share are tried once.
    expect(values("r", { min: 1, max: 3, scale: "linear", points: 5 })).toEqual([1, 2, 3]);
  });

  it("rejects a range without points, and a grid of too many combinations", () => {
    expect(() => enumerateGrid({ learningRate: { min: 0, max: 1 } })).toThrow(
      "A grid needs the values of learningRate",
    );
    const many = { min: 0, max: 1, points: 101 };
    expect(() => enumerateGrid({ learningRate: many, entropyCoef: many })).toThrow("The grid has 10201 combinations");
  });
});

describe("sampleTrials", () => {
  const search = {
    learningRate: { min: 1e-4, max: 1e-1, scale: "log" },
    gamma: { min: 0.9, max: 1, scale: "linear" },
    replies: ["choices", "scored"],
  } as const;

  it("draws each trial from its own stream", () => {
    const expected = [0, 1].map((number) => {
      const random = new RandomStream(7, [10, number]);
      const [rate, discount, reply] = [random.random(), random.random(), random.integers(2)];
      return [1e-4 * 1000 ** rate, 0.9 + 0.1 * discount, ["choices", "scored"][reply]];
    });
    const trials = sampleTrials(search, 2, 7);
    for (const [i, [rate, discount, reply]] of expected.entries()) {
      expect(trials[i].learningRate).toBeCloseTo(rate as number, 12);
      expect(trials[i].gamma).toBeCloseTo(discount as number, 12);
      expect(trials[i].replies).toBe(reply);
    }
  });

  it("extends the trials of a smaller sweep", () => {
    expect(sampleTrials(search, 40, 3).slice(0, 12)).toEqual(sampleTrials(search, 12, 3));
    expect(sampleTrials(search, 12, 4)).not.toEqual(sampleTrials(search, 12, 3));
  });

  it("samples log ranges log-uniformly and linear ranges uniformly", () => {
    const trials = sampleTrials(search, 6000, 1);
    const share = (isIn: (trial: (typeof trials)[number]) => boolean) => trials.filter(isIn).length / trials.length;
    // Five standard errors of a share of a third are 0.03.
    for (const low of [1e-4, 1e-3, 1e-2])
      expect(
        Math.abs(share((t) => Number(t.learningRate) >= low && Number(t.learningRate) < 10 * low) - 1 / 3),
      ).toBeLessThan(0.03);
    expect(Math.abs(share(({ gamma }) => Number(gamma) < 0.95) - 1 / 2)).toBeLessThan(0.033);
    expect(Math.abs(share(({ replies }) => replies === "scored") - 1 / 2)).toBeLessThan(0.033);
  });

  it("samples integers including both ends, on either scale", () => {
    const numbers = (scale: "linear" | "log") =>
      Array.from({ length: 4000 }, (_, seed) => sampleTrials({ r: { min: 1, max: 4, scale } }, 1, seed)[0].r as number);
    for (const scale of ["linear", "log"] as const) {
      const drawn = numbers(scale);
      for (const value of [1, 2, 3, 4]) {
        const expected = scale === "linear" ? 1 / 4 : Math.log((value + 1) / value) / Math.log(5);
        const share = drawn.filter((number) => number === value).length / drawn.length;
        expect(Math.abs(share - expected)).toBeLessThan(0.04);
      }
      expect(new Set(drawn).size).toBe(4);
    }
  });

  it("draws no duplicates, and reports too few combinations", () => {
    const small = { replies: ["choices", "scored"], gamma: [0.9, 0.95, 1] } as const;
    const trials = sampleTrials(small, 6, 0).map((trial) => JSON.stringify(trial));
    expect([...trials].sort()).toEqual(
      enumerateGrid(small)
        .map((trial) => JSON.stringify(trial))
        .sort(),
    );
    expect(() => sampleTrials(small, 7, 0)).toThrow("about 6 combinations");
  });
});
