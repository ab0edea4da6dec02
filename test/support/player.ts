import { vi } from "vitest";
import { Agent } from "../../src/rl/agent/agent.js";
import type { Extraction } from "../../src/rl/rollout/extraction.js";
import type { Trajectory } from "../../src/rl/rollout/trajectory.js";

/** Says "a" or "b"; what counts as an action is up to the test. */
export class ScriptedAgent extends Agent<string, number> {
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
export async function captureTrajectories(agent: ScriptedAgent): Promise<Trajectory[]> {
  const trajectories: Trajectory[] = [];
  const learner = await agent.getLearner();
  vi.spyOn(learner, "prepare").mockImplementation(async (batch) => trajectories.push(...batch));
  vi.spyOn(learner, "update").mockResolvedValue({});
  return trajectories;
}

/** Plays an episode with these rewards to its end. */
export async function playEpisode(agent: ScriptedAgent, rewards: readonly number[]): Promise<void> {
  for (const [i, reward] of rewards.entries()) {
    await agent.act(`Step ${i}`);
    agent.assignReward(reward);
  }
  await agent.terminateEpisode();
}
