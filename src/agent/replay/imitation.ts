import type { Learner } from "../../algorithms/learner.js";
import type { SftStats } from "../../algorithms/sft/trainer.js";
import { LlamaGymError } from "../../errors.js";
import { RandomStream } from "../../tensor/random.js";
import { ReplayBuffer, type ReplayEpisode } from "./buffer.js";
import { readDemonstrations, type Demonstration } from "./demonstrations.js";
import { encodeDemonstration, type Learning } from "./encode-demonstration.js";
import { ImitatingLearner } from "./imitating-learner.js";
import { resolveImitation, type ImitationConfig, type ImitationOptions } from "./settings.js";
import { warmStart, type WarmStartWatch } from "./warm-start.js";

/** What an agent learns from besides reinforcement. */
export interface AgentImitationOptions extends ImitationOptions {
  /** Demonstrations to be learnt first: a JSONL file, or themselves. */
  readonly sftWarmStart?: string | readonly Demonstration[];
  /** A buffer of one's own, such as another agent's; then replayCapacity and topkP are the buffer's. */
  readonly replay?: ReplayBuffer;
}

export interface ImitationContext {
  readonly maxTokens?: number;
  readonly seed: number;
}

/** What an agent can be taught, as tokens, and what was left out of it. */
export interface Lesson {
  readonly episodes: readonly ReplayEpisode[];
  /** Why demonstrations were left out, where that is allowed. */
  readonly refused: readonly string[];
}

/** Decides what is drawn from the replay buffer; a child of the agent's seed. */
const REPLAY_STREAM = 8;

/** An agent's demonstrations, its replay buffer, and the updates from both. */
export class Imitation {
  readonly replay: ReplayBuffer;
  private readonly config: ImitationConfig;
  private lesson: Promise<Lesson> | undefined;
  private isWarm = false;
  private learner: ImitatingLearner | undefined;
  private wantsOnline: boolean;

  /** Throws INVALID_ARGUMENT for values out of range. */
  constructor(
    private readonly learning: Learning,
    private readonly options: AgentImitationOptions,
    private readonly context: ImitationContext,
  ) {
    this.config = resolveImitation(options);
    const { replayCapacity: capacity, topkP } = this.config;
    this.replay = options.replay ?? new ReplayBuffer({ capacity, topkP });
    this.wantsOnline = this.config.onlineSft;
  }

  get onlineSft(): boolean {
    return this.learner?.onlineSft ?? this.wantsOnline;
  }

  set onlineSft(isOn: boolean) {
    this.wantsOnline = isOn;
    if (this.learner !== undefined) this.learner.onlineSft = isOn;
  }

  /** The algorithm with imitation beside it. */
  beside(algorithm: Learner): Learner {
    const { replay, config, context } = this;
    const random = new RandomStream(context.seed, [REPLAY_STREAM]);
    this.learner = new ImitatingLearner(algorithm, this.learning.replier.model, { config, replay, random, ...context });
    this.learner.onlineSft = this.wantsOnline;
    return this.learner;
  }

  /**
   * The demonstrations of the warm start, read and checked once. Throws FILE_NOT_FOUND, FILE_CORRUPT, and DEMONSTRATION_REFUSED for
   * one that the agent cannot learn, unless such are to be left out.
   */
  async load(): Promise<Lesson> {
    const { sftWarmStart: given = [] } = this.options;
    return (this.lesson ??= typeof given === "string" ? this.read(given) : this.encode(given));
  }

  /** Learns the demonstrations, once. Undefined where there are none, or where that is done. */
  async warmStart(watch: WarmStartWatch): Promise<SftStats | undefined> {
    if (this.isWarm) return undefined;
    const lesson = await this.load();
    this.isWarm = true;
    return this.learn(lesson, watch);
  }

  /** The agent was trained before: there is nothing to warm up. */
  skipWarmStart(): void {
    this.isWarm = true;
  }

  /** Learns the demonstrations of a file, with as many updates as a warm start. Throws what `load` throws. */
  async fromJsonl(path: string, watch: WarmStartWatch): Promise<SftStats | undefined> {
    return this.learn(await this.read(path), watch);
  }

  private async learn({ episodes }: Lesson, watch: WarmStartWatch): Promise<SftStats | undefined> {
    const turns = episodes.flatMap((episode) => episode.turns);
    const stats = await warmStart(this.learning.replier.model, turns, {
      config: this.config,
      ...this.context,
      ...watch,
    });
    for (const episode of episodes) this.replay.add(episode);
    return stats;
  }

  private async read(path: string): Promise<Lesson> {
    const { demonstrations, brokenLines } = await readDemonstrations(path, this.config);
    const { episodes, refused } = await this.encode(demonstrations);
    return {
      episodes,
      refused: [...brokenLines.map(({ line, reason }) => `${path}, line ${line}: ${reason}`), ...refused],
    };
  }

  private async encode(demonstrations: readonly Demonstration[]): Promise<Lesson> {
    const episodes: ReplayEpisode[] = [];
    const refused: string[] = [];
    for (const demonstration of demonstrations) {
      try {
        episodes.push(await encodeDemonstration(demonstration, this.learning));
      } catch (error) {
        const isRefusal = error instanceof LlamaGymError && error.code === "DEMONSTRATION_REFUSED";
        if (!isRefusal || this.config.brokenLines === "stop") throw error;
        refused.push(error.message);
      }
    }
    if (episodes.length > 0 || refused.length === 0) return { episodes, refused };
    throw new LlamaGymError(
      "DEMONSTRATION_REFUSED",
      `None of the ${refused.length} demonstrations can be learnt. The first: ${refused[0]}`,
    );
  }
}
