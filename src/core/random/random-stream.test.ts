import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { replayRandom, type RandomCase } from "../../../test/parity/gym/replay-random.js";
import { RandomStream } from "./random-stream.js";

const fixture = JSON.parse(readFileSync(new URL("../../../test/fixtures/gym/rng.json", import.meta.url), "utf8")) as {
  cases: RandomCase[];
};

describe("RandomStream", () => {
  for (const recorded of fixture.cases) {
    const replayed = replayRandom(recorded);
    it(`seeds as NumPy does from ${recorded.seed}`, () => {
      expect(replayed.seed_sequence_u32).toEqual(recorded.seed_sequence_u32);
      expect(replayed.seed_sequence_u64).toEqual(recorded.seed_sequence_u64);
      expect(replayed.state).toEqual(recorded.state);
    });
    for (const [name, group] of Object.entries(recorded.groups)) {
      it(`draws NumPy's ${name} from seed ${recorded.seed}, and ends in its state`, () => {
        expect(replayed.groups[name]).toEqual(group);
      });
    }
  }
});

describe("a stream's state", () => {
  it("resumes from a state in JSON, also between the two halves of a word", () => {
    const stream = new RandomStream(7);
    stream.integers(0, 10);
    const copy = RandomStream.fromState(JSON.parse(JSON.stringify(stream.getState())));
    const draws = (from: RandomStream) => [from.integers(0, 1000), from.random(), from.normal(), from.permutation(5)];
    expect(draws(copy)).toEqual(draws(stream));
  });

  it("differs between spawn keys, as NumPy's SeedSequence(42).spawn(2) does", () => {
    // np.random.Generator(np.random.PCG64(child)).random() for both children
    expect([new RandomStream(42, [0]).random(), new RandomStream(42, [1]).random()]).toEqual([
      0.9167441575549085, 0.4674907799518424,
    ]);
  });

  it("starts from entropy without a seed", () => {
    expect(new RandomStream().random()).not.toBe(new RandomStream().random());
  });
});

describe("bad arguments", () => {
  it.each([
    ["a negative seed", () => new RandomStream(-1), "at least 0"],
    ["a fractional seed", () => new RandomStream(1.5), "must be an integer"],
    ["an empty range", () => new RandomStream(0).integers(3, 3), "below high"],
    [
      "probabilities that do not add up to 1",
      () => new RandomStream(0).choiceIndex(2, { probabilities: [0.5, 0.6] }),
      "add up to 1",
    ],
    ["a negative probability", () => new RandomStream(0).choiceIndex(2, { probabilities: [-0.5, 1.5] }), "at least 0"],
    ["too large a sample", () => new RandomStream(0).sampleIndices(3, 4), "cannot take 4"],
    [
      "too few possible values",
      () => new RandomStream(0).sampleIndices(3, 2, { probabilities: [1, 0, 0] }),
      "fewer than 2",
    ],
  ])("names %s", (_, call, message) => {
    expect(call).toThrow(message);
  });
});
