import { describe, expect, it } from "vitest";
import type { ScoredTrajectory } from "../algorithm-definition.js";
import { bonusAdvantages, ExplorationBonus, type ExplorationState } from "./exploration-bonus.js";

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
      [0.5, undefined],
    ]);
  });

  it("falls to 0 in the first 64 successes", () => {
    const bonus = create();
    const success = trajectory([
      [1, 0],
      [2, 0],
      [2, 1],
    ]);
    expect(bonus.add(Array.from({ length: 16 }, () => success))[0]).toEqual([0.375, 0, undefined]);
    expect(bonus.add(Array.from({ length: 48 }, () => success)).flat()).toEqual(Array(144).fill(0));
    expect(bonus.getState()).toEqual({ successes: 64, lowest: 0, highest: 1 });
  });

  it("is 0 in an update in which each prompt is new in its trajectory", () => {
    const bonus = create();
    expect(bonus.add([walk(1, 2, 3), walk(1, 2)])).toEqual([
      [0, 0, 0],
      [0, 0],
    ]);
    expect(bonus.add([walk(1, 2, 3), walk(1, 1)])).toEqual([
      [0.5, 0.5, undefined],
      [0, undefined],
    ]);
  });

  it("is 0 for all turns that a failure costs, and says nothing of those after a success", () => {
    const failure = trajectory([[1, -1]], { end: "terminated" });
    const success = trajectory([[1, 1]], { end: "terminated" });
    const [walked, failed, succeeded] = create().add([walk(1, 2, 1), failure, success]);
    expect(walked).toEqual([0.5 * (1 - 1 / 64), 0, undefined]);
    expect(failed).toEqual([0, 0, 0]);
    expect(succeeded).toEqual([undefined]);
  });

  /** Successes of one update of trajectories, given as their rewards; some end with "end". */
  const countSuccesses = (...rewards: readonly (readonly (number | "end")[])[]) => {
    const bonus = create();
    bonus.add(
      rewards.map((row) =>
        trajectory(
          row.filter((reward) => reward !== "end").map((reward) => [1, reward]),
          { end: row.at(-1) === "end" ? "terminated" : "truncated" },
        ),
      ),
    );
    return bonus.getState().successes;
  };

  it("counts positive rewards above the lowest", () => {
    expect(countSuccesses([0, 0.05, 0.05], [0, 1, "end"])).toBe(3);
    expect(countSuccesses([1, 1, 1], [1, 1, "end"])).toBe(1);
  });

  it("does not count penalties of steps and of failures where tasks end", () => {
    expect(countSuccesses([-0.02, -0.05, -0.02], [-0.02, -1, "end"], [-0.05, -1, "end"])).toBe(0);
    expect(countSuccesses([-0.02, -0.05, -0.02], [-0.02, 2, "end"])).toBe(1);
    expect(countSuccesses([0, 0, -1, "end"], [0, 0, 0])).toBe(0);
  });

  it("counts ends with the highest reward, such as a gate reached at the cost of a step", () => {
    expect(countSuccesses([-1, -2, -1, "end"], [-1, -1])).toBe(1);
    expect(countSuccesses([-1, 0, "end"], [-1, -1, "end"])).toBe(1);
    expect(countSuccesses([0, 0, "end"])).toBe(0);
  });

  it("counts rewards above the lowest where no task ends", () => {
    expect(countSuccesses([-2, -1, -2, 0])).toBe(2);
  });

  it("continues from its state, and starts without one", () => {
    const bonus = create();
    bonus.add([trajectory([[1, 2]]), trajectory([[1, 3]])]);
    const restored = create(JSON.parse(JSON.stringify(bonus.getState())) as ExplorationState);
    const loop = walk(1, 2, 1);
    expect(restored.add([loop])).toEqual([[0.5 * (1 - 1 / 64), 0, undefined]]);
    expect(restored.getState()).toEqual({ successes: 1, lowest: 0, highest: 3 });
    expect(create().getState()).toEqual({ successes: 0 });
  });

  it("is over in a state without a count, as of an earlier version", () => {
    expect(create({ signals: 3, firstReward: 0 } as unknown as ExplorationState).add([walk(1, 2, 1)])).toEqual([
      [0, 0, 0],
    ]);
  });
});

describe("the advantages of bonuses", () => {
  const settings = { gamma: 0.5, lam: 1 };

  it("are discounted sums of the bonuses, each less the mean at its place", () => {
    expect(
      bonusAdvantages(
        [
          [1, 0, 1],
          [0, 0, 1],
        ],
        settings,
      ),
    ).toEqual([
      [0.5, 0, 0],
      [-0.5, 0, 0],
    ]);
    expect(
      bonusAdvantages(
        [
          [0, 1],
          [0, 0],
        ],
        settings,
      ),
    ).toEqual([
      [0.25, 0.5],
      [-0.25, -0.5],
    ]);
  });

  it("do not depend on where trajectories end", () => {
    const [long, ended] = bonusAdvantages(
      [
        [1, 1, 1, 1],
        [1, undefined],
        [1, 1, 1, 1],
      ],
      settings,
    );
    expect(long).toEqual([0, 0, 0, 0]);
    expect(ended).toEqual([0, 0]);
    expect(bonusAdvantages([], settings)).toEqual([]);
    expect(bonusAdvantages([[undefined]], settings)).toEqual([[0]]);
  });
});
