import type { Env, EnvState } from "../../envs/env.js";
import type { Info } from "../../envs/info.js";
import type { JsonValue } from "../../core/json.js";
import type { MaybePromise } from "../../core/maybe-promise.js";
import { LlamaGymError } from "../../core/errors.js";
import type { RandomState, RandomStream } from "../../core/random/random-stream.js";
import { checkObservation, checkStepResult } from "./validate-env-output.js";
import type { PromptBuilderState } from "./prompt-builder.js";
import type { Episode } from "./episode.js";
import { spreadSparseReward } from "./spread-sparse-reward.js";
import type { EpisodeSummary, Trajectory, TrajectoryEnd, Turn } from "./trajectory.js";

/** All that a seat's future depends on besides the model; JSON. */
export interface EnvSlotState {
  /** null where no episode was ever started, and where the environment cannot be saved. */
  readonly env: EnvState | null;
  readonly hasStarted: boolean;
  readonly random: RandomState;
  /** null between episodes, and where the environment cannot be saved. */
  readonly episode: {
    readonly promptBuilder: PromptBuilderState;
    readonly observation: JsonValue;
    readonly info: Info;
    readonly return: number;
    readonly turns: number;
  } | null;
}

/** One environment and the agent that plays it, turn by turn, episode after episode. */
export class EnvSlot<Observation = unknown, Action = unknown> {
  private currentEpisode: Episode<Observation, Action> | undefined;
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
    private readonly newEpisode: () => Episode<Observation, Action>,
    private readonly random: RandomStream,
    /** Starts the environment's random stream with the first episode that is given no seed. */
    private firstSeed?: number,
    private readonly spreadSparseRewards = false,
  ) {}

  get isRunning(): boolean {
    return this.currentEpisode !== undefined;
  }

  /** Turns since the last segment was taken. */
  get pendingTurns(): number {
    return this.turns.length;
  }

  /** Starts an episode. Throws AGENT_FAILED and what the environment throws. */
  async start(seed = this.firstSeed): Promise<void> {
    this.firstSeed = undefined;
    this.hasStarted = true;
    const { observation, info } = await this.callEnv("reset", () => this.env.reset(seed === undefined ? {} : { seed }));
    this.episodeReturn = 0;
    this.episodeTurns = 0;
    this.currentEpisode = this.newEpisode();
    this.observe(observation, info);
  }

  /** One reply and one step; gives the segment and the summary of an episode that ends with it. */
  async step(signal?: AbortSignal): Promise<{ trajectory: Trajectory; summary: EpisodeSummary } | undefined> {
    const currentEpisode = this.currentEpisode!;
    const { action, turn } = await currentEpisode.act(signal);
    const result = await this.callEnv("step", () => this.env.step(action));
    checkStepResult(result, this.env.toString());
    const { observation, reward, terminated, truncated, info } = result;
    turn.reward += reward;
    this.episodeReturn += reward;
    this.episodeTurns++;
    this.turns.push(turn);
    if (!terminated) this.observe(observation, info);
    if (!terminated && !truncated) return undefined;
    const end: TrajectoryEnd = terminated ? "terminated" : "truncated";
    if (this.spreadSparseRewards) spreadSparseReward(this.turns);
    const trajectory = this.takeTrajectory(end);
    this.currentEpisode = undefined;
    return { trajectory, summary: { return: this.episodeReturn, turns: this.episodeTurns, end } };
  }

  /** The turns since the last segment; the episode goes on. */
  takeTrajectory(end: TrajectoryEnd = "partial"): Trajectory {
    const { turns } = this;
    const currentEpisode = this.currentEpisode!;
    this.turns = [];
    const bootstrapPrompt =
      end === "terminated"
        ? undefined
        : end === "truncated"
          ? currentEpisode.bootstrapPrompt()
          : currentEpisode.buildPrompt();
    return { turns, end, bootstrapPrompt, startsEpisode: this.episodeTurns === turns.length };
  }

  getState(): EnvSlotState {
    const { currentEpisode, info, episodeReturn, episodeTurns, hasStarted } = this;
    const env = hasStarted ? snapshotEnv(this.env) : null;
    const episode =
      currentEpisode === undefined || env === null
        ? null
        : {
            promptBuilder: currentEpisode.getState(),
            observation: this.env.observationSpace.encode(this.observation as Observation),
            info,
            return: episodeReturn,
            turns: episodeTurns,
          };
    return { env, hasStarted, random: this.random.getState(), episode };
  }

  /** Goes on from a saved state; where the environment could not be saved, with a new episode. */
  setState({ env, hasStarted, random, episode }: EnvSlotState): void {
    this.random.setState(random);
    this.turns = [];
    this.currentEpisode = undefined;
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
    this.currentEpisode = this.newEpisode();
    this.currentEpisode.setState(episode.promptBuilder, this.observation, episode.info);
  }

  /** Asks the environment; whatever its own code throws is an ENV_FAILED that names it. */
  private async callEnv<Result>(method: "reset" | "step", call: () => MaybePromise<Result>): Promise<Result> {
    try {
      return await call();
    } catch (error) {
      if (error instanceof LlamaGymError) throw error;
      const reason = error instanceof Error ? error.message : String(error);
      throw new LlamaGymError("ENV_FAILED", `${this.env.toString()} threw in ${method}: ${reason}`, { cause: error });
    }
  }

  private observe(observation: Observation, info: Info = {}): void {
    checkObservation(observation, this.env.toString());
    this.observation = observation;
    this.info = info;
    this.currentEpisode!.observe(observation, info);
  }
}

/** null for an environment that cannot be saved. */
function snapshotEnv(env: Env): EnvState | null {
  try {
    return env.getState();
  } catch (error) {
    if (error instanceof LlamaGymError && error.code === "INVALID_STATE") return null;
    throw error;
  }
}
