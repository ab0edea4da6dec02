import { LlamaGymError } from "../../core/errors.js";
import { andThen, type MaybePromise } from "../../core/maybe-promise.js";
import {
  Env,
  type EnvMetadata,
  type RenderFrame,
  type RenderMode,
  type ResetOptions,
  type ResetResult,
  type StepResult,
} from "../env.js";
import type { Info } from "../info.js";
import type { Space } from "../spaces/space.js";
import { checkGameResult, type Game, type GameResult, type GameText } from "./game.js";

/** What the info of a `SeatsEnv` has in addition to the game's. */
export interface SeatsInfo extends Info {
  /** Who moves next; undefined when the game is over. */
  readonly seat: number | undefined;
  /** Rewards of the last step, one for each seat. */
  readonly rewards: readonly number[];
  /** The seat whose last move was illegal. */
  readonly illegal?: number;
}

/**
 * A game as an environment in which the caller moves for all seats: `info.seat` moves next, and
 * `info.rewards` has the rewards of all seats; the reward of a step is always 0. An undefined
 * action is an illegal move.
 */
export class SeatsEnv<Observation = unknown, Action = unknown> extends Env<Observation, Action | undefined> {
  override readonly observationSpace: Space<Observation>;
  override readonly actionSpace: Space<Action | undefined>;
  override readonly metadata: EnvMetadata;
  override readonly text: GameText<Observation, Action>;
  /** What the mover saw last, in place of an observation at the end of a game. */
  private lastObservation: Observation | undefined;

  constructor(readonly game: Game<Observation, Action>) {
    super();
    this.observationSpace = game.observationSpace;
    this.actionSpace = game.actionSpace;
    this.metadata = game.metadata;
    this.text = game.text;
  }

  override reset(options: ResetOptions = {}): MaybePromise<ResetResult<Observation>> {
    return andThen(this.game.reset(options), (started) => {
      const result = checkGameResult(this.game, started);
      if (result.seat === undefined)
        throw new LlamaGymError("ENV_FAILED", `${this.toString()}: the game was over before the first turn.`);
      return { observation: this.observe(result), info: inform(result) };
    });
  }

  override step(action: Action | undefined): MaybePromise<StepResult<Observation>> {
    return andThen(this.game.step(action), (moved) => {
      const result = checkGameResult(this.game, moved);
      const { terminated, truncated } = result;
      return { observation: this.observe(result), reward: 0, terminated, truncated, info: inform(result) };
    });
  }

  override render(mode: RenderMode): MaybePromise<RenderFrame> {
    return this.game.render(mode);
  }

  override close(): MaybePromise<void> {
    return this.game.close();
  }

  override toString(): string {
    return `<${this.game.constructor.name}>`;
  }

  private observe({ observation }: GameResult<Observation>): Observation {
    if (observation !== undefined) this.lastObservation = observation;
    return this.lastObservation as Observation;
  }
}

function inform({ info, seat, rewards }: GameResult<unknown>): SeatsInfo {
  return { ...info, seat, rewards };
}
