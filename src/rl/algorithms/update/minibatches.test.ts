import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { makeTurn } from "../../../../test/support/turns.js";
import { RandomStream } from "../../../core/random/random-stream.js";
import type { Trajectory } from "../../rollout/trajectory.js";
import { shuffleIntoMinibatches } from "./minibatches.js";

/**
 * Trajectories by the lengths of their chains, and each turn's chain: in a chain each prompt
 * extends the previous turn.
 */
function trajectoriesOf(chains: readonly (readonly number[])[]): { trajectories: Trajectory[]; chainOf: number[] } {
  const chainOf: number[] = [];
  let chain = 0;
  const trajectories = chains.map((lengths, trajectory): Trajectory => {
    const turns = lengths.flatMap((length, start) => {
      let prompt = [1000 * trajectory + start + 1];
      const index = chain++;
      return Array.from({ length }, (_, i) => {
        const turn = makeTurn({ prompt, tokens: [i] });
        prompt = [...turn.prompt, ...turn.tokens, 7];
        chainOf.push(index);
        return turn;
      });
    });
    return { turns, end: "terminated", bootstrapPrompt: undefined };
  });
  return { trajectories, chainOf };
}

/** Single turns, of which many have the same prompt. */
function singleTurns(count: number, prompts: number): Trajectory[] {
  return Array.from({ length: count }, (_, i) => {
    return { turns: [makeTurn({ prompt: [i % prompts], tokens: [i] })], end: "terminated", bootstrapPrompt: undefined };
  });
}

const chains = fc.array(fc.array(fc.integer({ min: 1, max: 5 }), { minLength: 1, maxLength: 4 }), {
  minLength: 1,
  maxLength: 6,
});

const sizes = (minibatches: readonly number[][]) => minibatches.map(({ length }) => length);

describe("shuffleIntoMinibatches", () => {
  it("puts every turn into one minibatch, with sizes that differ by at most one turn", () => {
    fc.assert(
      fc.property(chains, fc.integer({ min: 1, max: 10 }), fc.nat(), (lengths, size, seed) => {
        const { trajectories, chainOf } = trajectoriesOf(lengths);
        const minibatches = shuffleIntoMinibatches(trajectories, size, new RandomStream(seed));
        expect(minibatches.flat().sort((a, b) => a - b)).toEqual(chainOf.map((_, i) => i));
        expect(minibatches).toHaveLength(Math.max(1, Math.round(chainOf.length / size)));
        expect(Math.max(...sizes(minibatches)) - Math.min(...sizes(minibatches))).toBeLessThanOrEqual(1);
      }),
    );
  });

  it("keeps the requested size where prompts repeat", () => {
    const draw = (count: number, prompts: number, size: number) =>
      sizes(shuffleIntoMinibatches(singleTurns(count, prompts), size, new RandomStream(1)));
    expect(draw(1024, 16, 256)).toEqual([256, 256, 256, 256]);
    expect(draw(8, 1, 2)).toEqual([2, 2, 2, 2]);
    expect(draw(1032, 16, 256)).toEqual([258, 258, 258, 258]);
    expect(draw(8, 1, Infinity)).toEqual([8]);
  });

  it("splits turns with the same prompt only where a minibatch ends", () => {
    const trajectories = singleTurns(1024, 16);
    const minibatches = shuffleIntoMinibatches(trajectories, 256, new RandomStream(1));
    const promptsPerMinibatch = minibatches.map((minibatch) => new Set(minibatch.map((turn) => turn % 16)).size);
    expect(promptsPerMinibatch.reduce((sum, count) => sum + count, 0)).toBeLessThanOrEqual(16 + 3);
  });

  it("keeps the turns of one chain together and in order, except where a minibatch ends", () => {
    fc.assert(
      fc.property(chains, fc.integer({ min: 1, max: 10 }), fc.nat(), (lengths, size, seed) => {
        const { trajectories, chainOf } = trajectoriesOf(lengths);
        const turns = shuffleIntoMinibatches(trajectories, size, new RandomStream(seed)).flat();
        const chainsInOrder = turns.map((turn) => chainOf[turn]).filter((chain, i, all) => chain !== all[i - 1]);
        const inOrder = chainsInOrder.flatMap((chain) => chainOf.flatMap((each, i) => (each === chain ? [i] : [])));
        expect(turns).toEqual(inOrder);
      }),
    );
  });

  it("shuffles anew at each call, equally for equal seeds", () => {
    const { trajectories } = trajectoriesOf(Array.from({ length: 20 }, () => [1]));
    const draw = () => {
      const random = new RandomStream(3);
      return [shuffleIntoMinibatches(trajectories, 5, random), shuffleIntoMinibatches(trajectories, 5, random)];
    };
    const [first, second] = draw();
    expect(first).not.toEqual(second);
    expect(draw()).toEqual([first, second]);
  });
});

describe("shuffleIntoMinibatches with units", () => {
  it("keeps the turns of a unit in one minibatch, and takes each turn once", () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.integer({ min: 1, max: 4 }), fc.integer({ min: 0, max: 5 })), {
          minLength: 1,
          maxLength: 12,
        }),
        fc.integer({ min: 2, max: 20 }),
        fc.integer({ min: 0, max: 99 }),
        (given, size, seed) => {
          const { trajectories } = trajectoriesOf(given.map(([length]) => [length]));
          const units = given.map(([, unit]) => unit);
          const unitOf = given.flatMap(([length, unit]) => Array.from({ length }, () => unit));
          const minibatches = shuffleIntoMinibatches(trajectories, size, new RandomStream(seed), units);
          expect(minibatches.flat().sort((a, b) => a - b)).toEqual(unitOf.map((_, i) => i));
          for (const unit of new Set(units))
            expect(minibatches.filter((turns) => turns.some((i) => unitOf[i] === unit))).toHaveLength(1);
          expect(minibatches.every(({ length }) => length > 0)).toBe(true);
        },
      ),
    );
  });
});
