import { describe, expect, it } from "vitest";
import { RandomStream } from "../../../core/random/random-stream.js";
import { packWords, SEGMENT_WORDS, type PackedWords, type WordRange } from "./pack-words.js";

/** Unpacks as the kernel does. */
function unpack({ words, segments }: PackedWords, length: number): Uint32Array {
  const target = new Uint32Array(length);
  const data = words.subarray(SEGMENT_WORDS * segments);
  for (let i = 0; i < length; i++) {
    let segment = 0;
    while (segment + 1 < segments && words[SEGMENT_WORDS * (segment + 1)] <= i) segment++;
    const [start, base, step] = words.subarray(SEGMENT_WORDS * segment);
    const at = i - start;
    if (step === 0x80000000) target[i] = data[base + at];
    else if (step === 0x80000001) target[i] = (data[(base + at) >> 1] >>> (((base + at) % 2) * 16)) & 0xffff;
    else target[i] = base + Math.imul(at, step);
  }
  return target;
}

const float = (values: readonly number[]) => new Uint32Array(Float32Array.from(values).buffer);

function expectUnpacked(ranges: readonly WordRange[]): PackedWords {
  const packed = packWords(ranges);
  const end = Math.max(...ranges.map(({ words, start }) => start + words.length));
  const unpacked = unpack(packed, end);
  for (const { words, start } of ranges) expect(unpacked.slice(start, start + words.length)).toEqual(words);
  return packed;
}

describe("packWords", () => {
  it("sends progressions as three words, upward, downward and constant", () => {
    const values = [0, 3, -3].flatMap((step) => Array.from({ length: 100 }, (_, i) => 1_000_000 + i * step));
    const { words } = expectUnpacked([{ words: Uint32Array.from(values), start: 0, rowWords: 0 }]);
    expect(words.length).toBeLessThanOrEqual(4 * SEGMENT_WORDS);
  });

  it("sends equal rows once", () => {
    const rows = Array.from({ length: 60 }, (_, i) => [Math.cos(i % 20), Math.sin(i % 20), i % 20]).flat();
    const { words } = expectUnpacked([{ words: float(rows), start: 4, rowWords: 3 }]);
    expect(words.length).toBe(60 + 3 * SEGMENT_WORDS);
  });

  it("sends small numbers as half a word", () => {
    const values = Uint32Array.from({ length: 101 }, (_, i) => (i * i * 7919) % 65_536);
    const { words } = expectUnpacked([{ words: values, start: 0, rowWords: 0 }]);
    expect(words.length).toBe(SEGMENT_WORDS + 51);
  });

  it("returns any words unchanged", () => {
    const random = new RandomStream(1);
    const whole = (limit: number) => Math.floor(random.random() * limit);
    for (let round = 0; round < 300; round++) {
      let start = 0;
      const ranges = Array.from({ length: 1 + whole(5) }, () => {
        const rowWords = whole(2) * (1 + whole(4));
        const count = rowWords === 0 ? whole(40) : rowWords * whole(8);
        const limit = [2, 3, 70_000, 2 ** 32][whole(4)];
        const words = Uint32Array.from({ length: count }, () => whole(limit));
        const step = [0, 1, 2 ** 31, 2 ** 31 + 1, 2 ** 32 - 5][whole(5)];
        for (let i = 1; i < count; i++) if (random.random() < 0.6) words[i] = words[i - 1] + step;
        const range = { words, start, rowWords };
        start += Math.ceil((count + 1) / 4) * 4;
        return range;
      });
      expectUnpacked(ranges);
    }
  });
});
