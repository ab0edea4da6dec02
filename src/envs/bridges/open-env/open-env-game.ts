import { asJsonObject, type JsonObject, type JsonValue } from "../../../core/json.js";
import { LlamaGymError } from "../../../core/errors.js";
import type { ResetOptions } from "../../env.js";
import { asEnv, type GameEnv, type GameOptions } from "../../games/as-env.js";
import type { GameResult, GameText } from "../../games/game.js";
import { createNamedOpponent, createOpponent } from "../../games/opponents.js";
import { isReward } from "../../reward-limit.js";
import type { Space } from "../../spaces/index.js";
import { bridgeError, type Channel, formatJson } from "../channel.js";
import { toJsonObject, type RemoteEnvDescription } from "../remote-env.js";
import { RemoteGame } from "../remote-game.js";

const MAX_SEATS = 100;

/** Field of an observation with the ids of all players. */
export const PLAYERS_FIELD = "legal_players";

/** Players of an observation, where a server's game has several that its client moves for. */
export function readPlayers(observation: JsonValue | undefined): readonly number[] | undefined {
  const { [PLAYERS_FIELD]: players } = asJsonObject(observation) ?? {};
  if (!Array.isArray(players) || players.length < 2 || !players.every(Number.isInteger)) return undefined;
  return [...(players as number[])].sort((a, b) => a - b);
}

/**
 * A game on an OpenEnv server whose client moves for all players, such as TextArena's with
 * `num_players` 2: `current_player_id` of an observation moves next, `legal_players` are the
 * players. The rewards of all of them are read from the server's state at the end of a game.
 */
export class OpenEnvGame extends RemoteGame {
  override readonly seats: number;
  override readonly observationSpace: Space;
  override readonly actionSpace: Space;
  override readonly text: GameText<unknown, unknown>;
  // Actions are texts or objects, of which hardly any is a move.
  override readonly canMoveAtRandom = false;
  private seat: number | undefined;

  /** @param players ids of the players, by seat */
  constructor(
    channel: Channel,
    { observationSpace, actionSpace, text }: RemoteEnvDescription,
    private readonly players: readonly number[],
  ) {
    super(channel, "on the server");
    if (players.length > MAX_SEATS)
      throw bridgeError(channel.name, `has ${players.length} players, at most ${MAX_SEATS} are allowed.`);
    this.seats = players.length;
    this.observationSpace = observationSpace;
    this.actionSpace = actionSpace;
    this.text = {
      ...text!,
      historyTurns: 0,
      formatObservation: (observation, info) =>
        formatMessages(observation) ?? text!.formatObservation(observation, info),
      systemPromptOf: (seat) => `${text!.systemPrompt} You are player ${players[seat]}.`,
    };
  }

  override async reset({ seed, options }: ResetOptions = {}): Promise<GameResult<unknown>> {
    const result = await this.channel.call("reset", {
      ...(seed === undefined ? {} : { seed: Number(seed) }),
      ...(options === undefined ? {} : toJsonObject("reset options", options)),
    });
    return this.read("reset", result);
  }

  override async step(action: unknown): Promise<GameResult<unknown>> {
    const { seat } = this;
    if (seat === undefined)
      throw new LlamaGymError("ENV_NOT_RESET", `${this.channel.name}: no game is running. Call reset().`);
    // The server judges what is legal; it does not see a completion that is no action.
    if (action === undefined || !this.actionSpace.contains(action)) {
      this.seat = undefined;
      return this.forfeit(seat);
    }
    return this.read("step", await this.channel.call("step", action as JsonObject));
  }

  private async read(method: "reset" | "step", json: JsonValue): Promise<GameResult<unknown>> {
    const { observation, reward, done = false } = asJsonObject(json) ?? {};
    const { current_player_id: player, info, ...fields } = asJsonObject(observation) ?? {};
    const seat = this.players.indexOf(player as number);
    const refuse = (problem: string) => bridgeError(this.channel.name, `answered ${method} ${problem}.`);
    if (typeof done !== "boolean" || seat < 0)
      throw refuse(`without done or with a current_player_id that is no player: ${formatJson(player ?? null)}`);
    if (done) {
      this.seat = undefined;
      const rewards = await this.readRewards();
      const results = { rewards, terminated: true, truncated: false };
      return { seat: undefined, observation: undefined, info: { ...asJsonObject(info) }, ...results };
    }
    if (typeof reward === "number" && reward !== 0)
      throw refuse(`with the reward ${reward} before the end of the game, without saying which player gets it`);
    this.seat = seat;
    const rewards = this.players.map(() => 0);
    const seen = { ...fields, current_player_id: player };
    return { seat, observation: seen, info: { ...asJsonObject(info) }, rewards, terminated: false, truncated: false };
  }

  /** Reads the rewards of all players from the server's state. */
  private async readRewards(): Promise<number[]> {
    const state = asJsonObject(await this.channel.call("state", {})) ?? {};
    const byPlayer = asJsonObject(state.rewards) ?? asJsonObject(asJsonObject(state.raw_state)?.rewards);
    const rewards = this.players.map((player) => byPlayer?.[String(player)]);
    if (rewards.every(isReward)) return rewards;
    const problem = `has no finite reward for each of the players ${this.players.join(", ")} in the state after a game`;
    throw bridgeError(
      this.channel.name,
      `${problem} (\`rewards\` or \`raw_state.rewards\`): ${formatJson(byPlayer ?? null)}.`,
    );
  }
}

/** Formats the messages of TextArena's observations, of which the first are the game's rules. */
function formatMessages(observation: unknown): string | undefined {
  const { messages } = asJsonObject(observation) ?? {};
  if (!Array.isArray(messages)) return undefined;
  const texts = messages.map((message) => asJsonObject(message)?.content);
  return texts.every((text) => typeof text === "string") ? texts.join("\n").trim() : undefined;
}

/**
 * Makes an environment of a game, in which an opponent moves for the other seats.
 * @throws INVALID_ARGUMENT for a named opponent that the game does not have, and a seat that does
 * not exist; without an opponent, where it would move
 */
export function openGame(game: OpenEnvGame, { opponent, seat = "alternate" }: GameOptions = {}): GameEnv {
  const player = opponent === undefined ? () => createNamedOpponent(game, "random") : createOpponent(game, opponent);
  return asEnv(game, player, seat);
}
