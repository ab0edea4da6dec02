import { describe, expect, it } from "vitest";
import { makeTurn } from "../../../../test/support/turns.js";
import type { Trajectory } from "../../rollout/trajectory.js";
import { SuccessFilter } from "./success-filter.js";

/** A segment with turns of these rewards; their tokens are numbered from `first` on. */
function createTrajectory(rewards: readonly number[], rest: Partial<Trajectory> = {}, first = 10): Trajectory {
  const turns = rewards.map((reward, i) => makeTurn({ reward, tokens: [first + i] }));
  return { turns, end: "terminated", bootstrapPrompt: undefined, ...rest };
}

describe("SuccessFilter", () => {
  it("selects episodes with a return above the mean of the last hundred", () => {
    const successes = new SuccessFilter();
    expect(
      successes
        .filter([createTrajectory([0]), createTrajectory([1]), createTrajectory([0, 1, 1])])
        .map((one) => one.return),
    ).toEqual([2]);
    expect(successes.filter([createTrajectory([1]), createTrajectory([0])]).map((one) => one.return)).toEqual([1]);
  });

  it("selects none if all returns are equal", () => {
    expect(new SuccessFilter().filter([createTrajectory([0]), createTrajectory([0])])).toEqual([]);
  });

  it("joins trajectories of an environment slot, also after restoring a state", () => {
    const before = new SuccessFilter();
    const cut = { end: "partial", isBeginning: true } as const;
    expect(
      before.filter([createTrajectory([1], { ...cut, envSlot: 0 }), createTrajectory([0], { ...cut, envSlot: 1 }, 20)]),
    ).toEqual([]);
    const after = new SuccessFilter();
    after.setState(JSON.parse(JSON.stringify(before.getState())) as ReturnType<SuccessFilter["getState"]>);
    const rest = [
      createTrajectory([0], { envSlot: 1, startsEpisode: false }, 25),
      createTrajectory([2], { envSlot: 0, startsEpisode: false }, 15),
    ];
    const [episode, ...others] = after.filter(rest);
    expect(others).toEqual([]);
    expect(episode.return).toBe(3);
    expect(episode.turns.map(({ tokens }) => tokens[0])).toEqual([10, 15]);
  });

  it("separates episodes of an environment slot", () => {
    const successes = new SuccessFilter();
    successes.filter([createTrajectory([5], { end: "partial", envSlot: 0 })]);
    const found = successes.filter([createTrajectory([0], { envSlot: 1 }), createTrajectory([1], { envSlot: 0 }, 30)]);
    expect(found.map((one) => [one.return, one.turns.length])).toEqual([[1, 1]]);
  });

  it("excludes penalties from the return and invalid actions from the turns", () => {
    const turns = [makeTurn({ reward: -0.5, penalty: 0.5, isValid: false }), makeTurn({ reward: 1, tokens: [7] })];
    const [episode] = new SuccessFilter().filter([
      createTrajectory([0]),
      { turns, end: "terminated", bootstrapPrompt: undefined },
    ]);
    expect(episode).toEqual({ return: 1, turns: [{ prompt: [1], tokens: [7], text: "" }] });
  });
});
