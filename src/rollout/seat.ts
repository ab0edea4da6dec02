import type { Env, EnvState } from "../envs/env.js";
import type { Info } from "../envs/info.js";
import type { JsonValue } from "../envs/json.js";
import { LlamaGymError } from "../errors.js";
import type { RandomState, RandomStream } from "../tensor/random.js";
import type { DialogueState } from "./dialogue.js";
import type { Playthrough } from "./playthrough.js";
import type { EpisodeSummary, Segment, SegmentEnd, Turn } from "./turn.js";

/** All that a seat's future depends on besides the model; JSON. */
export interface SeatState {
  readonly env: EnvState;
  readonly random: RandomState;
  /** null between episodes. */
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

  /** `newPlaythrough` starts the agent's side of an episode; it draws from `random`. */
  constructor(
    readonly env: Env<Observation, Action>,
    private readonly newPlaythrough: () => Playthrough<Observation, Action>,
    private readonly random: RandomStream,
    /** Starts the environment's random stream with the first episode that is given no seed. */
    private firstSeed?: number,
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
    const { observation, info } = await this.env.reset(seed === undefined ? {} : { seed });
    this.episodeReturn = 0;
    this.episodeTurns = 0;
    this.play = this.newPlaythrough();
    this.see(observation, info);
  }

  /** One reply and one step; gives the segment and the summary of an episode that ends with it. */
  async turn(signal?: AbortSignal): Promise<{ segment: Segment; summary: EpisodeSummary } | undefined> {
    const play = this.play!;
    const { action, turn } = await play.reply(signal);
    const { observation, reward, terminated, truncated, info } = await this.env.step(action);
    checkReward(this.env, reward);
    turn.reward += reward;
    this.episodeReturn += reward;
    this.episodeTurns++;
    this.turns.push(turn);
    if (!terminated) this.see(observation, info);
    if (!terminated && !truncated) return undefined;
    const end: SegmentEnd = terminated ? "terminated" : "truncated";
    const segment = this.takeSegment(end);
    this.play = undefined;
    return { segment, summary: { return: this.episodeReturn, turns: this.episodeTurns, end } };
  }

  /** The turns since the last segment; the episode goes on. */
  takeSegment(end: SegmentEnd = "cut"): Segment {
    const { turns } = this;
    this.turns = [];
    return { turns, end, nextPrompt: end === "terminated" ? undefined : this.play!.prompt() };
  }

  /** Throws INVALID_STATE for an environment that cannot be saved. */
  getState(): SeatState {
    const { play, env, info, episodeReturn, episodeTurns } = this;
    const episode =
      play === undefined
        ? null
        : {
            dialogue: play.getState(),
            observation: env.observationSpace.encode(this.observation as Observation),
            info,
            return: episodeReturn,
            turns: episodeTurns,
          };
    return { env: env.getState(), random: this.random.getState(), episode };
  }

  setState({ env, random, episode }: SeatState): void {
    this.firstSeed = undefined;
    this.env.setState(env);
    this.random.setState(random);
    this.turns = [];
    this.play = undefined;
    if (episode === null) return;
    this.observation = this.env.observationSpace.decode(episode.observation);
    this.info = episode.info;
    this.episodeReturn = episode.return;
    this.episodeTurns = episode.turns;
    this.play = this.newPlaythrough();
    this.play.setState(episode.dialogue, this.observation, episode.info);
  }

  private see(observation: Observation, info: Info): void {
    if (hasNaN(observation))
      throw new LlamaGymError(
        "ENV_FAILED",
        `${this.env.toString()} gave an observation with NaN: ${String(observation)}.`,
      );
    this.observation = observation;
    this.info = info;
    this.play!.observe(observation, info);
  }
}

/** Throws ENV_FAILED for a reward that is not a finite number. */
function checkReward(env: Env, reward: unknown): void {
  if (typeof reward === "number" && Number.isFinite(reward)) return;
  throw new LlamaGymError(
    "ENV_FAILED",
    `${env.toString()} gave the reward ${String(reward)} (${typeof reward}); a reward must be a finite number.`,
  );
}

function hasNaN(observation: unknown): boolean {
  if (typeof observation === "number") return Number.isNaN(observation);
  if (Array.isArray(observation) || observation instanceof Float32Array || observation instanceof Float64Array)
    return (
      (observation as ArrayLike<unknown> & Iterable<unknown>)[Symbol.iterator] !== undefined &&
      [...observation].some(hasNaN)
    );
  return false;
}
