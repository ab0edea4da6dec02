import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { readTrainedValues, setTrainedValues, TrainableModels } from "../../../test/support/trainable.js";
import { openEnv } from "../../envs/registry/open-env.js";
import type { AgentOptions } from "../agent/agent-options.js";
import { TextAgent } from "../agent/text-agent.js";
import { ratePlayers, type RatedVersion } from "./rate-players.js";

const models = new TrainableModels();
let versions: RatedVersion[];
let folder: string;
beforeAll(async () => {
  const model = await models.open({ maxPositions: 512, scale: 0.2 });
  ({ folder } = model);
  const first = await readTrainedValues(model);
  await setTrainedValues(model, (i) => Math.sin(i));
  versions = [
    { name: "update 0", values: first },
    { name: "update 1", values: await readTrainedValues(model) },
  ];
});
afterAll(() => models.close());

async function createAgent(env: string, options: AgentOptions = {}) {
  const { text } = await openEnv(env, env === "Nim-v0" ? { piles: [1, 2] } : {});
  const settings = { actionMode: "choices", historyTurns: 0, ...options } as const;
  return new TextAgent(await models.reopen(folder), text!, settings);
}

describe("ratePlayers", () => {
  it("rates by exact scores where it can, as games of the same policies come out", async () => {
    const agent = await createAgent("Nim-v0");
    const makeEnv = () => openEnv("Nim-v0", { piles: [1, 2] });
    const before = await readTrainedValues(agent.model);
    const exact = await ratePlayers(agent, makeEnv, versions);
    expect(exact.games).toBe(0);
    expect(exact.players[0].name).toBe("minimax");
    expect(exact.players.find(({ name }) => name === "random")?.elo).toBe(0);
    expect(exact.players.map(({ name }) => name).sort()).toEqual(["minimax", "random", "update 0", "update 1"]);
    expect(await readTrainedValues(agent.model)).toEqual(before);
    // Prompts with history have no exact values, so the same players play games.
    const playing = await createAgent("Nim-v0", { historyTurns: 1 });
    const played = await ratePlayers(playing, makeEnv, versions, { games: 300 });
    expect(played.games).toBe(300);
    for (const { name, score } of exact.players)
      expect(Math.abs(played.players.find((player) => player.name === name)!.score - score)).toBeLessThan(0.1);
  });

  it("plays games without minimax in a game that cannot be listed", async () => {
    const makeEnv = () => openEnv("Pig-v0", { goal: 10 });
    const { players, games } = await ratePlayers(await createAgent("Pig-v0"), makeEnv, versions, { games: 10 });
    expect(games).toBe(10);
    expect(players.map(({ name }) => name).sort()).toEqual(["random", "update 0", "update 1"]);
  });

  it("refuses no versions, no games and environments with one player", async () => {
    const agent = await createAgent("Nim-v0");
    const nim = () => openEnv("Nim-v0");
    await expect(ratePlayers(agent, nim, [])).rejects.toThrow("no version");
    await expect(ratePlayers(agent, nim, versions, { games: 0 })).rejects.toThrow("`games`");
    await expect(ratePlayers(agent, () => openEnv("FrozenLake-v1"), versions)).rejects.toThrow("one player");
  });
});
