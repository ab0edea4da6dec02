import * as fc from "fast-check";
import { describe, expect, it } from "vitest";

import { BytePairModel } from "./byte-pair-model.js";

/** The definition: merge the pair of lowest rank, leftmost first, until no pair merges. */
function mergeOneByOne(text: string, merges: readonly [string, string][]): string[] {
  const ranks = new Map(merges.map(([left, right], rank) => [`${left} ${right}`, rank]));
  const symbols = Array.from(text);
  for (;;) {
    const rated = symbols.slice(1).map((right, i) => ranks.get(`${symbols[i]} ${right}`) ?? Infinity);
    const best = Math.min(...rated);
    if (best === Infinity) return symbols;
    const at = rated.indexOf(best);
    symbols.splice(at, 2, symbols[at] + symbols[at + 1]);
  }
}

const merges: [string, string][] = [
  ["a", "a"],
  ["b", "c"],
  ["aa", "b"],
  ["a", "b"],
  ["aa", "aa"],
  ["c", "c"],
  ["ab", "c"],
  ["bc", "a"],
  ["aa", "bc"],
];
const tokens = ["a", "b", "c", ...merges.map(([left, right]) => left + right)];
const vocabulary = new Map(tokens.map((token, id) => [token, id]));

describe("byte-pair encoding", () => {
  it("merges by definition for pieces of any length", () => {
    const model = new BytePairModel({ type: "BPE", merges }, vocabulary);
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom("a", "b", "c"), maxLength: 400 }), (text) => {
        expect(model.encode(text).map((id) => tokens[id])).toEqual(mergeOneByOne(text, merges));
      }),
    );
  });

  it("reads merges that are written as strings", () => {
    const written = merges.map(([left, right]) => `${left} ${right}`);
    const model = new BytePairModel({ type: "BPE", merges: written }, vocabulary);
    expect(model.encode("aabc").map((id) => tokens[id])).toEqual(mergeOneByOne("aabc", merges));
  });

  it("keeps a piece that is a token if configured", () => {
    const whole = new Map([...vocabulary, ["cab", 50]]);
    expect(new BytePairModel({ type: "BPE", merges, ignore_merges: true }, whole).encode("cab")).toEqual([50]);
    expect(new BytePairModel({ type: "BPE", merges }, whole).encode("cab")).toEqual([2, 6]);
  });

  it("encodes unknown characters as bytes or the (fused) unknown token", () => {
    const bytes = Array.from({ length: 256 }, (_, byte): [string, number] => [
      `<0x${byte.toString(16).toUpperCase().padStart(2, "0")}>`,
      1000 + byte,
    ]);
    const fallback = new BytePairModel(
      { type: "BPE", merges: [], byte_fallback: true },
      new Map([...vocabulary, ...bytes]),
    );
    expect(fallback.encode("aé")).toEqual([0, 1000 + 0xc3, 1000 + 0xa9]);
    const unknown = new Map([...vocabulary, ["<unk>", 99] as const]);
    expect(new BytePairModel({ type: "BPE", merges: [], unk_token: "<unk>" }, unknown).encode("xya")).toEqual([
      99, 99, 0,
    ]);
    expect(
      new BytePairModel({ type: "BPE", merges: [], unk_token: "<unk>", fuse_unk: true }, unknown).encode("xya"),
    ).toEqual([99, 0]);
    expect(new BytePairModel({ type: "BPE", merges: [] }, vocabulary).encode("xa")).toEqual([0]);
  });

  it("marks word ends and continuations where the vocabulary does", () => {
    const ended = new Map([
      ["a", 0],
      ["b</w>", 1],
      ["ab</w>", 2],
      ["a</w>", 3],
    ]);
    const model = new BytePairModel({ type: "BPE", merges: [["a", "b</w>"]], end_of_word_suffix: "</w>" }, ended);
    expect([model.encode("ab"), model.encode("a")]).toEqual([[2], [3]]);
    const inside = new Map([
      ["a", 0],
      ["##b", 1],
      ["ab", 2],
    ]);
    expect(
      new BytePairModel({ type: "BPE", merges: [["a", "##b"]], continuing_subword_prefix: "##" }, inside).encode("ab"),
    ).toEqual([2]);
  });
});
