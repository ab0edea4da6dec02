import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { RandomStream } from "../../../core/random/random-stream.js";
import { ReplayBuffer, shuffleStratified, type ReplayEpisode } from "./replay-buffer.js";

/** Episode of one turn, identified by its token. */
function episode(token: number, episodeReturn: number | null, text = String(token)): ReplayEpisode {
  return { turns: [{ prompt: [1, 2], tokens: [token], text }], return: episodeReturn };
}

const tokens = (episodes: readonly ReplayEpisode[]) => episodes.map(({ turns }) => turns[0].tokens[0]);

describe("ReplayBuffer", () => {
  it("keeps the episodes with the highest returns and, of equal ones, the newest", () => {
    const buffer = new ReplayBuffer({ capacity: 3 });
    expect([episode(1, 1), episode(2, 0), episode(3, 1), episode(4, 0)].map((one) => buffer.add(one))).toEqual([
      true,
      true,
      true,
      true,
    ]);
    expect(tokens(buffer.getBest(1))).toEqual([3, 1, 4]);
    expect(buffer.add(episode(5, -1))).toBe(false);
    expect(buffer.add(episode(6, 2))).toBe(true);
    expect(tokens(buffer.getBest(1))).toEqual([6, 3, 1]);
  });

  it("holds a duplicate once, as the newest episode with the higher return", () => {
    const buffer = new ReplayBuffer();
    for (const one of [episode(1, 1), episode(2, 1), episode(1, 0)]) buffer.add(one);
    expect(buffer.size).toBe(2);
    expect(tokens(buffer.getBest(1))).toEqual([1, 2]);
    expect(buffer.getMetrics()).toEqual({
      "replay/size": 2,
      "replay/return_mean": 1,
      "replay/return_min": 1,
      "replay/return_max": 1,
    });
  });

  it("ranks a demonstration without a return above all, and excludes it from metrics", () => {
    const buffer = new ReplayBuffer({ capacity: 2 });
    for (const one of [episode(1, null), episode(2, 5), episode(3, 7)]) buffer.add(one);
    expect(tokens(buffer.getBest(1))).toEqual([1, 3]);
    expect(buffer.getMetrics()).toMatchObject({ "replay/size": 2, "replay/return_mean": 7 });
  });

  it("samples from the best fraction only", () => {
    const buffer = new ReplayBuffer({ replayTopFraction: 0.2 });
    for (let i = 0; i < 10; i++) buffer.add(episode(i, i));
    const drawn = buffer.sample(8, new RandomStream(1)).map((turn) => turn.tokens[0]);
    expect(drawn.sort((a, b) => a - b)).toEqual([8, 9]);
  });

  it("restores its state from JSON", () => {
    const buffer = new ReplayBuffer({ capacity: 4 });
    for (const [i, value] of [3, null, 1, 2, 5, 3].entries()) buffer.add(episode(i, value));
    const other = new ReplayBuffer({ capacity: 4 });
    other.setState(JSON.parse(JSON.stringify(buffer.getState())) as ReturnType<ReplayBuffer["getState"]>);
    expect(other.getState()).toEqual(buffer.getState());
    expect(other.sample(3, new RandomStream(2))).toEqual(buffer.sample(3, new RandomStream(2)));
  });

  it("holds the best episodes whatever their order", () => {
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: -3, max: 3 }), { maxLength: 30 }),
        fc.integer({ min: 1, max: 8 }),
        (all, capacity) => {
          const buffer = new ReplayBuffer({ capacity });
          all.forEach((value, i) => buffer.add(episode(i, value)));
          const best = [...all].sort((a, b) => b - a).slice(0, capacity);
          expect(buffer.getBest(1).map((one) => one.return)).toEqual(best);
        },
      ),
    );
  });

  it("rejects an invalid capacity or fraction", () => {
    expect(() => new ReplayBuffer({ capacity: 0 })).toThrow("capacity");
    expect(() => new ReplayBuffer({ replayTopFraction: 0 })).toThrow("replayTopFraction");
  });
});

describe("shuffleStratified", () => {
  it("has every kind in proportion in any prefix, within one item", () => {
    fc.assert(
      fc.property(
        fc.array(fc.constantFrom("a", "b", "c"), { minLength: 1, maxLength: 60 }),
        fc.nat(),
        (kinds, seed) => {
          const order = shuffleStratified(kinds, new RandomStream(seed));
          expect([...order].sort((a, b) => a - b)).toEqual(kinds.map((_, i) => i));
          for (const kind of ["a", "b", "c"]) {
            const share = kinds.filter((other) => other === kind).length / kinds.length;
            order.forEach((_, last) => {
              const found = order.slice(0, last + 1).filter((i) => kinds[i] === kind).length;
              // Each kind is at most one place off, and so is the length of the beginning for each
              // of them.
              expect(Math.abs(found - share * (last + 1))).toBeLessThanOrEqual(3);
            });
          }
        },
      ),
    );
  });

  it("depends on the seed", () => {
    const kinds = Array.from({ length: 40 }, () => "a");
    const [first, second] = [1, 2].map((seed) => shuffleStratified(kinds, new RandomStream(seed)));
    expect(first).not.toEqual(kinds.map((_, i) => i));
    expect(first).not.toEqual(second);
  });
});
