import { vi } from "vitest";
import { Agent } from "../../src/agent/agent.js";
import type { Extraction } from "../../src/rollout/extraction.js";
import type { Segment } from "../../src/rollout/turn.js";

/** Says "a" or "b"; what counts as an action is up to the test. */
export class Player extends Agent<string, number> {
  choices: readonly string[] | undefined = ["a", "b"];
  read: (response: string) => number | Extraction<number> | undefined = (response) => ["a", "b"].indexOf(response);

  override getSystemPrompt() {
    return "Rules.";
  }

  override formatObservation(observation: string) {
    return observation;
  }

  override getChoices() {
    return this.choices;
  }

  override extractAction(response: string) {
    return this.read(response);
  }
}

/** What the agent's learner is given, in place of training on it. */
export async function trainedOn(agent: Player): Promise<Segment[]> {
  const given: Segment[] = [];
  vi.spyOn(await agent.learner(), "update").mockImplementation(async (segments) => {
    given.push(...segments);
    return {};
  });
  return given;
}

/** Plays an episode with these rewards to its end. */
export async function playEpisode(agent: Player, rewards: readonly number[]): Promise<void> {
  for (const [i, reward] of rewards.entries()) {
    await agent.act(`Step ${i}`);
    agent.assignReward(reward);
  }
  await agent.terminateEpisode();
}
