import { describe, expect, it } from "vitest";
import { PythonRandom } from "./python-random.js";

// Python's recorded draws are compared in test/parity/worlds.test.ts.
describe("PythonRandom", () => {
  it("continues identically from a saved state", () => {
    const random = new PythonRandom(7);
    for (let i = 0; i < 1000; i++) random.getRandBits(32);
    const state = JSON.parse(JSON.stringify(random.getState())) as ReturnType<typeof random.getState>;
    const expected = Array.from({ length: 700 }, () => random.random());
    const restored = new PythonRandom(0);
    restored.setState(state);
    expect(Array.from({ length: 700 }, () => restored.random())).toEqual(expected);
  });

  it("ignores the sign of a seed, as CPython does", () => {
    expect(new PythonRandom(-5n).getRandBits(32)).toBe(new PythonRandom(5).getRandBits(32));
  });

  it("samples without replacement from large and small ranges", () => {
    const random = new PythonRandom(1);
    const large = random.sample([...Array(5000).keys()], 100);
    expect(new Set(large).size).toBe(100);
    expect(random.sample("abc", 3).sort()).toEqual(["a", "b", "c"]);
    expect(() => random.sample("abc", 4)).toThrow(RangeError);
    expect(() => random.randInt(3, 2)).toThrow(RangeError);
  });

  it.each([
    { words: [1], index: 0 },
    { words: Array(624).fill(-1), index: 0 },
    { words: Array(624).fill(1), index: 625 },
  ])("refuses a state that it does not save", (state) => {
    expect(() => new PythonRandom(1).setState(state)).toThrow(/624 words/);
  });
});
