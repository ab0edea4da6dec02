import { readFileSync } from "node:fs";
import { gunzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { parseGame } from "./parse-game.js";
import { StateTracker } from "./state-tracker.js";
import { getStaticInfos, INFO_NAMES } from "./text-game.js";

const ALL = new Set(INFO_NAMES);
const read = (name: string) =>
  gunzipSync(readFileSync(new URL(`../../test/fixtures/textworld/${name}.gz`, import.meta.url))).toString();

interface Transcript {
  readonly game: Record<string, unknown>;
  readonly walkthrough: { commands: string[]; states: Record<string, unknown>[] };
}

describe.each(["coin", "custom_game", "simple", "cooking"])("the rules of TextWorld's %s", (name) => {
  const game = parseGame(read(`${name}.json`), `${name}.json`);
  const { game: fixed, walkthrough } = JSON.parse(read(`${name}.transcript.json`)) as Transcript;

  it("give TextWorld's facts, commands, policies and rewards along the walkthrough", () => {
    const view = new StateTracker(game, ALL);
    for (const [i, recorded] of walkthrough.states.entries()) {
      if (i > 0) {
        const { validActions } = view.progress;
        view.beginCommand();
        view.recordAction(
          validActions.find((action) => game.formatCommands([action])[0] === walkthrough.commands[i - 1]),
        );
      }
      const state = view.getState(recorded["won"] === true, recorded["lost"] === true);
      const told = [state.facts, state.admissibleCommands, state.policyCommands, state.intermediateReward, view.moves];
      expect(told).toEqual(
        ["facts", "admissible_commands", "policy_commands", "intermediate_reward", "moves"].map((key) => recorded[key]),
      );
      expect(state.lastAction).toBe(recorded["last_action"]);
      expect(view.progress.completed).toBe(recorded["won"]);
    }
  });

  it("equal TextWorld's description of the game", () => {
    const infos = getStaticInfos(game, ALL);
    expect(infos).toMatchObject({
      objective: fixed["objective"],
      maxScore: fixed["max_score"],
      entities: fixed["entities"],
      typedEntities: fixed["typed_entities"],
      verbs: fixed["verbs"],
      commandTemplates: fixed["command_templates"],
      walkthrough: fixed["walkthrough"],
    });
    expect(infos.possibleAdmissibleCommands).toHaveLength(fixed["possible_admissible_commands"] as number);
  });
});

describe("parseGame", () => {
  const text = read("coin.json");

  it.each([
    ["cut short", text.slice(0, 2000), /coin.json is not JSON/],
    ["without quests", text.replace('"quests"', '"tasks"'), /coin.json is not a TextWorld game \(quests/],
    ["with broken rules", text.replace("rules {", "rules ["), /broken at line/],
    ["of another version", text.replace('"version": 1', '"version": 2'), /format version 2, expected 1/],
    ["that is only a number", "3", /is not a TextWorld game/],
  ])("says what is wrong with a game %s", (_, broken, message) => {
    expect(() => parseGame(broken, "coin.json")).toThrow(message);
  });
});
