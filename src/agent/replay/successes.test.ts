import { describe, expect, it } from "vitest";
import { testTurn } from "../../../test/support/turns.js";
import type { Segment } from "../../rollout/turn.js";
import { Successes } from "./successes.js";

/** A segment with turns of these rewards; their tokens are numbered from `first` on. */
function segment(rewards: readonly number[], rest: Partial<Segment> = {}, first = 10): Segment {
  const turns = rewards.map((reward, i) => testTurn({ reward, tokens: [first + i] }));
  return { turns, end: "terminated", nextPrompt: undefined, ...rest };
}

describe("Successes", () => {
  it("are episodes with more return than the mean of the last hundred", () => {
    const successes = new Successes();
    expect(successes.take([segment([0]), segment([1]), segment([0, 1, 1])]).map((one) => one.return)).toEqual([2]);
    expect(successes.take([segment([1]), segment([0])]).map((one) => one.return)).toEqual([1]);
  });

  it("are none where all episodes bring the same", () => {
    expect(new Successes().take([segment([0]), segment([0])])).toEqual([]);
  });

  it("are joined from the segments of their seat, also after a saved state", () => {
    const before = new Successes();
    const cut = { end: "cut", isBeginning: true } as const;
    expect(before.take([segment([1], { ...cut, seat: 0 }), segment([0], { ...cut, seat: 1 }, 20)])).toEqual([]);
    const after = new Successes();
    after.setState(JSON.parse(JSON.stringify(before.getState())) as ReturnType<Successes["getState"]>);
    const rest = [segment([0], { seat: 1, isBeginning: false }, 25), segment([2], { seat: 0, isBeginning: false }, 15)];
    const [episode, ...others] = after.take(rest);
    expect(others).toEqual([]);
    expect(episode.return).toBe(3);
    expect(episode.turns.map(({ tokens }) => tokens[0])).toEqual([10, 15]);
  });

  it("do not go on with another episode of their seat", () => {
    const successes = new Successes();
    successes.take([segment([5], { end: "cut", seat: 0 })]);
    const found = successes.take([segment([0], { seat: 1 }), segment([1], { seat: 0 }, 30)]);
    expect(found.map((one) => [one.return, one.turns.length])).toEqual([[1, 1]]);
  });

  it("count what was taken for a reply without an action back, and leave the reply out", () => {
    const turns = [testTurn({ reward: -0.5, penalty: 0.5, isValid: false }), testTurn({ reward: 1, tokens: [7] })];
    const [episode] = new Successes().take([segment([0]), { turns, end: "terminated", nextPrompt: undefined }]);
    expect(episode).toEqual({ return: 1, turns: [{ prompt: [1], tokens: [7], text: "" }] });
  });
});
