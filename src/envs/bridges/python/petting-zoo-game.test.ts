import { spawnSync } from "node:child_process";
import { afterEach, describe, expect, it } from "vitest";
import { openEnv, type GameEnv } from "../../../envs.js";
import { checkGame } from "../../games/check-game.js";
import "../register-openers.js";
import { PettingZooGame, type PettingZooOptions } from "./petting-zoo-game.js";

/** A Python with PettingZoo, if available. */
const real = [process.env.LLAMAGYM_TEST_PYTHON, "bench/peers/.venv/bin/python", "python3"].find(
  (python) => python !== undefined && spawnSync(python, ["-c", "import pettingzoo"]).status === 0,
);
const TIC_TAC_TOE = "pettingzoo.classic.tictactoe_v3";

const opened: { close: () => unknown }[] = [];
afterEach(async () => {
  await Promise.all(opened.splice(0).map((each) => each.close()));
});

const keep = <T extends { close: () => unknown }>(each: T): T => {
  opened.push(each);
  return each;
};

describe.skipIf(real === undefined)("PettingZoo's games (skipped without a Python that has it)", () => {
  const open = async (options: PettingZooOptions = {}) =>
    keep(await PettingZooGame.open(TIC_TAC_TOE, { python: real, ...options }));

  it("move in turn, with legal actions by the mask and rewards of all seats", async () => {
    const game = await open({ actionNames: Array.from({ length: 9 }, (_, i) => `cell ${i}`) });
    const start = await game.reset({ seed: 1 });
    expect(start).toMatchObject({ seat: 0, rewards: [0, 0], info: { legalActions: [0, 1, 2, 3, 4, 5, 6, 7, 8] } });
    expect(game.text.choices).toBeTypeOf("function");
    expect(game.text.systemPromptOf(1)).toContain("player 2 of 2");
    // The cells are numbered by column: the first seat fills the first one.
    let result = start;
    for (const action of [0, 3, 1, 4]) result = await game.step(action);
    expect(result).toMatchObject({ seat: 0, terminated: false });
    result = await game.step(2);
    expect(result).toMatchObject({ seat: undefined, rewards: [1, -1], terminated: true, truncated: false });
    await expect(Promise.resolve(game.step(5))).rejects.toMatchObject({ code: "ENV_NOT_RESET" });
    await game.reset();
    await game.step(4);
    expect(await game.step(4)).toMatchObject({ rewards: [1, -1], terminated: true, info: { illegal: 1 } });
  });

  it("are environments against an opponent, by their id", async () => {
    const env = keep(await openEnv(`pettingzoo:${TIC_TAC_TOE}`, { python: real, seat: 1 }));
    const { info } = await env.reset({ seed: 3 });
    expect((info.legalActions as number[]).length).toBe(8);
    let total = 0;
    for (let legal = info.legalActions as number[], isOver = false; !isOver;) {
      const result = await env.step(legal[0]);
      total += result.reward;
      isOver = result.terminated;
      legal = result.info.legalActions as number[];
    }
    expect([-1, 0, 1]).toContain(total);
    expect((env.unwrapped as GameEnv).game.seats).toBe(2);
  });

  it("pass checkGame up to saving, which they say they cannot", async () => {
    await expect(checkGame(await open(), { games: 2 })).rejects.toMatchObject({
      code: "INVALID_STATE",
      message: expect.stringContaining("cannot be saved") as string,
    });
  });

  it.each<[string, Promise<unknown> | (() => Promise<unknown>), string, RegExp]>([
    [
      "an unknown module",
      async () => PettingZooGame.open("pettingzoo.no_such", { python: real }),
      "ENV_FAILED",
      /No module named/,
    ],
    ["a module without a game", async () => PettingZooGame.open("json", { python: real }), "ENV_FAILED", /env/],
    [
      "minimax",
      async () => openEnv(`pettingzoo:${TIC_TAC_TOE}`, { python: real, opponent: "minimax" }),
      "INVALID_ARGUMENT",
      /minimax/,
    ],
    [
      "a seat that does not exist",
      async () => openEnv(`pettingzoo:${TIC_TAC_TOE}`, { python: real, seat: 2 }),
      "INVALID_ARGUMENT",
      /seats 0 to 1/,
    ],
  ])("refuse %s", async (_, attempt, code, message) => {
    const run = typeof attempt === "function" ? attempt() : attempt;
    await expect(run).rejects.toMatchObject({ code, message: expect.stringMatching(message) as string });
  });
});
