import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { makeTurn } from "../../../../test/support/turns.js";
import type { Trajectory } from "../../rollout/trajectory.js";
import { RandomStream } from "../../../core/random/random-stream.js";
import { shuffleIntoMinibatches } from "./minibatches.js";

/** Segments by the lengths of their chains: in a chain each prompt goes on from the turn before. */
function segmentsOf(chains: readonly (readonly number[])[]): { segments: Trajectory[]; chainOf: number[] } {
  const chainOf: number[] = [];
  let chain = 0;
  const segments = chains.map((lengths, segment): Trajectory => {
    const turns = lengths.flatMap((length, start) => {
      let prompt = [1000 * segment + start + 1];
      const number = chain++;
      return Array.from({ length }, (_, i) => {
        const turn = makeTurn({ prompt, tokens: [i] });
        prompt = [...turn.prompt, ...turn.tokens, 7];
        chainOf.push(number);
        return turn;
      });
    });
    return { turns, end: "terminated", bootstrapPrompt: undefined };
  });
  return { segments, chainOf };
}

const chains = fc.array(fc.array(fc.integer({ min: 1, max: 5 }), { minLength: 1, maxLength: 4 }), {
  minLength: 1,
  maxLength: 6,
});

describe("shuffledMinibatches", () => {
  it("has every turn once, in minibatches of at least the size, the last one maybe smaller", () => {
    fc.assert(
      fc.property(chains, fc.integer({ min: 1, max: 10 }), fc.nat(), (lengths, size, seed) => {
        const { segments, chainOf } = segmentsOf(lengths);
        const minibatches = shuffleIntoMinibatches(segments, size, new RandomStream(seed));
        expect(minibatches.flat().sort((a, b) => a - b)).toEqual(chainOf.map((_, i) => i));
        for (const minibatch of minibatches.slice(0, -1)) expect(minibatch.length).toBeGreaterThanOrEqual(size);
        expect(minibatches.every(({ length }) => length > 0)).toBe(true);
      }),
    );
  });

  it("keeps the turns of one sequence together, in order, and no others with them that the size did not ask for", () => {
    fc.assert(
      fc.property(chains, fc.nat(), (lengths, seed) => {
        const { segments, chainOf } = segmentsOf(lengths);
        for (const minibatch of shuffleIntoMinibatches(segments, 1, new RandomStream(seed))) {
          const numbers = chainOf.flatMap((chain, i) => (chain === chainOf[minibatch[0]] ? [i] : []));
          expect(minibatch).toEqual(numbers);
        }
      }),
    );
  });

  it("shuffles anew at each call, the same for the same seed", () => {
    const { segments } = segmentsOf(Array.from({ length: 20 }, () => [1]));
    const draw = () => {
      const random = new RandomStream(3);
      return [shuffleIntoMinibatches(segments, 5, random), shuffleIntoMinibatches(segments, 5, random)];
    };
    const [first, second] = draw();
    expect(first).not.toEqual(second);
    expect(draw()).toEqual([first, second]);
  });
});
