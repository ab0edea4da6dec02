import { describe, expect, it } from "vitest";
import { LlamaGymError } from "../../core/errors.js";
import { INFO_NAMES } from "../text-game.js";
import { HouseGame } from "./house-game.js";
import { makeHouse } from "./make-house.js";

const SEEDS = Array.from({ length: 200 }, (_, seed) => seed);
const ALL = new Set(INFO_NAMES);
/** Houses of many shapes: the seed also picks the size. */
const houseOptions = (seed: number) => ({
  rooms: 1 + (seed % 8),
  objects: seed % 21,
  questLength: 1 + ((seed * 7) % 12),
});

describe("generated houses", () => {
  it("are won by a walkthrough of `questLength` commands, each of which is rewarded", () => {
    for (const seed of SEEDS) {
      const options = houseOptions(seed);
      const game = makeHouse(options, seed);
      const player = new HouseGame(game, ALL);
      let state = player.start();
      let rewards = 0;
      const walkthrough = game.walkthrough ?? [];
      expect(walkthrough).toHaveLength(options.questLength);
      for (const command of walkthrough) {
        expect(state.won).toBe(false);
        expect(state.admissibleCommands).toContain(command);
        state = player.send(command);
        rewards += state.intermediateReward ?? 0;
      }
      expect([state.won, state.lost, state.score, game.maxScore]).toEqual([true, false, 1, 1]);
      expect(rewards).toBe(options.questLength);
    }
  });

  it("understand every admissible command, and no command is admissible that is refused", () => {
    for (const seed of SEEDS.slice(0, 10)) {
      const game = makeHouse(houseOptions(seed), seed);
      for (let turns = 0; turns < 4; turns++) {
        const { won, lost, admissibleCommands: commands = [] } = playRandomly(new HouseGame(game, ALL), seed, turns);
        if (won || lost) break;
        for (const command of commands) {
          const player = new HouseGame(game, ALL);
          const before = playRandomly(player, seed, turns).moves;
          expect([command, player.send(command).moves]).toEqual([command, before + 1]);
        }
      }
    }
  });

  it("answer every command that is not admissible with a sentence, and stay as they are", () => {
    let refused = 0;
    const understood: string[] = [];
    for (const seed of SEEDS.slice(0, 40)) {
      const game = makeHouse(houseOptions(seed), seed);
      const player = new HouseGame(game, ALL);
      const { admissibleCommands, facts } = player.start();
      const others = game.possibleAdmissibleCommands.filter((command) => !admissibleCommands?.includes(command));
      for (const command of [
        ...others,
        "dance",
        "",
        "go up",
        "take moon",
        "open",
        "put it",
        "unlock everything",
        "x",
      ]) {
        const state = player.send(command);
        // Understood in other words: "take cup" as "take cup from table", "put cup on box" as
        // "insert cup into box".
        if (state.moves > 0) {
          understood.push(command);
          player.start();
          continue;
        }
        refused++;
        expect(state.feedback).toMatch(/^[A-Z].*[.?!]$/);
        expect(state.facts).toEqual(facts);
        expect(state.intermediateReward).toBe(0);
      }
    }
    expect(refused).toBeGreaterThan(3000);
    expect(understood.filter((command) => !/^(take|put|insert) /.test(command))).toEqual([]);
  });

  it("are the same for the same seed, and others for others", () => {
    const told = (seed: number) => new HouseGame(makeHouse({}, seed), ALL).start().feedback;
    expect(told(7)).toBe(told(7));
    expect(new Set(SEEDS.slice(0, 50).map(told)).size).toBe(50);
  });

  it("are lost once the quest's food is eaten by mistake", () => {
    let lost = 0;
    for (const seed of SEEDS.slice(0, 60)) {
      const player = new HouseGame(makeHouse({ rooms: 1, objects: 0, questLength: 1 }, seed), ALL);
      const snack = player.start().admissibleCommands?.find((command) => command.startsWith("eat "));
      if (snack === undefined) continue;
      const state = player.send(snack);
      if (state.won) continue;
      lost++;
      expect([state.lost, state.intermediateReward, state.score]).toEqual([true, -1, 0]);
      expect(() => player.send("look")).toThrow(LlamaGymError);
    }
    expect(lost).toBeGreaterThan(2);
  });

  it("stay within what an observation may hold, however full they are", () => {
    for (const seed of SEEDS.slice(0, 3)) {
      const game = makeHouse({ rooms: 1, objects: 100, questLength: 30 }, seed);
      expect(new HouseGame(game, new Set()).start().feedback.length).toBeLessThan(8000);
    }
  });

  it("refuse sizes that make no house", () => {
    for (const options of [{ rooms: 0 }, { rooms: 101 }, { objects: -1 }, { questLength: 0 }, { questLength: 2.5 }]) {
      expect(() => makeHouse(options, 1)).toThrow(/must be an integer from/);
    }
  });
});

/** The state after some admissible commands, the same for the same seed. */
function playRandomly(player: HouseGame, seed: number, turns: number) {
  let state = player.start();
  for (let turn = 0; turn < turns && !state.won && !state.lost; turn++) {
    const commands = (state.admissibleCommands ?? []).filter(
      (command) => !/^(look|inventory|examine|eat)/.test(command),
    );
    if (commands.length === 0) break;
    const next = commands[(seed * 31 + turn * 17) % commands.length];
    state = player.send(next);
  }
  return state;
}
