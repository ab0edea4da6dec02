import { describe, expect, it } from "vitest";
import { RandomStream } from "../../../core/random/random-stream.js";
import { layOutArena, type Lifetime } from "./arena.js";

const MAX_WORDS = 4096;

describe("layOutArena", () => {
  it("never places two values that are in memory at once in the same words", () => {
    const random = new RandomStream(1);
    for (let round = 0; round < 20; round++) {
      const lifetimes = Array.from({ length: 60 }, (): Lifetime => {
        const first = Math.floor(random.random() * 50);
        return { words: Math.floor(random.random() * 700), first, last: first + Math.floor(random.random() * 8) };
      });
      const { places, slabs } = layOutArena(lifetimes, MAX_WORDS);
      lifetimes.forEach((a, i) => {
        expect(places[i].start + a.words).toBeLessThanOrEqual(slabs[places[i].slab]);
        lifetimes.slice(i + 1).forEach((b, k) => {
          const [one, other] = [places[i], places[i + 1 + k]];
          const isConcurrent = a.first <= b.last && b.first <= a.last && one.slab === other.slab;
          const overlaps = one.start < other.start + b.words && other.start < one.start + a.words;
          expect(isConcurrent && overlaps).toBe(false);
        });
      });
      expect(Math.max(...slabs)).toBeLessThanOrEqual(MAX_WORDS);
    }
  });

  it("uses the words of values that are no longer needed again", () => {
    const chain = Array.from({ length: 100 }, (_, i): Lifetime => ({ words: 64, first: i, last: i + 1 }));
    expect(layOutArena(chain, MAX_WORDS).slabs).toEqual([128]);
  });

  it("refuses a value that is larger than a buffer", () => {
    expect(() => layOutArena([{ words: MAX_WORDS + 1, first: 0, last: 0 }], MAX_WORDS)).toThrow("largest buffer");
  });
});
