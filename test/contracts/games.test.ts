import { describe, expect, it } from "vitest";
import { ConnectFour, KuhnPoker, Nim, Pig, SimpleNegotiation, TicTacToe } from "../../src/envs.js";
import { checkGame } from "../../src/testing.js";

const games = [
  ["tic-tac-toe", () => new TicTacToe()],
  ["connect four", () => new ConnectFour()],
  ["Nim", () => new Nim()],
  ["Nim with a second try", () => new Nim({ piles: [2, 3], illegalMoves: "retry" })],
  ["Pig", () => new Pig({ goal: 30 })],
  ["Kuhn poker", () => new KuhnPoker()],
  ["negotiation", () => new SimpleNegotiation()],
  ["negotiation by TextArena's rules", () => new SimpleNegotiation({ rules: "text-arena", illegalMoves: "retry" })],
  ["Kuhn poker by TextArena's rules", () => new KuhnPoker({ rules: "text-arena", rounds: 5 })],
] as const;

describe("checkGame", () => {
  it.each(games)("passes %s", async (_, create) => {
    await expect(checkGame(create())).resolves.toBeUndefined();
  });

  it.each<[string, Partial<Record<keyof TicTacToe, unknown>>, RegExp]>([
    ["a seat that does not exist", { getSeat: () => 2 }, /seat must be an integer from 0 to 1/],
    ["a missing reward", { getReturns: () => [1] }, /rewards must be 2 finite numbers/],
    ["an empty list of actions", { listActions: () => [] }, /at least one action/],
    ["a legal action outside the space", { listActions: () => [9] }, /legal action 9 is not in Discrete/],
    ["a position that is not saved", { setState: () => {} }, /differ|call reset/i],
    ["chance that no seed determines", { observe: () => `Board ${Math.floor(Math.random() * 1e9)}` }, /differ/],
  ])("finds %s", async (_, fault, message) => {
    const game = Object.assign(new TicTacToe(), fault);
    await expect(checkGame(game)).rejects.toThrow(message);
  });
});
