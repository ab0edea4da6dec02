import { checkOptions, COUNT, oneOf, requireOptions } from "../../core/settings.js";
import { LlamaGymError } from "../../core/errors.js";
import type { JsonValue } from "../../core/json.js";
import { andThen, type MaybePromise } from "../../core/maybe-promise.js";
import type { Env, RenderFrame, RenderMode, ResetOptions, ResetResult, StepResult } from "../env.js";
import { Wrapper } from "../wrapper.js";

/** Return, length in steps, and duration in seconds of an episode. */
export interface EpisodeStatistics {
  readonly r: number;
  readonly l: number;
  readonly t: number;
}

/** Options of `RecordEpisodeStatistics`. */
export interface RecordEpisodeStatisticsOptions {
  /** Maximum length of `episodes`. */
  readonly bufferLength?: number;
  /** Key in the info. */
  readonly statsKey?: string;
}

/** Adds `episode: { r, l, t }` to the info of a step that ends an episode. */
export class RecordEpisodeStatistics<Observation, Action> extends Wrapper<Observation, Action> {
  /** The last episodes, oldest first. */
  episodes: readonly EpisodeStatistics[] = [];
  private readonly bufferLength: number;
  private readonly statsKey: string;
  protected override wrapperState = { episodeReturn: 0, episodeLength: 0, episodeCount: 0 };
  private startTime = performance.now();

  constructor(env: Env<Observation, Action>, options: RecordEpisodeStatisticsOptions = {}) {
    super(env);
    checkOptions("RecordEpisodeStatistics", options, { bufferLength: COUNT, statsKey: String });
    this.bufferLength = options.bufferLength ?? 100;
    this.statsKey = options.statsKey ?? "episode";
  }

  get episodeCount(): number {
    return this.wrapperState.episodeCount;
  }

  override reset(options?: ResetOptions): MaybePromise<ResetResult<Observation>> {
    return andThen(this.env.reset(options), (result) => {
      this.wrapperState = { ...this.wrapperState, episodeReturn: 0, episodeLength: 0 };
      this.startTime = performance.now();
      return result;
    });
  }

  override step(action: Action): MaybePromise<StepResult<Observation>> {
    return andThen(this.env.step(action), (result) => {
      this.wrapperState.episodeReturn += result.reward;
      this.wrapperState.episodeLength++;
      return result.terminated || result.truncated ? this.finish(result) : result;
    });
  }

  private finish(result: StepResult<Observation>): StepResult<Observation> {
    const { statsKey } = this;
    if (Object.hasOwn(result.info, statsKey))
      throw new LlamaGymError(
        "INVALID_STATE",
        `The info already has "${statsKey}". Give RecordEpisodeStatistics another statsKey.`,
      );
    const now = performance.now();
    const seconds = Math.round((now - this.startTime) * 1000) / 1e6;
    const { episodeReturn, episodeLength } = this.wrapperState;
    const statistics = { r: episodeReturn, l: episodeLength, t: seconds };
    this.episodes = [...this.episodes, statistics].slice(-this.bufferLength);
    this.wrapperState.episodeCount++;
    this.startTime = now;
    return { ...result, info: { ...result.info, [statsKey]: statistics } };
  }
}

/** A step of a recorded episode; action and observation as the spaces encode them. */
export interface RecordedStep {
  readonly action: JsonValue;
  readonly observation: JsonValue;
  readonly reward: number;
  readonly terminated: boolean;
  readonly truncated: boolean;
}

/** An episode from its reset to its end or the next reset; plain JSON except for its frames. */
export interface EpisodeRecording {
  readonly id: string | undefined;
  /** Seed of the reset; undefined when it had none. */
  readonly seed: string | undefined;
  readonly observation: JsonValue;
  readonly steps: readonly RecordedStep[];
  /** One frame for the reset and one per step, if requested. */
  readonly frames: readonly RenderFrame[];
}

/** Options of `RecordEpisode`. */
export interface RecordEpisodeOptions {
  readonly onEpisode: (recording: EpisodeRecording) => void;
  /** Render mode of recorded frames. Default: none. */
  readonly renderMode?: RenderMode;
}

/** Called with each episode when it has ended. */
export class RecordEpisode<Observation, Action> extends Wrapper<Observation, Action> {
  private readonly options: RecordEpisodeOptions;
  private start: Pick<EpisodeRecording, "seed" | "observation"> | undefined;
  private steps: RecordedStep[] = [];
  private frames: RenderFrame[] = [];

  constructor(env: Env<Observation, Action>, options: RecordEpisodeOptions) {
    super(env);
    const names = { onEpisode: Function, renderMode: oneOf("ansi", "rgb_array") };
    requireOptions("RecordEpisode", options, names, ["onEpisode"]);
    this.options = options;
  }

  override reset(options?: ResetOptions): MaybePromise<ResetResult<Observation>> {
    this.finish();
    return andThen(this.env.reset(options), (result) => {
      const observation = this.observationSpace.encode(result.observation);
      this.start = { seed: options?.seed?.toString(), observation };
      return andThen(this.captureFrame(), () => result);
    });
  }

  override step(action: Action): MaybePromise<StepResult<Observation>> {
    const encoded = this.actionSpace.encode(action);
    return andThen(this.env.step(action), (result) => {
      const { reward, terminated, truncated } = result;
      const observation = this.observationSpace.encode(result.observation);
      this.steps.push({ action: encoded, observation, reward, terminated, truncated });
      return andThen(this.captureFrame(), () => {
        if (terminated || truncated) this.finish();
        return result;
      });
    });
  }

  override close(): MaybePromise<void> {
    this.finish();
    return this.env.close();
  }

  private captureFrame(): MaybePromise<void> {
    const mode = this.options.renderMode;
    if (mode === undefined) return;
    return andThen(this.env.render(mode), (frame) => {
      this.frames.push(frame);
    });
  }

  private finish(): void {
    const { start, steps, frames } = this;
    this.start = undefined;
    this.steps = [];
    this.frames = [];
    if (start !== undefined) this.options.onEpisode({ id: this.spec?.id, ...start, steps, frames });
  }
}
