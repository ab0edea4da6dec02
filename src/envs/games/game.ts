import { invalidArgument, invalidEnv } from "../../core/errors.js";
import type { JsonValue } from "../../core/json.js";
import type { MaybePromise } from "../../core/maybe-promise.js";
import type { EnvMetadata, RenderFrame, RenderMode, ResetOptions } from "../env.js";
import type { Info } from "../info.js";
import { isReward } from "../reward-limit.js";
import { formatValue, type Space } from "../spaces/space.js";
import type { TextInterface } from "../text-interface.js";

/** Result of `Game.reset` and `Game.step`. */
export interface GameResult<Observation> {
  /** Who moves next; undefined when the game is over. */
  readonly seat: number | undefined;
  /** What that seat sees; undefined when the game is over. */
  readonly observation: Observation | undefined;
  readonly info: Info;
  /** Rewards of this step, one for each seat. */
  readonly rewards: readonly number[];
  readonly terminated: boolean;
  readonly truncated: boolean;
}

/** Text interface of a game: what each seat is told, and the parser of its completions. */
export interface GameText<Observation, Action> extends TextInterface<Observation, Action> {
  systemPromptOf(seat: number): string;
}

/**
 * A game of several players who move in turn. A game may be asynchronous. Every `info` with a seat
 * to move has `legalActions`, where they can be listed; an action that is not legal is answered as
 * the game's rules say.
 */
export abstract class Game<Observation = unknown, Action = unknown> {
  abstract readonly seats: number;
  abstract readonly observationSpace: Space<Observation>;
  abstract readonly actionSpace: Space<Action>;
  abstract readonly text: GameText<Observation, Action>;
  readonly metadata: EnvMetadata = { renderModes: [] };
  /**
   * Whether random play makes sense: legal actions are listed, or any action of the space may be
   * one. Default true.
   */
  readonly canMoveAtRandom: boolean = true;

  /** Starts a game; without a seed the random stream continues. */
  abstract reset(options?: ResetOptions): MaybePromise<GameResult<Observation>>;
  /**
   * Moves for the seat that is to move; undefined is a reply that names no action, and counts as an
   * illegal one.
   */
  abstract step(action: Action | undefined): MaybePromise<GameResult<Observation>>;
  /** Returns everything that determines the rest of the game as JSON. */
  abstract getState(): JsonValue;
  abstract setState(state: JsonValue): void;

  /** Renders the position; `mode` is one of `metadata.renderModes`. */
  render(mode: RenderMode): MaybePromise<RenderFrame> {
    throw invalidArgument(`${this.constructor.name} cannot render "${mode}".`);
  }

  /** Releases resources. May be called twice. */
  close(): MaybePromise<void> {}
}

/**
 * Checks what `reset` or `step` of a game returned: a reward for each seat, a seat that moves next
 * unless the game is over, legal actions of the action space. Returns it.
 * @throws ENV_INVALID
 */
export function checkGameResult<Observation, Action>(
  game: Game<Observation, Action>,
  result: GameResult<Observation>,
): GameResult<Observation> {
  const fail = (problem: string) => invalidEnv(`${game.constructor.name}: ${problem}.`);
  const isResult = typeof result === "object" && result !== null && !Array.isArray(result);
  if (!isResult)
    throw fail(
      `a result must be { seat, observation, info, rewards, terminated, truncated }, got ${formatValue(result)}`,
    );
  const { seat, info, rewards, terminated, truncated } = result;
  if (!Array.isArray(rewards) || rewards.length !== game.seats || !rewards.every((reward) => isReward(reward)))
    throw fail(`rewards must be ${game.seats} finite numbers, one for each seat, got ${formatValue(rewards)}`);
  const isOver: unknown = terminated || truncated;
  if ((seat === undefined) !== Boolean(isOver))
    throw fail(`the seat must be undefined at the end and only there; got seat ${seat}, terminated ${terminated}`);
  if (seat === undefined) return result;
  if (!Number.isInteger(seat) || seat < 0 || seat >= game.seats)
    throw fail(`a seat must be an integer from 0 to ${game.seats - 1}, got ${formatValue(seat)}`);
  const { legalActions } = (info ?? {}) as { legalActions?: unknown };
  if (legalActions === undefined) return result;
  if (!Array.isArray(legalActions) || legalActions.length === 0)
    throw fail(`info.legalActions must be a list with at least one action, got ${formatValue(legalActions)}`);
  for (const action of legalActions as unknown[])
    if (!game.actionSpace.contains(action))
      throw fail(`the legal action ${formatValue(action)} is not in ${game.actionSpace.toString()}`);
  return result;
}
