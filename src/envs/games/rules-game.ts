import { invalidArgument, invalidEnv, LlamaGymError } from "../../core/errors.js";
import type { JsonValue } from "../../core/json.js";
import type { MersenneTwisterState } from "../../core/random/mersenne-twister.js";
import { PythonRandom } from "../../core/random/python-random.js";
import type { EnvMetadata, RenderFrame, RenderMode, ResetOptions } from "../env.js";
import type { Info } from "../info.js";
import { applyDefaults, checkCount } from "../env-options.js";
import { createSeededStream } from "../seeded-stream.js";
import { type Space, Text } from "../spaces/index.js";
import { findLastNamed } from "../text-parsing.js";
import { Game, type GameResult, type GameText } from "./game.js";

/** What an illegal move does: it loses the game, or the first one in a turn is asked again. */
export type IllegalMoves = "lose" | "retry";

/** Options of every game with rules. */
export interface RulesGameOptions {
  /** Default "lose". */
  readonly illegalMoves?: IllegalMoves;
  /**
   * Most random moves before the first turn, 0 to 100: each game draws a number up to it. For
   * positions that good play avoids; only in games in which both players see all. Default 0.
   */
  readonly randomOpening?: number;
}

const PRINTABLE = Array.from({ length: 95 }, (_, i) => String.fromCharCode(32 + i)).join("");
const MAX_OBSERVATION = 1000;

/** Messages of JavaScript for the change of a frozen object. */
const FROZEN = /read only property|not extensible|Cannot delete property/;

function deepFreeze(value: JsonValue): void {
  if (typeof value !== "object" || value === null || Object.isFrozen(value)) return;
  Object.freeze(value);
  Object.values(value).forEach(deepFreeze);
}

/** What a move leads to. */
export interface MoveResult<Position> {
  readonly position: Position;
  /** Parts of the move that the rules refuse; more than one lose even where one is asked again. */
  readonly illegalParts: number;
}

/**
 * A game for two given by its rules: positions are JSON values, actions are numbered unless a game
 * says otherwise, observations are texts. Chance draws from Python's random numbers, so that a seed
 * gives the games of TextArena.
 */
export abstract class RulesGame<Position extends JsonValue, Action = number> extends Game<string, Action> {
  override readonly metadata: EnvMetadata = { renderModes: ["ansi"], renderFps: 2 };
  override readonly seats: number = 2;
  override readonly observationSpace = new Text(MAX_OBSERVATION, { charset: `${PRINTABLE}\n` });
  abstract override readonly actionSpace: Space<Action>;
  /** Whether both players see the whole position. */
  abstract get isPerfectInformation(): boolean;
  private readonly illegalMoves: IllegalMoves;
  private readonly randomOpening: number;
  private stream: PythonRandom | undefined;
  private position: Position | undefined;
  private isWarned = false;
  private forfeitedBy: number | undefined;
  private isEnumerated = false;

  /**
   * `otherNames` names the options that the game reads itself. @throws INVALID_ARGUMENT for an
   * unknown option or value
   */
  constructor(options: RulesGameOptions = {}, otherNames: readonly string[] = []) {
    super();
    const defaults = { illegalMoves: "lose", randomOpening: 0 };
    const { illegalMoves, randomOpening } = applyDefaults(this.constructor.name, options, defaults, otherNames);
    if (illegalMoves !== "lose" && illegalMoves !== "retry")
      throw invalidArgument(
        `${this.constructor.name}: option illegalMoves must be "lose" or "retry", got ${JSON.stringify(illegalMoves)}.`,
      );
    checkCount(this.constructor.name, "randomOpening", randomOpening, 0, 100);
    if (randomOpening > 0) this.checkOpening();
    this.illegalMoves = illegalMoves;
    this.randomOpening = randomOpening;
  }

  private checkOpening(): void {
    if (this.isPerfectInformation) return;
    throw invalidArgument(
      `${this.constructor.name}: option randomOpening is for games in which both players see all. Remove it.`,
    );
  }

  /** Returns a first position; chance draws from `this.random`. */
  protected abstract start(): Position;
  /** Returns who moves; undefined when the game is over. */
  abstract getSeat(position: Position): number | undefined;
  /** Lists the legal actions. */
  abstract listActions(position: Position): readonly Action[];
  /** Returns the position after a legal action. */
  abstract next(position: Position, action: Action): Position;
  /** Returns what each seat has won so far. */
  abstract getReturns(position: Position): readonly number[];
  /** Returns what a seat knows, as text. */
  abstract observe(position: Position, seat: number): string;

  /**
   * Lists the first positions with their probabilities, for exact evaluation; undefined where they
   * are too many.
   */
  listStarts(): readonly { readonly position: Position; readonly probability: number }[] | undefined {
    return undefined;
  }

  /**
   * Random stream of the game; seeded from entropy until a seed is passed. @throws ENV_INVALID in
   * `follow`
   */
  protected get random(): PythonRandom {
    if (this.isEnumerated)
      throw invalidEnv(
        `${this.constructor.name} has no exact values and no minimax player, since next() draws chance: leave out listStarts().`,
      );
    return (this.stream ??= new PythonRandom(createSeededStream().seed));
  }

  /** The present position. @throws ENV_NOT_RESET before the first reset. */
  get currentPosition(): Position {
    if (this.position !== undefined) return this.position;
    throw new LlamaGymError("ENV_NOT_RESET", `${this.constructor.name}: call reset() before step() and render().`);
  }

  override reset({ seed }: ResetOptions = {}): GameResult<string> {
    if (seed !== undefined) this.stream = new PythonRandom(createSeededStream(seed).seed);
    this.position = this.playOpening(this.start());
    this.isWarned = false;
    this.forfeitedBy = undefined;
    return this.describe([0, 0]);
  }

  /** Makes random moves, as long as they do not end the game. */
  private playOpening(start: Position): Position {
    if (this.randomOpening === 0) return start;
    let position = start;
    for (let left = this.random.randInt(0, this.randomOpening); left > 0; left--) {
      const actions = this.listActions(position);
      const action = actions[this.random.randInt(0, actions.length - 1)];
      const before = position;
      const next = this.protect(before, () => this.next(before, action));
      if (this.getSeat(next) === undefined) break;
      position = next;
    }
    return position;
  }

  /** Makes a move that may be illegal; by default, an illegal one leaves the position as it is. */
  protected tryMove(position: Position, action: Action | undefined): MoveResult<Position> {
    if (action === undefined || !this.listActions(position).includes(action)) return { position, illegalParts: 1 };
    return { position: this.next(position, action), illegalParts: 0 };
  }

  /**
   * Returns the position after a legal action, for enumeration. @throws ENV_INVALID where `next`
   * draws chance or changes its argument
   */
  follow(position: Position, action: Action): Position {
    this.isEnumerated = true;
    try {
      return this.protect(position, () => this.next(position, action));
    } finally {
      this.isEnumerated = false;
    }
  }

  /** Applies rules to a position, which they must not change. @throws ENV_INVALID if they do */
  private protect<Result>(position: Position, apply: () => Result): Result {
    deepFreeze(position);
    try {
      return apply();
    } catch (error) {
      if (!(error instanceof TypeError) || !FROZEN.test(error.message)) throw error;
      throw invalidEnv(
        `${this.constructor.name} changes the position that it is given (${error.message}): return a new one, as in { ...position, seat: 1 - position.seat }.`,
        error,
      );
    }
  }

  override step(action: Action | undefined): GameResult<string> {
    const position = this.currentPosition;
    const seat = this.getSeat(position);
    if (seat === undefined || this.forfeitedBy !== undefined)
      throw new LlamaGymError("ENV_NOT_RESET", `${this.constructor.name}: the game is over. Call reset().`);
    const { position: next, illegalParts } = this.protect(position, () => this.tryMove(position, action));
    this.position = next;
    if (illegalParts > 0 && (this.illegalMoves === "lose" || this.isWarned || illegalParts > 1))
      return this.forfeit(seat);
    this.isWarned = illegalParts > 0;
    const before = this.getReturns(position);
    const rewards = this.getReturns(next).map((value, i) => value - before[i]);
    return this.describe(rewards, this.isWarned && this.getSeat(next) !== undefined ? { illegal: seat } : {});
  }

  override render(_mode: RenderMode): RenderFrame {
    return this.draw(this.currentPosition);
  }

  /** Draws a position for terminals. */
  protected draw(position: Position): string {
    return this.observe(position, this.getSeat(position) ?? 0);
  }

  override getState(): JsonValue {
    const { position = null, isWarned, forfeitedBy = null } = this;
    return { random: this.random.getState() as unknown as JsonValue, position, isWarned, forfeitedBy };
  }

  override setState(state: JsonValue): void {
    const saved = state as unknown as {
      random: MersenneTwisterState;
      position: Position | null;
      isWarned: boolean;
      forfeitedBy: number | null;
    };
    this.random.setState(saved.random);
    this.position = saved.position ?? undefined;
    this.isWarned = saved.isWarned;
    this.forfeitedBy = saved.forfeitedBy ?? undefined;
  }

  private forfeit(seat: number): GameResult<string> {
    this.forfeitedBy = seat;
    return this.describe(
      [0, 1].map((other) => (other === seat ? -1 : 1)),
      { illegal: seat },
    );
  }

  private describe(rewards: readonly number[], extra: Info = {}): GameResult<string> {
    const position = this.currentPosition;
    const seat = this.forfeitedBy === undefined ? this.getSeat(position) : undefined;
    if (seat === undefined)
      return { seat, observation: undefined, info: extra, rewards, terminated: true, truncated: false };
    return {
      seat,
      observation: this.observe(position, seat),
      info: { legalActions: [...this.listActions(position)], ...extra },
      rewards,
      terminated: false,
      truncated: false,
    };
  }
}

/** Creates the text interface of numbered actions, whose legal ones are the choices. */
export function createGameText(
  systemPrompt: string,
  names: readonly string[],
  parse: (completion: string) => number | undefined = (completion) => findLastNamed(completion, names),
): GameText<string, number> {
  return {
    systemPrompt,
    systemPromptOf: () => systemPrompt,
    // Observations tell all that a player knows.
    historyTurns: 0,
    formatObservation: (observation) => observation,
    parseAction: parse,
    formatAction: (action) => names[action],
    choices: (_observation, info) => ((info.legalActions ?? []) as readonly number[]).map((action) => names[action]),
  };
}
