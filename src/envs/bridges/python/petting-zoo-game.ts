import { z } from "zod";
import { type JsonValue, asJsonObject } from "../../../core/json.js";
import { describeIssue } from "../../../core/schema-issue.js";
import { invalidArgument, LlamaGymError } from "../../../core/errors.js";
import type { RenderFrame, RenderMode, ResetOptions } from "../../env.js";
import { asEnv, type GameEnv, type GameOptions } from "../../games/as-env.js";
import { createOpponent } from "../../games/opponents.js";
import type { GameResult, GameText } from "../../games/game.js";
import { isReward } from "../../reward-limit.js";
import type { Space } from "../../spaces/index.js";
import { bridgeError, type Channel } from "../channel.js";
import { createTextInterface } from "../create-text-interface.js";
import { decodeObservation } from "../decode-observation.js";
import { readDescription } from "../remote-description.js";
import { readFrame, toJsonObject } from "../remote-env.js";
import { RemoteGame } from "../remote-game.js";
import { openPython, PROTOCOL_VERSION, type PythonEnvOptions } from "./python-env.js";

const MAX_SEATS = 100;

/** Options of a game in Python; its text interface is generated. */
export type PettingZooOptions = Omit<PythonEnvOptions, "text">;

const resultSchema = z.object({
  seat: z.int().min(0).nullable(),
  observation: z.unknown(),
  info: z.record(z.string(), z.unknown()),
  rewards: z.array(z.number()),
  terminated: z.boolean(),
  truncated: z.boolean(),
});

/**
 * A game of PettingZoo's AEC API in a Python process. Legal actions come from `action_mask`. An
 * illegal action, or none, loses: -1, and 1 shared by the other seats; the Python game does not see
 * it.
 */
export class PettingZooGame extends RemoteGame {
  override readonly seats: number;
  override readonly observationSpace: Space;
  override readonly actionSpace: Space;
  override readonly text: GameText<unknown, unknown>;
  override readonly metadata;
  private current: GameResult<unknown> | undefined;

  private constructor(channel: Channel, response: JsonValue, options: PettingZooOptions) {
    super(channel, "in Python");
    const limits = { protocol: PROTOCOL_VERSION, maxElements: Infinity };
    const { observationSpace, actionSpace, renderFps } = readDescription(channel.name, response, limits);
    const { seats } = asJsonObject(response)!;
    if (typeof seats !== "number" || !Number.isInteger(seats) || seats < 2 || seats > MAX_SEATS)
      throw bridgeError(channel.name, `has ${JSON.stringify(seats ?? null)} agents; a game needs 2 to ${MAX_SEATS}.`);
    const text = createTextInterface(observationSpace, actionSpace, options);
    if (text === undefined)
      throw invalidArgument(`${channel.name} has no text interface for its actions: ${actionSpace.toString()}.`);
    const { renderMode } = options;
    this.seats = seats;
    this.observationSpace = observationSpace;
    this.actionSpace = actionSpace;
    this.metadata = {
      renderModes: renderMode === undefined ? [] : [renderMode],
      ...(renderFps === undefined ? {} : { renderFps }),
    };
    this.text = {
      ...text,
      historyTurns: 0,
      systemPromptOf: (seat) => `${text.systemPrompt} You are player ${seat + 1} of ${seats}.`,
      choices: (_observation, info) =>
        ((info.legalActions as readonly unknown[] | undefined) ?? []).map((action) => text.formatAction(action)),
    };
  }

  /**
   * Starts Python and creates the game of a module such as pettingzoo.classic.tictactoe_v3, whose
   * `env` makes it.
   * @throws ENV_FAILED when Python, PettingZoo or the module is missing or creating the game fails
   */
  static async open(module: string, options: PettingZooOptions = {}): Promise<PettingZooGame> {
    const params = { api: "pettingzoo" };
    return openPython(module, options, params, (channel, response) => new PettingZooGame(channel, response, options));
  }

  override async reset({ seed, options }: ResetOptions = {}): Promise<GameResult<unknown>> {
    const params = {
      ...(seed === undefined ? {} : { seed: typeof seed === "bigint" ? String(seed) : seed }),
      ...(options === undefined ? {} : { options: toJsonObject("reset options", options) }),
    };
    return (this.current = this.read("reset", await this.channel.call("reset", params)));
  }

  override async step(action: unknown): Promise<GameResult<unknown>> {
    const { seat, info } = this.current ?? {};
    if (seat === undefined || info === undefined)
      throw new LlamaGymError("ENV_NOT_RESET", `${this.channel.name}: no game is running. Call reset().`);
    const { legalActions } = info as { legalActions?: readonly unknown[] };
    const isLegal =
      action !== undefined && this.actionSpace.contains(action) && (legalActions?.includes(action) ?? true);
    this.current = isLegal
      ? this.read("step", await this.channel.call("step", { action: this.actionSpace.encode(action) }))
      : this.forfeit(seat);
    return this.current;
  }

  override async render(mode: RenderMode): Promise<RenderFrame> {
    if (!this.metadata.renderModes.includes(mode)) return super.render(mode);
    return readFrame(this.channel.name, mode, await this.channel.call("render", { mode }));
  }

  private read(method: string, json: JsonValue): GameResult<unknown> {
    const parsed = resultSchema.safeParse(json);
    const refuse = (problem: string, cause?: unknown) =>
      bridgeError(this.channel.name, `replied to ${method} with an invalid turn: ${problem}.`, cause);
    if (!parsed.success) throw refuse(describeIssue(parsed.error.issues));
    const { seat, observation, info, rewards, terminated, truncated } = parsed.data;
    if (rewards.length !== this.seats || !rewards.every(isReward))
      throw refuse(`\`rewards\` must be ${this.seats} finite numbers`);
    if ((seat === null) !== (terminated || truncated) || (seat ?? 0) >= this.seats)
      throw refuse(`the seat is ${String(seat)}, terminated ${terminated}, truncated ${truncated}`);
    if (seat === null) return { seat: undefined, observation: undefined, info, rewards, terminated, truncated };
    try {
      const decoded: unknown = decodeObservation(this.observationSpace, observation as JsonValue);
      return { seat, observation: decoded, info, rewards, terminated, truncated };
    } catch (error) {
      throw refuse((error as Error).message, error);
    }
  }
}

/**
 * Opens a game of PettingZoo as an environment, in which an opponent moves for the other seats.
 * Throws as `PettingZooGame.open`, and INVALID_ARGUMENT for minimax and a seat that does not exist.
 */
export async function openPettingZoo(
  module: string,
  options: PettingZooOptions,
  { opponent = "random", seat = "alternate" }: GameOptions = {},
): Promise<GameEnv> {
  const game = await PettingZooGame.open(module, options);
  try {
    return asEnv(game, createOpponent(game, opponent), seat);
  } catch (error) {
    await game.close();
    throw error;
  }
}
