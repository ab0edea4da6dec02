import { describe, expect, it } from "vitest";
import { ConnectFour, KuhnPoker, Nim, Pig, SimpleNegotiation, TicTacToe } from "../../src/envs.js";
import { checkGame } from "../../src/testing.js";

const games = [
  ["tic-tac-toe", () => new TicTacToe()],
  ["connect four", () => new ConnectFour()],
  ["Nim", () => new Nim()],
  ["Nim with a second try", () => new Nim({ piles: [2, 3], illegalMoves: "retry" })],
  ["Nim from random positions", () => new Nim({ randomOpening: 4 })],
  ["Pig", () => new Pig({ goal: 30 })],
  ["Kuhn poker", () => new KuhnPoker()],
  ["negotiation", () => new SimpleNegotiation()],
  ["negotiation by TextArena's rules", () => new SimpleNegotiation({ rules: "text-arena", illegalMoves: "retry" })],
  ["Kuhn poker by TextArena's rules", () => new KuhnPoker({ rules: "text-arena", rounds: 5 })],
] as const;

const rules = new TicTacToe();
const seatOf = (board: string, seat: number) => (rules.getSeat(board) === undefined ? undefined : seat);
/** Makes any move, also on a cell that is not free. */
const takeAny = (board: string, action: number | undefined) =>
  action === undefined
    ? { position: board, illegalParts: 1 }
    : { position: rules.next(board, action), illegalParts: 0 };
/** Answers moves after the end as if the game were over again. */
function moveForever(this: TicTacToe, action: number | undefined) {
  const isOver = rules.getSeat(this.currentPosition) === undefined;
  if (!isOver) return TicTacToe.prototype.step.call(this, action);
  return { seat: undefined, observation: undefined, info: {}, rewards: [0, 0], terminated: true, truncated: false };
}

describe("checkGame", () => {
  it.each(games)("passes %s", async (_, create) => {
    await expect(checkGame(create())).resolves.toBeUndefined();
  });

  it.each<[string, Partial<Record<keyof TicTacToe | "tryMove", unknown>>, RegExp]>([
    ["a seat that does not exist", { getSeat: () => 2 }, /seat must be an integer from 0 to 1/],
    ["a missing reward", { getReturns: () => [1] }, /rewards must be 2 finite numbers/],
    ["an empty list of actions", { listActions: () => [] }, /at least one action/],
    ["a legal action outside the space", { listActions: () => [9] }, /legal action 9 is not in Discrete/],
    ["a position that is not saved", { setState: () => {} }, /differ|call reset/i],
    ["a game that fails in play", { observe: () => expect.fail("oops") }, /failed in play: oops/],
    ["a seat that never moves", { getSeat: (board: string) => seatOf(board, 0) }, /seat 1 had no turn/],
    ["legal actions that are listed twice", { listActions: () => [0, 0] }, /lists an action twice/],
    ["a taken cell that is taken again", { tryMove: takeAny }, /an action that is not legal must be refused/],
    ["moves after the end", { step: moveForever }, /must throw when the game is over/],
    ["chance that no seed determines", { observe: () => `Board ${Math.floor(Math.random() * 1e9)}` }, /differ/],
  ])("finds %s", async (_, fault, message) => {
    const game = Object.assign(new TicTacToe(), fault);
    await expect(checkGame(game)).rejects.toThrow(message);
  });
});
