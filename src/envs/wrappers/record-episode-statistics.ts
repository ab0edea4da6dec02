import { LlamaGymError } from "../../core/errors.js";
import type { Env, ResetOptions, ResetResult, StepResult } from "../env.js";
import type { JsonValue } from "../../core/json.js";
import { andThen, type MaybePromise } from "../../core/maybe-promise.js";
import { PassThroughWrapper } from "../wrapper.js";

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
export class RecordEpisodeStatistics<Observation, Action> extends PassThroughWrapper<Observation, Action> {
  /** The last episodes, oldest first. */
  episodes: readonly EpisodeStatistics[] = [];
  episodeCount = 0;
  private readonly bufferLength: number;
  private readonly statsKey: string;
  private episodeReturn = 0;
  private episodeLength = 0;
  private startTime = performance.now();

  constructor(env: Env<Observation, Action>, options: RecordEpisodeStatisticsOptions = {}) {
    super(env);
    this.bufferLength = options.bufferLength ?? 100;
    this.statsKey = options.statsKey ?? "episode";
  }

  override reset(options?: ResetOptions): MaybePromise<ResetResult<Observation>> {
    return andThen(this.env.reset(options), (result) => {
      this.episodeReturn = 0;
      this.episodeLength = 0;
      this.startTime = performance.now();
      return result;
    });
  }

  override step(action: Action): MaybePromise<StepResult<Observation>> {
    return andThen(this.env.step(action), (result) => {
      this.episodeReturn += result.reward;
      this.episodeLength++;
      return result.terminated || result.truncated ? this.finish(result) : result;
    });
  }

  private finish(result: StepResult<Observation>): StepResult<Observation> {
    const { statsKey } = this;
    if (Object.hasOwn(result.info, statsKey)) {
      throw new LlamaGymError(
        "INVALID_STATE",
        `The info already has "${statsKey}". Give RecordEpisodeStatistics another statsKey.`,
      );
    }
    const now = performance.now();
    const seconds = Math.round((now - this.startTime) * 1000) / 1e6;
    const statistics = { r: this.episodeReturn, l: this.episodeLength, t: seconds };
    this.episodes = [...this.episodes, statistics].slice(-this.bufferLength);
    this.episodeCount++;
    this.startTime = now;
    return { ...result, info: { ...result.info, [statsKey]: statistics } };
  }

  protected override saveState(): JsonValue {
    return { episodeReturn: this.episodeReturn, episodeLength: this.episodeLength, episodeCount: this.episodeCount };
  }

  protected override loadState(json: JsonValue): void {
    const saved = json as { episodeReturn: number; episodeLength: number; episodeCount: number };
    this.episodeReturn = saved.episodeReturn;
    this.episodeLength = saved.episodeLength;
    this.episodeCount = saved.episodeCount;
  }
}
