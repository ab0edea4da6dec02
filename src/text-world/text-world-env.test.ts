import "./register.js";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import type { LlamaGymError } from "../core/errors.js";
import { make } from "../envs/registry/make.js";
import { StoryGame } from "./story-game.js";
import { readStoryFiles } from "./story-files.js";
import { TextWorldEnv, type TextWorldOptions } from "./text-world-env.js";
import { cleanFeedback } from "./text-world-text.js";

const FIXTURES = new URL("../../test/fixtures/textworld/", import.meta.url);
const unpacked = (name: string) => gunzipSync(readFileSync(new URL(`${name}.gz`, FIXTURES)));

let folder = "";
let gameFile = "";
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "text-world-"));
  gameFile = join(folder, "custom_game.z8");
  for (const name of ["custom_game.z8", "custom_game.json"]) writeFileSync(join(folder, name), unpacked(name));
});
afterAll(() => rmSync(folder, { recursive: true }));

const getErrorCode = (action: () => unknown) => {
  try {
    action();
  } catch (error) {
    return (error as LlamaGymError).code;
  }
  return "no error";
};

describe("TextWorldEnv with a story file", () => {
  it("is won by the walkthrough, with one point at its end and a step forward each time", () => {
    const env = new TextWorldEnv({ gameFile, infos: ["won", "score", "intermediateReward", "walkthrough"] });
    const { info } = env.reset({ seed: 1 });
    const steps = (info["walkthrough"] as string[]).map((command) => env.step(command));
    expect(steps.map(({ reward }) => reward)).toEqual([0, 0, 0, 0, 1]);
    expect(steps.map((step) => step.info["intermediateReward"])).toEqual([1, 1, 1, 1, 1]);
    expect(steps.map(({ terminated }) => terminated)).toEqual([false, false, false, false, true]);
    expect(steps[4].info).toMatchObject({ won: true, score: 1 });
    expect(Object.keys(steps[4].info).sort()).toEqual(["intermediateReward", "score", "walkthrough", "won"]);
    expect(getErrorCode(() => env.step("look"))).toBe("ENV_NOT_RESET");
  });

  it("can reward by intermediate reward", () => {
    const env = new TextWorldEnv({ gameFile, reward: "intermediate" });
    env.reset({ seed: 1 });
    const rewards = [...(env.walkthrough ?? []).slice(0, 2), "look", "dance"].map(
      (command) => env.step(command).reward,
    );
    expect(rewards).toEqual([1, 1, 0, 0]);
  });

  it("cuts the prompt off for stories that tw-make named itself, as TextWorld does", () => {
    const files = readStoryFiles(gameFile);
    const plain = new StoryGame(files.story, files.game, { infos: new Set() });
    const cut = new StoryGame(files.story, files.game, { infos: new Set(), trimPrompt: true });
    expect(plain.start().feedback).toMatch(/\n> {100,}-= Scullery =-0\/1$/);
    expect(`\n${cut.start().feedback}`).toBe(plain.start().feedback.replace(/\n>.*$/, ""));
    expect(plain.send("look").feedback.startsWith("\n-= Scullery =-")).toBe(true);
    expect(cut.send("look").feedback.startsWith("-= Scullery =-")).toBe(true);
  });

  it("ends when the player quits", () => {
    const env = new TextWorldEnv({ gameFile });
    env.reset({ seed: 1 });
    expect(env.step("quit").terminated).toBe(false);
    const { terminated, info, reward } = env.step("yes");
    expect([terminated, info["won"], info["lost"], reward]).toEqual([true, false, false, 0]);
  });

  it("ends a command that takes the story too long with ENV_FAILED", () => {
    const files = readStoryFiles(gameFile);
    const game = new StoryGame(files.story, files.game, { infos: new Set(), maxInstructions: 1000 });
    expect(getErrorCode(() => game.start())).toBe("ENV_FAILED");
  });

  it("names files that are missing, cut short, changed or do not belong together", () => {
    const story = unpacked("custom_game.z8");
    const json = unpacked("custom_game.json");
    const broken = (name: string, storyBytes: Uint8Array | undefined, gameBytes: Uint8Array | undefined) => {
      if (storyBytes !== undefined) writeFileSync(join(folder, `${name}.z8`), storyBytes);
      if (gameBytes !== undefined) writeFileSync(join(folder, `${name}.json`), gameBytes);
      return getErrorCode(() => new TextWorldEnv({ gameFile: join(folder, `${name}.z8`) }));
    };
    const changed = Uint8Array.from(story);
    changed[200_000] ^= 0xff;
    expect(broken("missing", undefined, undefined)).toBe("FILE_NOT_FOUND");
    expect(broken("alone", story, undefined)).toBe("FILE_NOT_FOUND");
    expect(broken("empty", new Uint8Array(), json)).toBe("FILE_CORRUPT");
    expect(broken("short", story.subarray(0, 100_000), json)).toBe("FILE_CORRUPT");
    expect(broken("changed", changed, json)).toBe("FILE_CORRUPT");
    expect(broken("noise", new Uint8Array(1000).fill(77), json)).toBe("FORMAT_UNSUPPORTED");
    expect(broken("half", story, json.subarray(0, 5000))).toBe("FILE_CORRUPT");
    expect(() => new TextWorldEnv({ gameFile: join(folder, "short.z8") })).toThrow("short.z8");
  });
});

describe("TextWorldEnv with generated games", () => {
  it("plays another game each episode, the same for the same seed", () => {
    const env = new TextWorldEnv({ rooms: 3, objects: 5, questLength: 3 });
    const first = env.reset({ seed: 5 }).observation;
    const second = env.reset().observation;
    expect(second).not.toBe(first);
    expect(env.reset({ seed: 5 }).observation).toBe(first);
    expect(env.reset().observation).toBe(second);
  });

  it("plays one game with gameSeed", () => {
    const env = new TextWorldEnv({ gameSeed: 3 });
    expect(env.reset({ seed: 1 }).observation).toBe(env.reset({ seed: 2 }).observation);
  });

  it("resumes identically from a saved state", () => {
    const env = new TextWorldEnv({ infos: ["facts", "moves", "policyCommands"] });
    env.reset({ seed: 11 });
    for (const command of (env.walkthrough ?? []).slice(0, 3)) env.step(command);
    const saved = JSON.parse(JSON.stringify(env.getState()));
    const other = new TextWorldEnv({ infos: ["facts", "moves", "policyCommands"] });
    other.setState(saved);
    for (const command of (env.walkthrough ?? []).slice(3)) expect(other.step(command)).toEqual(env.step(command));
    expect(other.reset()).toEqual(env.reset());
  });

  it("is made by name, and cut off after 50 steps", async () => {
    const warn = vi.spyOn(console, "warn");
    const env = make<string, string>("TextWorld-v0");
    await env.reset({ seed: 1 });
    const truncations: boolean[] = [];
    for (let step = 0; step < 50; step++) truncations.push((await env.step("look")).truncated);
    expect(truncations).toEqual([...Array.from({ length: 49 }, () => false), true]);
    expect(warn).not.toHaveBeenCalled();
    warn.mockRestore();
  });

  it.each([
    [{ infos: ["facts", "weather"] }, /`infos` has "weather"/],
    [{ reward: "gold" }, /`reward` must be "score" or "intermediate"/],
    [{ rooms: 0 }, /`rooms` must be an integer/],
    [{ room: 4 }, /no option "room"/],
    [{ goal: "none" }, /`goal` must be/],
  ])("rejects %j", (options, message) => {
    expect(() => new TextWorldEnv(options as TextWorldOptions)).toThrow(message);
  });

  it("refuses actions that are no text, and steps before the first reset", () => {
    const env = new TextWorldEnv({ gameSeed: 1 });
    expect(getErrorCode(() => env.step("look"))).toBe("ENV_NOT_RESET");
    env.reset();
    expect(getErrorCode(() => env.step(3 as unknown as string))).toBe("ENV_ACTION_INVALID");
  });
});

describe("how it reads as text", () => {
  const env = new TextWorldEnv({ gameSeed: 4 });
  const admissibleCommands = ["take key", "take key from table", "go north", "open oak door", "look"];

  it.each([
    ["go north", "go north"],
    ["I could look around, but I will open the oak door.", "open oak door"],
    ["Take the key from the table", "take key from table"],
    ["Thought: the key is useful.\nCommand: take key", "take key"],
    ["> dance wildly", "dance wildly"],
    ["`examine chest`.", " examine chest ."],
    ["First sentence.\nSecond sentence.", undefined],
    ["", undefined],
  ])("understands %j", (completion, command) => {
    expect(env.text.parseAction(completion, "", { admissibleCommands })).toBe(command);
  });

  it("understands every choice that it gives", () => {
    const { observation, info } = env.reset({ seed: 1 });
    const { choices } = env.text;
    const commands = typeof choices === "function" ? choices(observation, info) : [];
    expect(commands.length).toBeGreaterThan(3);
    for (const command of commands) expect(env.text.parseAction(command, observation, info)).toBe(command);
  });

  it("shows the commands so far in place of the admissible ones with `compactText`", () => {
    const compact = new TextWorldEnv({ gameSeed: 4, compactText: true });
    const { text } = compact;
    const start = compact.reset({ seed: 1 });
    const [first, second] = compact.walkthrough!;
    expect(start.info["commands"]).toEqual([]);
    expect(text.formatObservation(start.observation, start.info)).toMatch(/You are carrying nothing\.$/);
    compact.step(first);
    const other = new TextWorldEnv({ gameSeed: 4, compactText: true });
    other.setState(JSON.parse(JSON.stringify(compact.getState())));
    const { observation, info } = other.step(second);
    expect(text.formatObservation(observation, info)).toMatch(new RegExp(`Commands so far: ${first}; ${second}\\.$`));
    expect(text.formatObservation(observation, info)).toContain(info["objective"]);
    const { choices } = text;
    expect(typeof choices === "function" && choices(observation, info)).toEqual(info["admissibleCommands"]);
    expect(text.systemPrompt.length).toBeLessThan(env.text.systemPrompt.length / 3);
  });

  it("hints at the next command of the quest with `hints`", () => {
    const hinting = new TextWorldEnv({ gameSeed: 4, hints: true });
    let { info } = hinting.reset({ seed: 1 });
    for (let result; result?.terminated !== true; info = result.info) {
      const [, command] = /^The best command is: (.*). Now write: \1$/.exec(String(info["hint"]))!;
      result = hinting.step(command);
      expect(result.reward).toBe(result.terminated ? 1 : 0);
    }
    expect(info).not.toHaveProperty("hint");
    expect(new TextWorldEnv({ gameSeed: 4 }).reset().info).not.toHaveProperty("hint");
  });

  it("shows the feedback without banner and status line, then the requested infos", () => {
    const story = new TextWorldEnv({ gameFile, infos: ["inventory", "admissibleCommands"] });
    const { observation, info } = story.reset({ seed: 1 });
    const shown = story.text.formatObservation(observation, info);
    expect(shown.startsWith("Hey, thanks for coming over")).toBe(true);
    expect(shown).toContain(
      "There is a closed door leading south.\n\nYou are carrying: a type 1 keycard, a teacup and a broom.",
    );
    expect(shown.endsWith("take American limited edition keycard from type 1 box.")).toBe(true);
    expect(cleanFeedback("\nYou pick it up.\n\n\n\n>       -= Attic =-0/5")).toBe("You pick it up.");
  });
});
