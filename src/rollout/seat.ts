import type { Env, EnvState } from "../envs/env.js";
import type { Info } from "../envs/info.js";
import type { JsonValue } from "../envs/json.js";
import type { MaybePromise } from "../envs/maybe-promise.js";
import { LlamaGymError } from "../errors.js";
import type { RandomState, RandomStream } from "../tensor/random.js";
import { checkObservation, checkStep } from "./checks.js";
import type { DialogueState } from "./dialogue.js";
import type { Playthrough } from "./playthrough.js";
import { shareSparseReward } from "./rewards.js";
import type { EpisodeSummary, Segment, SegmentEnd, Turn } from "./turn.js";

/** All that a seat's future depends on besides the model; JSON. */
export interface SeatState {
  /** null where no episode was ever started, and where the environment cannot be saved. */
  readonly env: EnvState | null;
  readonly hasStarted: boolean;
  readonly random: RandomState;
  /** null between episodes, and where the environment cannot be saved. */
  readonly episode: {
    readonly dialogue: DialogueState;
    readonly observation: JsonValue;
    readonly info: Info;
    readonly return: number;
    readonly turns: number;
  } | null;
}

/** One environment and the agent that plays it, turn by turn, episode after episode. */
export class Seat<Observation = unknown, Action = unknown> {
  private play: Playthrough<Observation, Action> | undefined;
  private observation: Observation | undefined;
  private info: Info = {};
  private episodeReturn = 0;
  private episodeTurns = 0;
  private turns: Turn[] = [];
  private hasStarted = false;

  /**
   * `newPlaythrough` starts the agent's side of an episode; it draws from `random`. Where rewards that come only at an episode's
   * end are shared, they are between the turns since the last segment.
   */
  constructor(
    readonly env: Env<Observation, Action>,
    private readonly newPlaythrough: () => Playthrough<Observation, Action>,
    private readonly random: RandomStream,
    /** Starts the environment's random stream with the first episode that is given no seed. */
    private firstSeed?: number,
    private readonly sharesSparseRewards = false,
  ) {}

  get isPlaying(): boolean {
    return this.play !== undefined;
  }

  /** Turns since the last segment was taken. */
  get waitingTurns(): number {
    return this.turns.length;
  }

  /** Starts an episode. Throws AGENT_FAILED and what the environment throws. */
  async start(seed = this.firstSeed): Promise<void> {
    this.firstSeed = undefined;
    this.hasStarted = true;
    const { observation, info } = await this.ask("reset", () => this.env.reset(seed === undefined ? {} : { seed }));
    this.episodeReturn = 0;
    this.episodeTurns = 0;
    this.play = this.newPlaythrough();
    this.see(observation, info);
  }

  /** One reply and one step; gives the segment and the summary of an episode that ends with it. */
  async turn(signal?: AbortSignal): Promise<{ segment: Segment; summary: EpisodeSummary } | undefined> {
    const play = this.play!;
    const { action, turn } = await play.reply(signal);
    const result = await this.ask("step", () => this.env.step(action));
    checkStep(result, this.env.toString());
    const { observation, reward, terminated, truncated, info } = result;
    turn.reward += reward;
    this.episodeReturn += reward;
    this.episodeTurns++;
    this.turns.push(turn);
    if (!terminated) this.see(observation, info);
    if (!terminated && !truncated) return undefined;
    const end: SegmentEnd = terminated ? "terminated" : "truncated";
    if (this.sharesSparseRewards) shareSparseReward(this.turns);
    const segment = this.takeSegment(end);
    this.play = undefined;
    return { segment, summary: { return: this.episodeReturn, turns: this.episodeTurns, end } };
  }

  /** The turns since the last segment; the episode goes on. */
  takeSegment(end: SegmentEnd = "cut"): Segment {
    const { turns } = this;
    const play = this.play!;
    this.turns = [];
    const nextPrompt = end === "terminated" ? undefined : end === "truncated" ? play.finalPrompt() : play.prompt();
    return { turns, end, nextPrompt, isBeginning: this.episodeTurns === turns.length };
  }

  getState(): SeatState {
    const { play, info, episodeReturn, episodeTurns, hasStarted } = this;
    const env = hasStarted ? stateOf(this.env) : null;
    const episode =
      play === undefined || env === null
        ? null
        : {
            dialogue: play.getState(),
            observation: this.env.observationSpace.encode(this.observation as Observation),
            info,
            return: episodeReturn,
            turns: episodeTurns,
          };
    return { env, hasStarted, random: this.random.getState(), episode };
  }

  /** Goes on from a saved state; where the environment could not be saved, with a new episode. */
  setState({ env, hasStarted, random, episode }: SeatState): void {
    this.random.setState(random);
    this.turns = [];
    this.play = undefined;
    this.hasStarted = hasStarted;
    if (env !== null) {
      this.firstSeed = undefined;
      this.env.setState(env);
    } else if (hasStarted) {
      // The seed that it was made with would play its first episodes again.
      this.firstSeed = this.random.integers(0, 2 ** 31);
    }
    if (episode === null) return;
    this.observation = this.env.observationSpace.decode(episode.observation);
    this.info = episode.info;
    this.episodeReturn = episode.return;
    this.episodeTurns = episode.turns;
    this.play = this.newPlaythrough();
    this.play.setState(episode.dialogue, this.observation, episode.info);
  }

  /** Asks the environment; whatever its own code throws is an ENV_FAILED that names it. */
  private async ask<Result>(method: "reset" | "step", call: () => MaybePromise<Result>): Promise<Result> {
    try {
      return await call();
    } catch (error) {
      if (error instanceof LlamaGymError) throw error;
      const reason = error instanceof Error ? error.message : String(error);
      throw new LlamaGymError("ENV_FAILED", `${this.env.toString()} threw in ${method}: ${reason}`, { cause: error });
    }
  }

  private see(observation: Observation, info: Info = {}): void {
    checkObservation(observation, this.env.toString());
    this.observation = observation;
    this.info = info;
    this.play!.observe(observation, info);
  }
}

/** null for an environment that cannot be saved. */
function stateOf(env: Env): EnvState | null {
  try {
    return env.getState();
  } catch (error) {
    if (error instanceof LlamaGymError && error.code === "INVALID_STATE") return null;
    throw error;
  }
}
