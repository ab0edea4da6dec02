import { invalidArgument, LlamaGymError } from "../../core/errors.js";
import type { JsonValue } from "../../core/json.js";
import { andThen, type MaybePromise } from "../../core/maybe-promise.js";
import {
  Env,
  type EnvMetadata,
  type EnvOptions,
  type RenderFrame,
  type RenderMode,
  type ResetOptions,
  type ResetResult,
  type StepResult,
} from "../env.js";
import type { Info } from "../info.js";
import type { Space } from "../spaces/space.js";
import type { TextInterface } from "../text-interface.js";
import { checkGameResult, type Game, type GameResult } from "./game.js";
import { createOpponent, type Opponent, type OpponentName } from "./opponents.js";

/** The seat of the agent: a fixed one, or drawn at a seed and then the next one in each game. */
export type AgentSeat = number | "alternate";

/**
 * Makes an environment of a game: an opponent moves for the other seats within `reset` and `step`.
 * The reward goes to the agent's seat.
 * @throws INVALID_ARGUMENT for a seat that the game does not have
 */
export function asEnv<Observation, Action>(
  game: Game<Observation, Action>,
  opponent: Opponent<Observation, Action>,
  seat: AgentSeat = "alternate",
): GameEnv<Observation, Action> {
  return new GameEnv(game, opponent, seat);
}

/** Games that may be over before the agent's first turn, one after the other. */
const MAX_STARTS = 100;

/** What happened up to the agent's turn. */
interface Round<Observation> {
  readonly result: GameResult<Observation>;
  readonly reward: number;
}

/** A game against an opponent as an environment; `asEnv` creates it. */
export class GameEnv<Observation = unknown, Action = unknown> extends Env<Observation, Action> {
  override readonly observationSpace: Space<Observation>;
  override readonly actionSpace: Space<Action>;
  override readonly metadata: EnvMetadata;
  override readonly text: TextInterface<Observation, Action>;
  private seat = 0;
  private isRunning = false;
  private hasStarted = false;
  /** What the agent saw last, which also stands for the end of a game. */
  private lastObservation: Observation | undefined;

  constructor(
    readonly game: Game<Observation, Action>,
    private readonly opponent: Opponent<Observation, Action>,
    readonly agentSeat: AgentSeat,
  ) {
    super();
    if (agentSeat !== "alternate" && !(Number.isInteger(agentSeat) && agentSeat >= 0 && agentSeat < game.seats))
      throw invalidArgument(
        `${game.constructor.name} has the seats 0 to ${game.seats - 1}, or "alternate"; got ${JSON.stringify(agentSeat)}.`,
      );
    this.observationSpace = game.observationSpace;
    this.actionSpace = game.actionSpace;
    this.metadata = game.metadata;
    this.text =
      agentSeat === "alternate" ? game.text : { ...game.text, systemPrompt: game.text.systemPromptOf(agentSeat) };
  }

  override reset({ seed, options }: ResetOptions = {}): MaybePromise<ResetResult<Observation>> {
    this.reseed(seed);
    this.seat = this.chooseSeat(seed !== undefined || !this.hasStarted);
    this.hasStarted = true;
    return andThen(this.startRound({ seed, options }), (round) => {
      this.isRunning = true;
      return { observation: this.observe(round), info: this.inform(round) };
    });
  }

  /** Starts a game in which the agent has a turn; others are dropped. */
  private startRound(options: ResetOptions, attempts = MAX_STARTS): MaybePromise<Round<Observation>> {
    return andThen(this.game.reset(options), (started) =>
      andThen(this.playOthers(this.toRound(started)), (round) => {
        if (round.result.seat !== undefined) return round;
        if (attempts > 1) return this.startRound({ options: options.options }, attempts - 1);
        throw new LlamaGymError(
          "ENV_FAILED",
          `${this.toString()}: ${MAX_STARTS} games were over before the agent's first turn.`,
        );
      }),
    );
  }

  override step(action: Action): MaybePromise<StepResult<Observation>> {
    this.checkAction(action);
    if (!this.isRunning)
      throw new LlamaGymError("ENV_NOT_RESET", `${this.toString()}: no game is running. Call reset().`);
    return andThen(this.game.step(action), (moved) =>
      andThen(this.playOthers(this.toRound(moved)), (round) => {
        const { terminated, truncated } = round.result;
        this.isRunning = !terminated && !truncated;
        return {
          observation: this.observe(round),
          reward: round.reward,
          terminated,
          truncated,
          info: this.inform(round),
        };
      }),
    );
  }

  override render(mode: RenderMode): MaybePromise<RenderFrame> {
    return this.game.render(mode);
  }

  override close(): MaybePromise<void> {
    return this.game.close();
  }

  protected override saveState(): JsonValue {
    const { seat, isRunning, hasStarted } = this;
    const observation = this.lastObservation === undefined ? null : this.observationSpace.encode(this.lastObservation);
    return { seat, isRunning, hasStarted, observation, game: this.game.getState() };
  }

  protected override loadState(json: JsonValue): void {
    const { seat, isRunning, hasStarted, observation, game } = json as {
      seat: number;
      isRunning: boolean;
      hasStarted: boolean;
      observation: JsonValue;
      game: JsonValue;
    };
    this.seat = seat;
    this.isRunning = isRunning;
    this.hasStarted = hasStarted;
    this.lastObservation = observation === null ? undefined : this.observationSpace.decode(observation);
    this.game.setState(game);
  }

  private chooseSeat(isFirst: boolean): number {
    if (this.agentSeat !== "alternate") return this.agentSeat;
    return isFirst ? this.random.integers(0, this.game.seats) : (this.seat + 1) % this.game.seats;
  }

  /** Adds a result of the game to the reward so far. @throws ENV_INVALID for one that is none */
  private toRound(moved: GameResult<Observation>, earlier = 0): Round<Observation> {
    const result = checkGameResult(this.game, moved);
    return { result, reward: earlier + result.rewards[this.seat] };
  }

  /** Lets the opponent move until the agent is to move or the game is over. */
  private playOthers(round: Round<Observation>): MaybePromise<Round<Observation>> {
    const { seat, observation, info } = round.result;
    if (seat === undefined || seat === this.seat) return round;
    const turn = { seat, observation: observation as Observation, info, random: this.random };
    return andThen(this.opponent(turn), (action) =>
      andThen(this.game.step(action), (moved) => this.playOthers(this.toRound(moved, round.reward))),
    );
  }

  private observe({ result }: Round<Observation>): Observation {
    if (result.observation !== undefined) this.lastObservation = result.observation;
    return this.lastObservation as Observation;
  }

  private inform({ result }: Round<Observation>): Info {
    return { ...result.info, seat: this.seat };
  }
}

/** Options of a game as an environment, in addition to those of the game. */
export interface GameOptions {
  /** "random" (default), "minimax", or a function. */
  readonly opponent?: OpponentName | Opponent<string, unknown>;
  /** The agent's seat. Default "alternate". */
  readonly seat?: AgentSeat;
}

/** Returns the factory of environments of a game against an opponent. */
export function createGameEnv<Observation, Action>(
  createGame: (options: EnvOptions) => Game<Observation, Action>,
): (options: EnvOptions) => Env {
  return ({ opponent = "random", seat = "alternate", ...options }: EnvOptions & GameOptions) => {
    const game = createGame(options);
    return asEnv(game, createOpponent(game, opponent), seat);
  };
}
