import { MAX_STATE_DEPTH, saveEnvState, type Env, type EnvState } from "../../envs/env.js";
import type { Info } from "../../envs/info.js";
import type { JsonValue } from "../../core/json.js";
import type { MaybePromise } from "../../core/maybe-promise.js";
import { errorMessage, invalidEnv, LlamaGymError } from "../../core/errors.js";
import { describeUnsavable } from "../../core/describe-unsavable.js";
import type { RandomState, RandomStream } from "../../core/random/random-stream.js";
import { checkObservation, checkResetResult, checkStepResult } from "./validate-env-output.js";
import type { PromptBuilderState } from "./prompt-builder.js";
import type { Episode } from "./episode.js";
import type { RolloutSettings } from "./rollout-settings.js";
import { spreadSparseReward } from "./spread-sparse-reward.js";
import type { EpisodeSummary, Trajectory, TrajectoryEnd, Turn } from "./trajectory.js";
import { limitCall, type CallLimit } from "./with-timeout.js";

export interface EnvSlotOptions<Observation = unknown, Action = unknown> {
  /** Creates an episode that uses `random`. */
  readonly newEpisode: () => Episode<Observation, Action>;
  readonly random: RandomStream;
  readonly settings: Pick<RolloutSettings, "spreadSparseRewards"> & CallLimit;
  /** Position among the slots of a run, for messages. */
  readonly index: number;
  /** Seed of the environment for the first episode that is started without one. */
  readonly firstSeed?: number;
  /** Whether turns are recorded, unless `start` has another value. Default false. */
  readonly record?: boolean;
}

/** State of an EnvSlot as JSON, except for the model's. */
export interface EnvSlotState {
  /** null if no episode was started, or if the environment does not support saving. */
  readonly env: EnvState | null;
  readonly hasStarted: boolean;
  readonly random: RandomState;
  /** null between episodes, or if the environment does not support saving. */
  readonly episode: {
    readonly promptBuilder: PromptBuilderState;
    readonly observation: JsonValue;
    readonly info: Info;
    readonly return: number;
    readonly turns: number;
  } | null;
}

/** One of the environments stepped in parallel, with its running episode. */
export class EnvSlot<Observation = unknown, Action = unknown> {
  private currentEpisode: Episode<Observation, Action> | undefined;
  private observation: Observation | undefined;
  private info: Info = {};
  private episodeReturn = 0;
  private episodeTurns = 0;
  private turns: Turn[] = [];
  private hasStarted = false;
  private firstSeed: number | undefined;
  /** Of the running episode. */
  private seed: number | undefined;
  private record: boolean;
  /** The rendered current state of a recorded episode. */
  private frame: string | undefined;

  constructor(
    readonly env: Env<Observation, Action>,
    private readonly options: EnvSlotOptions<Observation, Action>,
  ) {
    this.firstSeed = options.firstSeed;
    this.record = options.record ?? false;
  }

  get isRunning(): boolean {
    return this.currentEpisode !== undefined;
  }

  /** Number of turns since the last trajectory was taken. */
  get pendingTurns(): number {
    return this.turns.length;
  }

  /** Starts an episode, which is recorded if `record`. @throws AGENT_FAILED or ENV_FAILED */
  async start(seed = this.firstSeed, record = this.options.record ?? false): Promise<void> {
    this.seed = seed;
    this.record = record;
    this.firstSeed = undefined;
    this.hasStarted = true;
    const result = await this.callEnv("reset", () => this.env.reset(seed === undefined ? {} : { seed }));
    checkResetResult(result, this.env.toString());
    const { observation, info } = result;
    this.episodeReturn = 0;
    this.episodeTurns = 0;
    this.currentEpisode = this.options.newEpisode();
    this.observe(observation, info);
    if (record) await this.renderFrame();
  }

  /** Takes one turn; returns the trajectory and summary of an episode that ends with it. */
  async step(signal?: AbortSignal): Promise<{ trajectory: Trajectory; summary: EpisodeSummary } | undefined> {
    const currentEpisode = this.currentEpisode!;
    const { location, record, frame: render } = this;
    const { action, turn: actedTurn } = await currentEpisode.act({ signal, location, record });
    const { recording } = actedTurn;
    const turn: Turn =
      recording === undefined
        ? actedTurn
        : { ...actedTurn, recording: { ...recording, render, action: formatAction(this.env, action) } };
    const result = await this.callEnv("step", () => this.env.step(action));
    checkStepResult(result, this.env.toString());
    const { observation, reward, terminated, truncated, info } = result;
    turn.reward += reward;
    this.episodeReturn += reward;
    this.episodeTurns++;
    this.turns.push(turn);
    if (!terminated) this.observe(observation, info);
    if (record) await this.renderFrame();
    if (!terminated && !truncated) return undefined;
    const end: TrajectoryEnd = terminated ? "terminated" : "truncated";
    if (this.options.settings.spreadSparseRewards) spreadSparseReward(this.turns);
    const ended = this.takeTrajectory(end);
    // The text of a terminal observation is in no prompt.
    const text = terminated ? formatObservation(this.env, observation, info) : currentEpisode.observationText;
    const trajectory = record ? { ...ended, final: { render: this.frame, observation: text } } : ended;
    this.currentEpisode = undefined;
    return { trajectory, summary: { return: this.episodeReturn, turns: this.episodeTurns, end } };
  }

  /** Takes the turns since the last trajectory. */
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
    const seed = this.seed === undefined ? {} : { seed: this.seed };
    return { turns, end, bootstrapPrompt, startsEpisode: this.episodeTurns === turns.length, ...seed };
  }

  /**
   * With `dropEpisode`, a new episode follows; the environment, which may have failed, is not called.
   * @throws ENV_INVALID for a state, an observation or an info with numbers that are not finite.
   */
  getState({ dropEpisode = false } = {}): EnvSlotState {
    const { currentEpisode, info, episodeReturn, episodeTurns, hasStarted } = this;
    const env = hasStarted && !dropEpisode ? snapshotEnv(this.env) : null;
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
    const unsavable = describeUnsavable({ info: episode?.info, observation: episode?.observation }, MAX_STATE_DEPTH);
    if (unsavable !== undefined)
      throw invalidEnv(`The episode of ${this.location} cannot be saved: ${unsavable}. Return another value.`);
    return { env, hasStarted, random: this.options.random.getState(), episode };
  }

  /** Restores a saved state; if the environment does not support saving, a new episode follows. */
  setState({ env, hasStarted, random, episode }: EnvSlotState): void {
    this.options.random.setState(random);
    this.seed = undefined;
    this.frame = undefined;
    this.turns = [];
    this.currentEpisode = undefined;
    this.hasStarted = hasStarted;
    if (env !== null) {
      this.firstSeed = undefined;
      this.env.setState(env);
    } else if (hasStarted) {
      // The initial seed would repeat the first episodes.
      this.firstSeed = this.options.random.integers(0, 2 ** 31);
    }
    if (episode === null) return;
    if (!Number.isFinite(episode.return) || !Number.isInteger(episode.turns))
      throw new LlamaGymError(
        "FILE_CORRUPT",
        `The saved episode of ${this.location} has the return ${String(episode.return)} after ${String(episode.turns)} turns, not numbers.`,
      );
    this.observation = this.env.observationSpace.decode(episode.observation);
    this.info = episode.info;
    this.episodeReturn = episode.return;
    this.episodeTurns = episode.turns;
    this.currentEpisode = this.options.newEpisode();
    this.currentEpisode.setState(episode.promptBuilder, this.observation, episode.info);
  }

  /** Renders the state as text where the environment can. An environment that fails to render still trains. */
  private async renderFrame(): Promise<void> {
    this.frame = undefined;
    if (!this.env.metadata.renderModes.includes("ansi")) return;
    const frame = await this.callEnv("render", () => this.env.render("ansi")).catch(() => undefined);
    if (typeof frame === "string") this.frame = frame;
  }

  /** Names the environment and the slot in messages. */
  private get location(): string {
    return `${this.env.toString()} (environment ${this.options.index})`;
  }

  /** Calls the environment and wraps errors of its code in ENV_FAILED. */
  private async callEnv<Result>(
    method: "reset" | "step" | "render",
    call: () => MaybePromise<Result>,
  ): Promise<Result> {
    const subject = () => `\`${method}\` of ${this.location}`;
    try {
      return await limitCall(this.options.settings, call, { subject, code: "ENV_FAILED" });
    } catch (error) {
      if (error instanceof LlamaGymError) throw error;
      throw new LlamaGymError("ENV_FAILED", `${this.env.toString()} threw in ${method}: ${errorMessage(error)}`, {
        cause: error,
      });
    }
  }

  private observe(observation: Observation, info: Info = {}): void {
    checkObservation(observation, this.env.toString());
    this.observation = observation;
    this.info = info;
    this.currentEpisode!.observe(observation, info);
  }
}

/** Formats an action for a recording; undefined where the environment cannot. */
function formatAction(env: Env, action: unknown): string | undefined {
  try {
    return env.text?.formatAction(action) ?? JSON.stringify(action);
  } catch {
    return undefined;
  }
}

/** Formats a final observation for a recording; undefined where the environment cannot. */
function formatObservation(env: Env, observation: unknown, info: Info): string | undefined {
  try {
    return env.text?.formatObservation(observation, info);
  } catch {
    return undefined;
  }
}

/** Returns null for an environment that does not support saving. */
function snapshotEnv(env: Env): EnvState | null {
  try {
    return saveEnvState(env);
  } catch (error) {
    if (error instanceof LlamaGymError && error.code === "INVALID_STATE") return null;
    throw error;
  }
}
