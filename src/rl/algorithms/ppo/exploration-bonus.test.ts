import { describe, expect, it } from "vitest";
import type { ScoredTrajectory } from "../algorithm-definition.js";
import { ExplorationBonus, type ExplorationState } from "./exploration-bonus.js";

/** A trajectory of prompts of one token with the reward after each. */
function trajectory(
  turns: readonly (readonly [prompt: number, reward: number])[],
  { end = "truncated", last }: { readonly end?: ScoredTrajectory["end"]; readonly last?: number } = {},
): ScoredTrajectory {
  return {
    turns: turns.map(([prompt, reward]) => ({ turn: { prompt: [prompt], reward } })),
    end,
    ...(last === undefined ? {} : { bootstrapPrompt: [last] }),
  } as unknown as ScoredTrajectory;
}

const walk = (...prompts: readonly number[]) => trajectory(prompts.map((prompt) => [prompt, 0]));
const create = (state?: ExplorationState) => new ExplorationBonus(0.5, state);

describe("the exploration bonus", () => {
  it("rewards turns that lead to a prompt for the first time in their trajectory", () => {
    const loop = trajectory(
      [
        [1, 0],
        [2, 0],
        [1, 0],
        [3, 0],
      ],
      { last: 4 },
    );
    expect(create().add([loop, walk(1, 2)])).toEqual([
      [0.5, 0, 0.5, 0.5],
      [0.5, 0],
    ]);
  });

  it("falls to 0 in the first 64 turns with another reward", () => {
    const bonus = create();
    const success = trajectory([
      [1, 0],
      [2, 0],
      [2, 1],
    ]);
    expect(bonus.add(Array.from({ length: 16 }, () => success))[0]).toEqual([0.375, 0, 0]);
    expect(bonus.add(Array.from({ length: 48 }, () => success)).flat()).toEqual(Array(144).fill(0));
    expect(bonus.getState()).toEqual({ firstReward: 0, signals: 64 });
  });

  it("is 0 in an update in which each prompt is new in its trajectory", () => {
    const bonus = create();
    expect(bonus.add([walk(1, 2, 3), walk(1, 2)])).toEqual([
      [0, 0, 0],
      [0, 0],
    ]);
    expect(bonus.add([walk(1, 2, 3), walk(1, 1)])).toEqual([
      [0.5, 0.5, 0],
      [0, 0],
    ]);
  });

  it("takes the end of a task as a signal where each turn is rewarded", () => {
    const ended = (reward: number) => {
      const bonus = create();
      bonus.add([trajectory([[1, reward]], { end: "terminated" }), trajectory([[1, reward]])]);
      return bonus.getState().signals;
    };
    expect([ended(-1), ended(0)]).toEqual([1, 0]);
  });

  it("continues from its state, and starts without one", () => {
    const bonus = create();
    bonus.add([trajectory([[1, 2]]), trajectory([[1, 3]])]);
    const restored = create(JSON.parse(JSON.stringify(bonus.getState())) as ExplorationState);
    const loop = walk(1, 2, 1);
    // One signal before, and three rewards of 0.
    expect(restored.add([loop])).toEqual([[0.5 * (1 - 4 / 64), 0, 0]]);
    expect(create().getState()).toEqual({ signals: 0 });
  });
});
