import { LazyPromise } from "../../../core/promise-cache.js";
import type { Learner } from "../../algorithms/learner.js";
import type { SftMetrics } from "../../algorithms/sft/sft-learner.js";
import { LlamaGymError } from "../../../core/errors.js";
import { stream } from "../../../core/random/streams.js";
import { ReplayBuffer, type ReplayEpisode } from "./replay-buffer.js";
import { readDemonstrations, type Demonstration } from "../../data/read-demonstrations.js";
import { encodeDemonstration, type DemonstrationContext } from "./encode-demonstration.js";
import { OnlineSftLearner } from "./online-sft-learner.js";
import { resolveOnlineSft, type OnlineSftConfig, type OnlineSftOptions } from "./online-sft-settings.js";
import type { WarmStartCallbacks, WarmStartOptions, WarmStartState } from "./warm-start.js";

/** An agent's demonstrations and its online SFT. */
export interface AgentDemonstrationOptions extends OnlineSftOptions {
  /** Demonstrations for the warm start, or the path of their JSONL file. */
  readonly sftWarmStart?: string | readonly Demonstration[];
  /**
   * Replay buffer to use, such as another agent's. Its settings replace `replayCapacity` and
   * `replayTopFraction`.
   */
  readonly replay?: ReplayBuffer;
}

export interface DemonstrationUpdateOptions {
  readonly microBatchTokens?: number;
  readonly seed: number;
}

const REMEDY = 'Correct it, or skip invalid lines (onInvalidLine: "skip").';

/** Tokenized demonstrations and the reasons why others were rejected. */
export interface EncodedDemonstrations {
  readonly episodes: readonly ReplayEpisode[];
  /** One reason per rejected demonstration; empty unless `onInvalidLine` is "skip". */
  readonly rejected: readonly string[];
}

/** Trains an agent on demonstrations and on its replay buffer. */
export class DemonstrationTrainer {
  readonly replay: ReplayBuffer;
  private readonly config: OnlineSftConfig;
  private readonly encoded = new LazyPromise(async () => {
    const { sftWarmStart: source = [] } = this.options;
    return typeof source === "string" ? this.encodeFile(source) : this.encode(source);
  });
  private isWarmedUp = false;
  private learner: OnlineSftLearner | undefined;
  private isOnlineSftEnabled: boolean;

  /** @throws INVALID_ARGUMENT for values out of range. */
  constructor(
    private readonly context: DemonstrationContext,
    private readonly options: AgentDemonstrationOptions,
    private readonly updateOptions: DemonstrationUpdateOptions,
  ) {
    this.config = resolveOnlineSft(options);
    const { replayCapacity: capacity, replayTopFraction } = this.config;
    this.replay = options.replay ?? new ReplayBuffer({ capacity, replayTopFraction });
    this.isOnlineSftEnabled = this.config.onlineSft;
  }

  get onlineSft(): boolean {
    return this.learner?.onlineSft ?? this.isOnlineSftEnabled;
  }

  set onlineSft(isOn: boolean) {
    this.isOnlineSftEnabled = isOn;
    if (this.learner !== undefined) this.learner.onlineSft = isOn;
  }

  /** Whether there is a warm start that has not begun. */
  get isDue(): boolean {
    return this.options.sftWarmStart !== undefined && !this.isWarmedUp;
  }

  /** Adds online SFT to an algorithm. */
  wrap(algorithm: Learner): Learner {
    const { replay, config, updateOptions } = this;
    const random = stream(updateOptions.seed, "replay");
    this.learner = new OnlineSftLearner(algorithm, this.context.sampler.model, {
      config,
      replay,
      random,
      temperature: this.temperature,
      ...updateOptions,
    });
    this.learner.onlineSft = this.isOnlineSftEnabled;
    return this.learner;
  }

  /**
   * Reads and tokenizes the warm start's demonstrations, once.
   * @throws FILE_NOT_FOUND, FILE_CORRUPT, and, unless `onInvalidLine` is "skip",
   * DEMONSTRATION_REJECTED for a demonstration that the agent could not have produced.
   */
  load(): Promise<EncodedDemonstrations> {
    return this.encoded.get();
  }

  /**
   * Trains on the demonstrations, once. Returns undefined without demonstrations or after the first
   * call.
   */
  async warmStart(callbacks: WarmStartCallbacks, state?: WarmStartState): Promise<SftMetrics | undefined> {
    if (this.isWarmedUp) return undefined;
    const encoded = await this.load();
    this.isWarmedUp = true;
    return this.train(encoded, { ...callbacks, state });
  }

  /** Marks the warm start as done, for an agent that is resumed. */
  skipWarmStart(): void {
    this.isWarmedUp = true;
  }

  /**
   * Trains on a file's demonstrations for as many updates as a warm start. Throws the errors of
   * `load`.
   */
  async fromJsonl(path: string, callbacks: WarmStartCallbacks): Promise<SftMetrics | undefined> {
    return this.train(await this.encodeFile(path), callbacks);
  }

  /** Temperature of the policy that is trained, also where the agent is greedy. */
  private get temperature(): number {
    return this.context.sampler.settings.sampling.temperature || 1;
  }

  private async train(
    { episodes }: EncodedDemonstrations,
    callbacks: WarmStartCallbacks & Pick<WarmStartOptions, "state">,
  ): Promise<SftMetrics | undefined> {
    const turns = episodes.flatMap((episode) => episode.turns);
    const { warmStart } = await import("./warm-start.js");
    const stats = await warmStart(this.context.sampler.model, turns, {
      config: this.config,
      temperature: this.temperature,
      ...this.updateOptions,
      ...callbacks,
    });
    for (const episode of episodes) this.replay.add(episode);
    return stats;
  }

  private async encodeFile(path: string): Promise<EncodedDemonstrations> {
    const { demonstrations, invalidLines } = await readDemonstrations(path, this.config);
    const { episodes, rejected } = await this.encode(demonstrations);
    return {
      episodes,
      rejected: [...invalidLines.map(({ name, reason }) => `${name}: ${reason}`), ...rejected],
    };
  }

  private async encode(demonstrations: readonly Demonstration[]): Promise<EncodedDemonstrations> {
    const episodes: ReplayEpisode[] = [];
    const rejected: string[] = [];
    for (const demonstration of demonstrations) {
      try {
        episodes.push(await encodeDemonstration(demonstration, this.context));
      } catch (error) {
        const isRejection = error instanceof LlamaGymError && error.code === "DEMONSTRATION_REJECTED";
        if (!isRejection) throw error;
        if (this.config.onInvalidLine === "error")
          throw new LlamaGymError(error.code, `${error.message} ${REMEDY}`, { cause: error.cause });
        rejected.push(error.message);
      }
    }
    if (episodes.length > 0 || rejected.length === 0) return { episodes, rejected };
    throw new LlamaGymError(
      "DEMONSTRATION_REJECTED",
      `All ${rejected.length} demonstrations were rejected. The first: ${rejected[0]}`,
    );
  }
}
