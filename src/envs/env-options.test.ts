import { describe, expect, it } from "vitest";
import { make } from "../envs.js";

describe("an unknown option", () => {
  it.each([
    ["Blackjack-v1", "natural, sab"],
    ["FrozenLake-v1", "desc, mapName, rewardSchedule, isSlippery, successRate"],
    ["KuhnPoker-v0", "rules, rounds, illegalMoves, randomOpening"],
    ["SimpleNegotiation-v0", "rules, turns, illegalMoves, randomOpening"],
    ["Pig-v0", "goal, maxActions, illegalMoves, randomOpening"],
    ["Nim-v0", "piles, illegalMoves, randomOpening"],
    ["Reasoning-ChainSum-v0", "level, task, attempts"],
    ["ShopSupport-v0", "orders, highest, turns, json"],
  ])("is answered with all options of %s", (id, names) => {
    expect(() => make(id, { color: 1 })).toThrow(`has no option "color". Its options: ${names}.`);
  });
});
