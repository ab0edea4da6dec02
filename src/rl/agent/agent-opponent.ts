import type { Opponent } from "../../envs/index.js";
import type { Agent } from "./agent.js";

/**
 * Lets an agent move for a seat of a game, in `asEnv(game, createAgentOpponent(agent))`:
 * completions are sampled as in training, without earlier turns. A completion without an action is
 * an illegal move.
 */
export function createAgentOpponent<Observation, Action>(
  agent: Agent<Observation, Action>,
): Opponent<Observation, Action> {
  return async ({ seat, observation, info, random }) => {
    const episode = agent.newEpisode(random, "train", { seat });
    episode.observe(observation, { ...info, seat });
    const { action } = await episode.act({ allowsNoAction: true });
    return action;
  };
}
