import { afterAll, beforeAll, expect, it } from "vitest";
import { ScriptedAgent } from "../../../test/support/player.js";
import { TrainableModels } from "../../../test/support/trainable.js";
import type { LanguageModel } from "../../generation/index.js";
import { grpo, ppo } from "../algorithms/index.js";
import { LoopMonitor } from "./loop-monitor.js";

const models = new TrainableModels();
let model: LanguageModel;
beforeAll(async () => {
  model = await models.open({ maxPositions: 256, scale: 0.2 });
});
afterAll(() => models.close());

/** Plays episodes of one turn in a loop of `act`, and returns the warnings. */
async function play(episodes: number, reward: ((episode: number) => number) | undefined): Promise<string[]> {
  const warnings: string[] = [];
  const agent = new ScriptedAgent(model, undefined, {
    algorithm: ppo({ batchSize: 16 }),
    generation: { maxNewTokens: 2 },
    onWarning: (message) => void warnings.push(message),
  });
  for (let episode = 0; episode < episodes; episode++) {
    await agent.act("one");
    if (reward !== undefined) agent.assignReward(reward(episode));
    await agent.terminateEpisode();
  }
  return warnings;
}

it("warns once of a loop that assigns no rewards", async () => {
  const warnings = await play(160, undefined);
  const ofRewards = warnings.filter((warning) => warning.includes("All 64 rewards"));
  expect(ofRewards).toEqual([expect.stringContaining("check that assignReward is called")]);
});

it("says nothing of rewards that differ", async () => {
  expect(await play(80, (episode) => episode % 2)).toEqual([]);
});

it("warns of groups that start differently", async () => {
  const { folder } = await models.open({ maxPositions: 256, scale: 0.2 });
  const plain = await models.reopen(folder, { valueHead: undefined });
  const play = async (start: (episode: number) => string) => {
    const warnings: string[] = [];
    const agent = new ScriptedAgent(plain, undefined, {
      algorithm: grpo({ batchSize: 16, numGenerations: 4 }),
      generation: { maxNewTokens: 2 },
      onWarning: (message) => void warnings.push(message),
    });
    for (let episode = 0; episode < 64; episode++) {
      await agent.act(start(episode));
      agent.assignReward(episode % 2);
      await agent.terminateEpisode();
    }
    return warnings;
  };
  expect(await play((episode) => `start ${Math.floor(episode / 4)}`)).toEqual([]);
  expect(await play((episode) => `start ${episode}`)).toEqual([
    expect.stringMatching(
      /In 16 of 16 groups, .* Reset the environment with the same seed for all episodes of a group/,
    ),
  ]);
});

it("warns of an episode that is never ended", () => {
  const warnings: string[] = [];
  const monitor = new LoopMonitor((message) => void warnings.push(message));
  for (let turns = 1; turns <= 3000; turns++) monitor.checkEpisode(turns);
  expect(warnings).toEqual([expect.stringMatching(/2000 turns and has not ended.*terminateEpisode\(\)/)]);
});
