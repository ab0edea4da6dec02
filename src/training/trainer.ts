import { join } from "node:path";
import type { Agent } from "../agent/agent.js";
import { extractionShares } from "../agent/extraction/counter.js";
import { sftMetrics } from "../agent/replay/sft-metrics.js";
import type { SftStats } from "../algorithms/sft/trainer.js";
import type { Learner, Metrics } from "../algorithms/learner.js";
import type { Env } from "../envs/env.js";
import type { MaybePromise } from "../envs/maybe-promise.js";
import { makeAsync } from "../envs/bridges/make-async.js";
import { LlamaGymError } from "../errors.js";
import { checkNumber } from "../generation/options.js";
import { Collector, type Experience } from "../rollout/collector.js";
import { Seat } from "../rollout/seat.js";
import type { Turn } from "../rollout/turn.js";
import { RandomStream, type RandomState } from "../tensor/random.js";
import type { SampleRow, Tracker } from "../tracking/index.js";
import { ENTROPY_FLOOR, HealthWatch } from "./health.js";
import { playGroups } from "./play-groups.js";
import { latestCheckpoint } from "./checkpoint-folder.js";
import { loadCheckpoint, saveCheckpoint, type RunProgress } from "./checkpoint.js";

export interface TrainerOptions {
  readonly agent: Agent;
  /** An environment's id, or what makes one. */
  readonly env: string | (() => MaybePromise<Env>);
  /** Games that are played at once. Default 16. */
  readonly numEnvs?: number;
  /** Training ends when so many episodes have ended. */
  readonly episodes?: number;
  /** Training ends after so many turns; with 0 only the agent's demonstrations are learnt. */
  readonly turns?: number;
  /** Decides the environments' starts and the replies; the same seed gives the same run. Default 0. */
  readonly seed?: number;
  /** Where checkpoints are kept; without it nothing is saved. */
  readonly checkpoints?: string;
  /** Updates between two checkpoints. Default 10. */
  readonly saveEvery?: number;
  /** Told what is worth knowing and no error. */
  readonly warn?: (message: string) => void;
  /** Entropy in nats below which `warn` is told that hardly anything is tried any more; 0 for never. Default 0.01. */
  readonly entropyFloor?: number;
}

/** Who watches a run. */
export interface WatchOptions {
  readonly tracker?: Tracker;
  /** Updates between two records of sample completions. Default 10. */
  readonly sampleEvery?: number;
  /** Called while the games are played and after each update. */
  readonly onProgress?: (event: TrainingEvent) => void;
  /** Told of each update of the warm start. */
  readonly onWarmStart?: (stats: SftStats) => void;
  /** Ends the run after the update that is under way, with a checkpoint. */
  readonly signal?: AbortSignal;
}

export interface TrainingEvent {
  readonly progress: RunProgress;
  /** 0 to 1. */
  readonly done: number;
  /** Those of the last update. */
  readonly metrics: Metrics;
}

export interface TrainingResult {
  readonly progress: RunProgress;
  readonly metrics: Metrics;
  /** True when `signal` ended it. */
  readonly isInterrupted: boolean;
  /** The newest checkpoint, where they are kept. */
  readonly checkpoint: string | undefined;
}

/** Random streams of a run by what they decide; each is a child of the run's seed. */
const REPLY_STREAM = 2;
const START_STREAM = 3;

/** Environments at once where nothing says how many. */
const NUM_ENVS = 16;

/** How much of a run of so many episodes or turns is done: 0 to 1. */
export function shareDone(
  { episodes = Infinity, turns = Infinity }: Pick<TrainerOptions, "episodes" | "turns">,
  progress: Pick<RunProgress, "episodes" | "turns">,
): number {
  if (turns === 0) return 1;
  return Math.min(1, Math.max(progress.episodes / episodes, progress.turns / turns));
}

/** The least that each option can be. */
const LEAST = { numEnvs: 1, episodes: 1, turns: 0, seed: 0, saveEvery: 1 } as const;

/** Episodes of the moving mean, or those of the last update where they are more. */
const WINDOW = 100;
const SAMPLES = 3;

const BEGINNING: RunProgress = { updates: 0, turns: 0, episodes: 0, tokens: 0, seconds: 0, recentReturns: [] };

/**
 * Trains an agent on many games at once: plays what the algorithm wants for an update, updates, and so on. Checkpoints hold all
 * that the future of a run depends on, so that a resumed run gives the numbers of an uninterrupted one.
 */
export class Trainer {
  private progress = BEGINNING;
  private metrics: Metrics = {};
  private readonly starts: RandomStream;
  private envs: Env[] = [];
  private collector: Collector | undefined;
  private checkpoint: string | undefined;
  private isClosed = false;
  private readonly health: HealthWatch;

  /** Throws INVALID_ARGUMENT when nothing says how long to train, and for values out of range. */
  constructor(private readonly options: TrainerOptions) {
    for (const [name, min] of Object.entries(LEAST)) {
      const value = options[name as keyof typeof LEAST];
      if (value !== undefined) checkNumber(`The Trainer's ${name}`, value, { integer: true, min, description: "" });
    }
    if (options.episodes === undefined && options.turns === undefined) {
      throw new LlamaGymError(
        "INVALID_ARGUMENT",
        "Say how long to train: give the Trainer a number of episodes or of turns.",
      );
    }
    this.starts = new RandomStream(options.seed ?? 0, [START_STREAM]);
    const { entropyFloor = ENTROPY_FLOOR, warn = () => {} } = options;
    checkNumber("The Trainer's entropyFloor", entropyFloor, { min: 0, description: "" });
    this.health = new HealthWatch({ entropyFloor, warn });
  }

  /**
   * Goes on from the newest checkpoint, if there is one; gives the number of updates made before. Throws FILE_CORRUPT,
   * WEIGHTS_MISMATCH, and RUN_INCOMPATIBLE for a checkpoint of another version or of another number of environments.
   */
  async resume(): Promise<number> {
    const { checkpoints, agent, numEnvs = NUM_ENVS, warn = () => {} } = this.options;
    const folder = checkpoints === undefined ? undefined : await latestCheckpoint(checkpoints);
    this.checkpoint = folder;
    if (folder === undefined) return 0;
    const { progress, seats, starts } = await loadCheckpoint(folder, agent);
    if (seats.length !== numEnvs) {
      throw new LlamaGymError(
        "RUN_INCOMPATIBLE",
        `The checkpoint ${folder} is of a run with ${seats.length} environments at once, this one has ${numEnvs} (numEnvs).`,
      );
    }
    const collector = await this.open();
    this.progress = progress;
    this.starts.setState(starts as RandomState);
    collector.setState(seats);
    if (seats.some(({ env, hasStarted }) => hasStarted && env === null))
      warn("The environment cannot be saved, so the run goes on with new episodes.");
    return progress.updates;
  }

  /**
   * Trains until the episodes or turns are played, or the signal comes, then closes the environments; it can be called once.
   * Throws what the agent, the environments and the algorithm throw (the last checkpoint then stands), and INVALID_STATE where
   * the checkpoints are those of another run that was not resumed.
   */
  async train(watch: WatchOptions = {}): Promise<TrainingResult> {
    const { agent, saveEvery = 10 } = this.options;
    await this.checkCheckpoints();
    agent.train();
    if (this.progress.updates === 0) await this.warmStart(watch);
    const learner = await agent.learner();
    const collector = await this.open();
    try {
      while (this.done < 1 && watch.signal?.aborted !== true) {
        await this.update(learner, collector, watch);
        if (this.progress.updates % saveEvery === 0) await this.save(collector);
      }
      if (!(await this.isSaved())) await this.save(collector);
    } finally {
      await this.close();
    }
    return {
      progress: this.progress,
      metrics: this.metrics,
      isInterrupted: this.done < 1 || (this.progress.updates === 0 && watch.signal?.aborted === true),
      checkpoint: this.checkpoint,
    };
  }

  /** Whether each update is followed by one from the best episodes so far (the agent's onlineSft); it may be switched at any time. */
  get onlineSft(): boolean {
    return this.options.agent.onlineSft;
  }

  set onlineSft(isOn: boolean) {
    if (isOn) this.options.agent.enableOnlineSft();
    else this.options.agent.disableOnlineSft();
  }

  /** Closes the environments; `train` does so at its end. */
  async close(): Promise<void> {
    this.isClosed = true;
    for (const env of this.envs.splice(0)) await env.close();
  }

  /** 0 to 1: how much of the run is done. */
  private get done(): number {
    return this.doneOf(this.progress);
  }

  private doneOf(progress: RunProgress): number {
    return shareDone(this.options, progress);
  }

  /** Learns the agent's demonstrations, if it has any; their last update is the record before the first one. */
  private async warmStart({ tracker, onWarmStart, signal }: WatchOptions): Promise<void> {
    const stats = await this.options.agent.warmStart({ onStep: onWarmStart, signal });
    if (stats !== undefined) await tracker?.log(0, sftMetrics(stats));
  }

  private async update(
    learner: Learner,
    collector: Collector,
    { tracker, sampleEvery = 10, onProgress }: WatchOptions,
  ): Promise<void> {
    const { done } = this;
    const start = performance.now();
    const experience = await this.play(learner, collector, onProgress);
    const played = performance.now();
    const learnt = await learner.update(experience.segments, { done });
    const end = performance.now();
    const turns = experience.segments.flatMap((segment) => segment.turns);
    const returns = [...this.progress.recentReturns, ...experience.episodes.map((episode) => episode.return)];
    this.count(experience, turns, (end - start) / 1000);
    const { updates, tokens, episodes, turns: allTurns } = this.progress;
    this.metrics = {
      "rollout/ep_rew_mean": mean(returns.slice(-Math.max(WINDOW, experience.episodes.length))),
      "rollout/ep_len_mean": mean(experience.episodes.map((episode) => episode.turns)),
      "rollout/truncated_ratio": mean(experience.episodes.map(({ end }) => (end === "truncated" ? 1 : 0))),
      "rollout/invalid_ratio": mean(turns.map(({ isValid }) => (isValid ? 0 : 1))),
      "rollout/turns_per_second": (turns.length * 1000) / (end - start),
      "completions/mean_length": mean(turns.map((turn) => turn.tokens.length)),
      "completions/clipped_ratio": mean(turns.map(({ finishReason }) => (finishReason === "length" ? 1 : 0))),
      ...extractionShares(turns),
      ...learnt,
      num_tokens: tokens,
      episodes,
      turns: allTurns,
      "time/rollout": (played - start) / 1000,
      "time/update": (end - played) / 1000,
      step_time: (end - start) / 1000,
    };
    this.health.check(this.metrics);
    await tracker?.log(updates, this.metrics);
    if ((updates - 1) % sampleEvery === 0) await tracker?.samples?.(updates, this.samples(turns));
    onProgress?.({ progress: this.progress, done: this.done, metrics: this.metrics });
  }

  private async play(
    learner: Learner,
    collector: Collector,
    onProgress: WatchOptions["onProgress"],
  ): Promise<Experience> {
    const { wish } = learner;
    const { progress, metrics } = this;
    let { episodes } = progress;
    const onRound = (turns: number, ended: readonly unknown[]) => {
      episodes += ended.length;
      const now = { ...progress, turns: progress.turns + turns, episodes };
      onProgress?.({ progress: now, done: this.doneOf(now), metrics });
    };
    if (wish.kind === "turns") return collector.turns(wish.turns, { onRound });
    return playGroups(collector, wish, { newSeed: () => this.starts.integers(0, 2 ** 31), onRound });
  }

  private count({ episodes }: Experience, turns: readonly Turn[], seconds: number): void {
    const { progress } = this;
    const recent = [...progress.recentReturns, ...episodes.map((episode) => episode.return)];
    this.progress = {
      updates: progress.updates + 1,
      turns: progress.turns + turns.length,
      episodes: progress.episodes + episodes.length,
      tokens: progress.tokens + turns.reduce((sum, turn) => sum + turn.tokens.length, 0),
      seconds: progress.seconds + seconds,
      recentReturns: recent.slice(-WINDOW),
    };
  }

  private samples(turns: readonly Turn[]): SampleRow[] {
    const { tokenizer } = this.options.agent.model;
    return turns.slice(0, SAMPLES).map(({ prompt, text, reward, isValid, extraction }) => ({
      prompt: tokenizer.decode(prompt, { skipSpecialTokens: true }),
      completion: text,
      reward,
      is_valid: isValid,
      extraction: isValid ? extraction : "failed",
    }));
  }

  /** The environments and those who play in them, made once. */
  private async open(): Promise<Collector> {
    if (this.isClosed) {
      throw new LlamaGymError(
        "INVALID_STATE",
        "This Trainer has trained already. Make a new one, and let it resume() to go on from the last checkpoint.",
      );
    }
    if (this.collector !== undefined) return this.collector;
    const { agent, env, numEnvs = NUM_ENVS, seed = 0 } = this.options;
    const make = typeof env === "string" ? async () => makeAsync(env) : env;
    try {
      for (let i = 0; i < numEnvs; i++) this.envs.push(await make());
    } catch (error) {
      await this.close();
      throw error;
    }
    const { sharesSparseRewards } = agent.settings;
    const seats = this.envs.map((own, i) => {
      const random = new RandomStream(seed, [REPLY_STREAM, i]);
      const start = this.starts.integers(0, 2 ** 31);
      return new Seat(own, () => agent.playthrough(random), random, start, sharesSparseRewards);
    });
    return (this.collector = new Collector(seats));
  }

  /** A new run must not mix its checkpoints with those of another. */
  private async checkCheckpoints(): Promise<void> {
    const { checkpoints } = this.options;
    if (checkpoints === undefined || this.checkpoint !== undefined) return;
    const other = await latestCheckpoint(checkpoints);
    if (other === undefined) return;
    throw new LlamaGymError(
      "INVALID_STATE",
      `${checkpoints} holds the checkpoints of a run. Let the Trainer resume() it before it trains, or choose another folder.`,
    );
  }

  private async isSaved(): Promise<boolean> {
    const { checkpoints } = this.options;
    if (checkpoints === undefined || this.progress.updates === 0) return true;
    return this.checkpoint === join(checkpoints, String(this.progress.updates).padStart(6, "0"));
  }

  private async save(collector: Collector): Promise<void> {
    const { checkpoints, agent } = this.options;
    if (checkpoints === undefined) return;
    const { progress } = this;
    this.checkpoint = await saveCheckpoint(checkpoints, agent, {
      progress,
      seats: collector.getState(),
      starts: this.starts.getState(),
    });
  }
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
