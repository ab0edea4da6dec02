import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { StopStringMatcher } from "./stop-string-matcher.js";

function stream(stops: readonly string[], pieces: readonly string[]): { text: string; stopped: boolean } {
  const matcher = new StopStringMatcher(stops);
  let text = "";
  for (const piece of pieces) text += matcher.push(piece);
  return { text: text + matcher.flush(), stopped: matcher.hasMatched };
}

describe("StopStringMatcher", () => {
  it("returns the text before a stop string that spans pieces", () => {
    expect(stream(["\nUser:"], ["Hello", "\n", "Us", "er", ": no"])).toEqual({ text: "Hello", stopped: true });
  });

  it("buffers only a possible prefix of a stop string", () => {
    const matcher = new StopStringMatcher(["END"]);
    expect(matcher.push("the E")).toBe("the ");
    expect(matcher.push("N")).toBe("");
    expect(matcher.push("G")).toBe("ENG");
    expect(matcher.push(" EE")).toBe(" E");
    expect(matcher.flush()).toBe("E");
    expect(matcher.hasMatched).toBe(false);
  });

  it("ends at the first complete stop string, however the text is split", () => {
    const piece = fc.constantFrom("a", "b", "c", "ab", "bc", "abc", "cab", "");
    const stop = fc.constantFrom("bc", "abcd", "ca", "aa", "cc", "abca", "b");
    fc.assert(
      fc.property(fc.array(piece), fc.array(stop, { minLength: 1, maxLength: 3 }), (pieces, stops) => {
        const text = pieces.join("");
        const ends = stops.flatMap((each) => (text.includes(each) ? [text.indexOf(each) + each.length] : []));
        const end = Math.min(...ends);
        const starts = stops.flatMap((each) => (text.slice(0, end).endsWith(each) ? [end - each.length] : []));
        const expected = ends.length === 0 ? text : text.slice(0, Math.min(...starts));
        expect(stream(stops, pieces)).toEqual({ text: expected, stopped: ends.length > 0 });
      }),
    );
  });
});
