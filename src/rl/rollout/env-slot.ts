import { MAX_STATE_DEPTH, saveEnvState, type Env, type EnvState, type Info } from "../../envs/index.js";
import { invalidEnv, LlamaGymError } from "../../core/errors.js";
import { describeUnsavable } from "../../core/describe-unsavable.js";
import type { RandomStream } from "../../core/random/random-stream.js";
import type { Episode } from "./episode.js";
import { EpisodeRunner } from "./episode-runner.js";
import type { EndedEpisode, EnvSlotState, EpisodeSpec, RolloutSlot } from "./rollout-slot.js";
import type { RolloutSettings } from "./rollout-settings.js";
import { spreadSparseReward } from "./spread-sparse-reward.js";
import type { Trajectory, TrajectoryEnd, Turn } from "./trajectory.js";
import type { CallLimit } from "./call-limit.js";

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

/** One of the environments stepped in parallel, with its running episode. */
export class EnvSlot<Observation = unknown, Action = unknown> implements RolloutSlot {
  private readonly runner: EpisodeRunner<Observation, Action>;
  private currentEpisode: Episode<Observation, Action> | undefined;
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
    const { settings, index } = options;
    this.runner = new EpisodeRunner(env, { settings, index });
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
  async start({ seed = this.firstSeed, record = this.options.record ?? false }: EpisodeSpec = {}): Promise<void> {
    this.seed = seed;
    this.record = record;
    this.firstSeed = undefined;
    this.hasStarted = true;
    await this.runner.reset(seed);
    this.currentEpisode = this.options.newEpisode();
    this.currentEpisode.observe(this.runner.observation, this.runner.info);
    if (record) await this.renderFrame();
  }

  /** Takes one turn; returns the episode if it ends with it. */
  async step(signal?: AbortSignal): Promise<EndedEpisode | undefined> {
    const currentEpisode = this.currentEpisode!;
    const { runner, record, frame: render } = this;
    const { location } = runner;
    const { action, turn: actedTurn } = await currentEpisode.act({ signal, location, record });
    const { recording } = actedTurn;
    const turn: Turn =
      recording === undefined
        ? actedTurn
        : { ...actedTurn, recording: { ...recording, render, action: formatAction(this.env, action) } };
    const { observation, reward, info } = await runner.step(action);
    const { end, episodeReturn, steps, isSuccess } = runner;
    turn.reward += reward;
    this.turns.push(turn);
    if (end !== "terminated") currentEpisode.observe(observation, info);
    if (record) await this.renderFrame();
    if (end === undefined) return undefined;
    if (this.options.settings.spreadSparseRewards) spreadSparseReward(this.turns);
    const ended = this.takeTrajectory(end);
    // The text of a terminal observation is in no prompt.
    const text = end === "terminated" ? formatObservation(this.env, observation, info) : currentEpisode.observationText;
    const trajectory = record ? { ...ended, final: { render: this.frame, observation: text } } : ended;
    this.currentEpisode = undefined;
    const success = isSuccess === undefined ? {} : { isSuccess };
    return { trajectories: [trajectory], summary: { return: episodeReturn, turns: steps, end, ...success } };
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
    return { turns, end, bootstrapPrompt, startsEpisode: this.runner.steps === turns.length, ...seed };
  }

  /**
   * With `dropEpisode`, a new episode follows; the environment, which may have failed, is not
   * called.
   * @throws ENV_INVALID for a state, an observation or an info with numbers that are not finite.
   */
  getState({ dropEpisode = false } = {}): EnvSlotState {
    const { currentEpisode, runner, hasStarted } = this;
    const env = hasStarted && !dropEpisode ? snapshotEnv(this.env) : null;
    const episode =
      currentEpisode === undefined || env === null
        ? null
        : {
            promptBuilder: currentEpisode.getState(),
            observation: this.env.observationSpace.encode(runner.observation),
            info: runner.info,
            return: runner.episodeReturn,
            turns: runner.steps,
          };
    const unsavable = describeUnsavable({ info: episode?.info, observation: episode?.observation }, MAX_STATE_DEPTH);
    if (unsavable !== undefined)
      throw invalidEnv(`The episode of ${runner.location} cannot be saved: ${unsavable}. Return another value.`);
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
        `The saved episode of ${this.runner.location} has the return ${String(episode.return)} after ${String(episode.turns)} turns, not numbers.`,
      );
    const observation = this.env.observationSpace.decode(episode.observation);
    const { info, return: episodeReturn, turns: steps } = episode;
    this.runner.restore({ observation, info, episodeReturn, steps });
    this.currentEpisode = this.options.newEpisode();
    this.currentEpisode.setState(episode.promptBuilder, observation, info);
  }

  /** An environment that fails to render still trains. */
  private async renderFrame(): Promise<void> {
    this.frame = await this.runner.render().catch(() => undefined);
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
