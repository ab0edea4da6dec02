import type { RandomStream } from "../../core/random/random-stream.js";
import type { Settings } from "../../core/settings.js";
import { type Env, createNamedOpponent, OPPONENT_NAMES } from "../../envs/index.js";
import type { Agent } from "../agent/agent.js";
import { GameSlot, requireGame, type GameSlotOptions } from "../rollout/game-slot.js";
import { PastPolicy } from "../rollout/past-policy.js";
import { League, type AdapterOpponent } from "./league.js";
import { parseOpponents } from "./parse-opponents.js";
import { readAdapterOpponent } from "./read-adapter-opponent.js";
import type { selfPlaySettings } from "./trainer-settings.js";

/** The policies of games in self-play: the trained one, and earlier versions of it. */
export class GamePlayers {
  private past: PastPolicy | undefined;

  constructor(private readonly agent: Agent) {}

  /** Plays with an earlier version from now on. */
  async loadPast(values: Float32Array): Promise<void> {
    const { model, settings } = this.agent;
    this.past ??= new PastPolicy(model, settings.completion);
    await this.past.load(values);
  }

  clearCaches(): void {
    this.past?.clearCaches();
  }

  /**
   * Creates a slot whose games these policies play. @throws ENV_INVALID for an environment that is
   * not a game
   */
  createSlot(env: Env, random: RandomStream, options: Pick<GameSlotOptions, "index">): GameSlot {
    const { agent } = this;
    return new GameSlot(env, {
      ...options,
      random,
      settings: agent.settings,
      newEpisode: (seat, policy) =>
        agent.newEpisode(random, "train", { seat, ...(policy === "past" ? { sampler: this.past!.sampler } : {}) }),
    });
  }

  async release(): Promise<void> {
    await this.past?.release();
  }
}

/**
 * Creates the league of a run in an environment.
 * @throws ENV_INVALID for an environment that is not a game; INVALID_ARGUMENT for weights that are
 * not valid, for random play and minimax in a game without them, and for an adapter that does not
 * fit the agent's model.
 */
export async function createLeague(
  env: Env,
  settings: Settings<typeof selfPlaySettings>,
  agent: Agent,
): Promise<League> {
  const game = requireGame(env);
  const { byKind, adapters } = parseOpponents(settings.opponents);
  for (const name of OPPONENT_NAMES) if ((byKind.get(name) ?? 0) > 0) createNamedOpponent(game, name);
  const opened: AdapterOpponent[] = [];
  for (const [path, weight] of adapters)
    opened.push({ path, weight, values: await readAdapterOpponent(agent.model.causalLM, path) });
  return new League(settings, game.seats, opened);
}
