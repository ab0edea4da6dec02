import { invalidArgument, invalidEnv } from "../../core/errors.js";
import type { RandomStream } from "../../core/random/random-stream.js";
import {
  type Env,
  GameEnv,
  type Game,
  createNamedOpponent,
  type Opponent,
  SeatsEnv,
  type SeatsInfo,
} from "../../envs/index.js";
import type { Episode } from "./episode.js";
import { EpisodeRunner } from "./episode-runner.js";
import type { EndedEpisode, EnvSlotState, EpisodeSpec, Matchup, RolloutSlot } from "./rollout-slot.js";
import type { RolloutSettings } from "./rollout-settings.js";
import { spreadSparseReward } from "./spread-sparse-reward.js";
import type { GameSummary, Trajectory, TrajectoryEnd, Turn } from "./trajectory.js";
import { limitCall, type CallLimit } from "./call-limit.js";

export interface GameSlotOptions {
  /** Creates an episode of the trained policy, or of an earlier version of it, for a seat. */
  readonly newEpisode: (seat: number, policy: "self" | "past") => Episode;
  readonly random: RandomStream;
  readonly settings: Pick<RolloutSettings, "spreadSparseRewards"> & CallLimit;
  /** Position among the slots of a run, for messages. */
  readonly index: number;
}

/** A seat that a model moves for. */
interface ModelSeat {
  readonly episode: Episode;
  readonly isTrained: boolean;
  readonly turns: Turn[];
}

/** Whether a model moves for the other seats, with the values that were loaded last. */
const hasModel = ({ opponent }: Matchup) => opponent === "past" || opponent === "adapter";

/** Returns the game of an environment that plays one. @throws ENV_INVALID */
export function requireGame(env: Env): Game {
  if (env.unwrapped instanceof GameEnv) return env.unwrapped.game as Game;
  throw invalidEnv(
    `${env.toString()} has one player. Self-play and opponents need a game, such as TicTacToe-v0, or asEnv() of your own.`,
  );
}

/**
 * A game in which a policy moves for one seat or for all of them, each with its own prompt and
 * history. Games are always played to their end: a reward that comes while another seat moves
 * belongs to the seat's last turn.
 */
export class GameSlot implements RolloutSlot {
  private readonly game: Game;
  private readonly runner: EpisodeRunner;
  private readonly maxMoves: number;
  private readonly opponents = new Map<string, Opponent>();
  private seats = new Map<number, ModelSeat>();
  private matchup: Matchup = { opponent: "self" };
  private returns: number[] = [];
  private illegalMoves = 0;
  private spec: EpisodeSpec = {};
  private frame: string | undefined;
  isRunning = false;

  /** @throws ENV_INVALID for an environment that is not a game */
  constructor(
    env: Env,
    private readonly options: GameSlotOptions,
  ) {
    const { settings, index } = options;
    this.game = requireGame(env);
    this.runner = new EpisodeRunner(new SeatsEnv(this.game), { settings, index });
    this.maxMoves = (env.spec?.maxEpisodeSteps ?? Infinity) * this.game.seats;
  }

  /** Starts a game. @throws AGENT_FAILED or ENV_FAILED */
  async start(spec: EpisodeSpec = {}): Promise<void> {
    const { matchup = { opponent: "self" } } = spec;
    const { opponent, seat: trainedSeat = -1 } = matchup;
    if (opponent !== "self" && (trainedSeat < 0 || trainedSeat >= this.game.seats))
      throw invalidArgument(
        `${this.runner.location} has the seats 0 to ${this.game.seats - 1}; the policy's seat is ${String(matchup.seat)}.`,
      );
    this.spec = spec;
    this.matchup = matchup;
    this.seats = new Map();
    this.illegalMoves = 0;
    this.returns = Array.from({ length: this.game.seats }, () => 0);
    for (let seat = 0; seat < this.game.seats; seat++) {
      const isTrained = matchup.opponent === "self" || seat === matchup.seat;
      if (!isTrained && !hasModel(matchup)) continue;
      const episode = this.options.newEpisode(seat, isTrained ? "self" : "past");
      this.seats.set(seat, { episode, isTrained, turns: [] });
    }
    await this.runner.reset(spec.seed);
    this.isRunning = true;
    await this.prepareMove();
  }

  /** Makes one move of a model, and those of players without a model up to the next one. */
  async step(signal?: AbortSignal): Promise<EndedEpisode | undefined> {
    const { runner, frame: render } = this;
    const { record = false } = this.spec;
    const { seat } = runner.info as SeatsInfo;
    const player = this.seats.get(seat!);
    // The game may be over before a model has a turn.
    if (player === undefined || runner.isDone) return this.finish();
    const { episode, isTrained, turns } = player;
    const { location } = runner;
    const isRecorded = record && isTrained;
    const { action, turn } = await episode.act({ signal, location, record: isRecorded, allowsNoAction: true });
    const { recording } = turn;
    const text = turn.isValid ? this.game.text.formatAction(action) : undefined;
    turns.push(recording === undefined ? turn : { ...turn, recording: { ...recording, render, action: text } });
    await this.move(action, seat!);
    await this.prepareMove();
    return runner.isDone ? this.finish() : undefined;
  }

  getState(): EnvSlotState {
    return { env: null, hasStarted: false, random: this.options.random.getState(), episode: null };
  }

  setState({ random }: EnvSlotState): void {
    this.options.random.setState(random);
    this.isRunning = false;
  }

  /** Lets players without a model move, and shows the position to the model that is to move. */
  private async prepareMove(): Promise<void> {
    const { runner } = this;
    for (;;) {
      if (runner.isDone || runner.steps >= this.maxMoves) break;
      const { seat } = runner.info as SeatsInfo;
      const player = this.seats.get(seat!);
      if (player !== undefined) {
        player.episode.observe(runner.observation, runner.info);
        break;
      }
      await this.move(await this.askOpponent(seat!), seat!);
    }
    if (runner.steps >= this.maxMoves && !runner.isDone) runner.end = "truncated";
    // A game that fails to render still trains.
    if (this.spec.record === true) this.frame = await runner.render().catch(() => undefined);
  }

  private async askOpponent(seat: number): Promise<unknown> {
    const { matchup, runner, options } = this;
    const name = matchup.opponent;
    if (name === "self" || name === "past" || name === "adapter")
      throw invalidArgument(`The seat ${seat} of ${runner.location} has no player.`);
    let opponent = this.opponents.get(name);
    if (opponent === undefined) this.opponents.set(name, (opponent = createNamedOpponent(this.game, name)));
    const { observation, info } = runner;
    const ask = () => opponent({ seat, observation, info, random: options.random });
    const subject = () => `The opponent ${name} in ${runner.location}`;
    return limitCall(options.settings, ask, { subject, code: "ENV_FAILED" });
  }

  private async move(action: unknown, seat: number): Promise<void> {
    await this.runner.step(action);
    const { rewards, illegal } = this.runner.info as SeatsInfo;
    if (illegal === seat && this.seats.get(seat)?.isTrained === true) this.illegalMoves++;
    rewards.forEach((reward, other) => {
      this.returns[other] += reward;
      const turn = this.seats.get(other)?.turns.at(-1);
      if (turn !== undefined) turn.reward += reward;
    });
  }

  private finish(): EndedEpisode {
    this.isRunning = false;
    const { runner, matchup, returns, illegalMoves, seats } = this;
    const trained = [...seats].filter(([, { isTrained }]) => isTrained);
    const game: GameSummary = {
      opponent: matchup.opponent,
      ...(matchup.past === undefined ? {} : { past: matchup.past }),
      seats: trained.map(([seat]) => seat),
      returns: [...returns],
      illegalMoves,
    };
    const summary = {
      return: trained.reduce((sum, [seat]) => sum + returns[seat], 0) / trained.length,
      turns: runner.steps,
      end: runner.end as TrajectoryEnd,
      game,
    };
    return { trajectories: trained.flatMap(([seat, { turns }]) => this.toTrajectory(seat, turns)), summary };
  }

  /**
   * Returns the trajectory of a seat; none of one that had no turn. A game without an end has no
   * further rewards.
   */
  private toTrajectory(seat: number, turns: readonly Turn[]): Trajectory[] {
    if (turns.length === 0) return [];
    if (this.options.settings.spreadSparseRewards) spreadSparseReward(turns);
    const { seed, record } = this.spec;
    return [
      {
        turns,
        end: "terminated",
        bootstrapPrompt: undefined,
        startsEpisode: true,
        ...(seed === undefined ? {} : { seed }),
        ...(record === true ? { final: { render: this.frame, observation: undefined } } : {}),
        seat,
        opponent: this.matchup.opponent,
      },
    ];
  }
}
