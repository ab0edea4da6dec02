import { describe, expect, it } from "vitest";
import { listLegalMoves, slideTiles, TwentyFortyEightEnv } from "./twenty-forty-eight.js";

const UP = 0;
const RIGHT = 1;
const DOWN = 2;
const LEFT = 3;
/** A board with this first row. */
const withRow = (...row: number[]) => [...row, ...Array.from({ length: 12 }, () => 0)];

describe("TwentyFortyEightEnv", () => {
  it.each([
    [LEFT, [1, 1, 0, 0], [2, 0, 0, 0], 4],
    [RIGHT, [1, 1, 0, 0], [0, 0, 0, 2], 4],
    [LEFT, [1, 1, 1, 1], [2, 2, 0, 0], 8],
    [LEFT, [1, 1, 2, 0], [2, 2, 0, 0], 4],
    [RIGHT, [1, 1, 1, 0], [0, 0, 1, 2], 4],
    [LEFT, [3, 0, 0, 3], [4, 0, 0, 0], 16],
    [LEFT, [1, 2, 1, 2], [1, 2, 1, 2], 0],
  ])("slides %i: %j becomes %j for %i points", (action, before, after, merged) => {
    expect(slideTiles(withRow(...before), action)).toEqual({ board: withRow(...after), merged });
  });

  it("slides columns", () => {
    const column = [1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0];
    expect(slideTiles(column, UP)).toEqual({
      board: [2, 0, 0, 0, 2, ...Array.from({ length: 11 }, () => 0)],
      merged: 4,
    });
    expect(slideTiles(column, DOWN).board.slice(8)).toEqual([2, 0, 0, 0, 2, 0, 0, 0]);
    expect(listLegalMoves(withRow(1, 0, 0, 0))).toEqual([RIGHT, DOWN]);
  });

  it("adds a tile after a move, none after a move that changes nothing, and ends when nothing can move", () => {
    const env = new TwentyFortyEightEnv();
    let { observation } = env.reset({ seed: 4 });
    const count = (board: Uint8Array) => board.filter((tile) => tile > 0).length;
    expect(count(observation)).toBe(2);
    const blocked = [UP, RIGHT, DOWN, LEFT].filter((move) => !listLegalMoves(Array.from(observation)).includes(move));
    for (const move of blocked) expect(env.step(move)).toMatchObject({ observation, reward: 0, terminated: false });
    let total = 0;
    for (let step = 0; ; step++) {
      const before = observation;
      const [move] = listLegalMoves(Array.from(before));
      const result = env.step(move);
      observation = result.observation;
      total += result.reward;
      const slid = slideTiles(Array.from(before), move).board;
      expect(count(observation)).toBe(slid.filter((tile) => tile > 0).length + 1);
      if (result.terminated) break;
    }
    expect(listLegalMoves(Array.from(observation))).toEqual([]);
    expect(total).toBeGreaterThan(100);
  });
});
