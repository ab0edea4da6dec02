import { join } from "node:path";
import type { Agent } from "../agent/agent.js";
import { computeExtractionShares } from "../agent/extraction/extraction-counter.js";
import { toSftMetrics } from "../agent/demonstrations/to-sft-metrics.js";
import type { SftMetrics } from "../algorithms/sft/sft-trainer.js";
import type { Learner, Metrics } from "../algorithms/learner.js";
import type { Env } from "../../envs/env.js";
import type { MaybePromise } from "../../core/maybe-promise.js";
import { openEnv } from "../../envs/registry/open-env.js";
import { LlamaGymError } from "../../core/errors.js";
import { checkNumber } from "../../core/check-number.js";
import { RolloutCollector, type Rollout } from "../rollout/rollout-collector.js";
import { EnvSlot } from "../rollout/env-slot.js";
import type { Turn } from "../rollout/trajectory.js";
import { RandomStream, type RandomState } from "../../core/random/random-stream.js";
import type { CompletionRow, Tracker } from "../tracking/index.js";
import { ENTROPY_FLOOR, TrainingMonitor } from "./training-monitor.js";
import { collectGroups } from "./collect-groups.js";
import { findLatestCheckpoint } from "./checkpoint-folder.js";
import { loadCheckpoint, saveCheckpoint, type TrainerState } from "./trainer-checkpoint.js";

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
  readonly checkpointDir?: string;
  /** Updates between two checkpoints. Default 10. */
  readonly saveSteps?: number;
  /** Told what is worth knowing and no error. */
  readonly onWarning?: (message: string) => void;
  /** Entropy in nats below which `warn` is told that hardly anything is tried any more; 0 for never. Default 0.01. */
  readonly entropyFloor?: number;
}

/** Who watches a run. */
export interface TrainCallbacks {
  readonly tracker?: Tracker;
  /** Updates between two records of sample completions. Default 10. */
  readonly completionLogSteps?: number;
  /** Called while the games are played and after each update. */
  readonly onProgress?: (event: TrainProgress) => void;
  /** Told of each update of the warm start. */
  readonly onWarmStart?: (stats: SftMetrics) => void;
  /** Ends the run after the update that is under way, with a checkpoint. */
  readonly signal?: AbortSignal;
}

export interface TrainProgress {
  readonly state: TrainerState;
  /** 0 to 1. */
  readonly progress: number;
  /** Those of the last update. */
  readonly metrics: Metrics;
}

export interface TrainResult {
  readonly state: TrainerState;
  readonly metrics: Metrics;
  /** True when `signal` ended it. */
  readonly isInterrupted: boolean;
  /** The newest checkpoint, where they are kept. */
  readonly latestCheckpoint: string | undefined;
}

/** Random streams of a run by what they decide; each is a child of the run's seed. */
const ROLLOUT_STREAM = 2;
const EPISODE_START_STREAM = 3;

/** Environments at once where nothing says how many. */
const DEFAULT_NUM_ENVS = 16;

/** How much of a run of so many episodes or turns is done: 0 to 1. */
export function progressFraction(
  { episodes = Infinity, turns = Infinity }: Pick<TrainerOptions, "episodes" | "turns">,
  state: Pick<TrainerState, "episodes" | "turns">,
): number {
  if (turns === 0) return 1;
  return Math.min(1, Math.max(state.episodes / episodes, state.turns / turns));
}

/** The least that each option can be. */
const MINIMUMS = { numEnvs: 1, episodes: 1, turns: 0, seed: 0, saveSteps: 1 } as const;

/** Episodes of the moving mean, or those of the last update where they are more. */
const RETURN_WINDOW = 100;
const LOGGED_COMPLETIONS = 3;

const INITIAL_STATE: TrainerState = { updates: 0, turns: 0, episodes: 0, tokens: 0, seconds: 0, recentReturns: [] };

/**
 * Trains an agent on many games at once: plays what the algorithm wants for an update, updates, and so on. Checkpoints hold all
 * that the future of a run depends on, so that a resumed run gives the numbers of an uninterrupted one.
 */
export class Trainer {
  private state = INITIAL_STATE;
  private metrics: Metrics = {};
  private readonly episodeStarts: RandomStream;
  private envs: Env[] = [];
  private collector: RolloutCollector | undefined;
  private latestCheckpoint: string | undefined;
  private isClosed = false;
  private readonly monitor: TrainingMonitor;

  /** Throws INVALID_ARGUMENT when nothing says how long to train, and for values out of range. */
  constructor(private readonly options: TrainerOptions) {
    for (const [name, min] of Object.entries(MINIMUMS)) {
      const value = options[name as keyof typeof MINIMUMS];
      if (value !== undefined) checkNumber(`The Trainer's ${name}`, value, { integer: true, min, description: "" });
    }
    if (options.episodes === undefined && options.turns === undefined) {
      throw new LlamaGymError(
        "INVALID_ARGUMENT",
        "Say how long to train: give the Trainer a number of episodes or of turns.",
      );
    }
    this.episodeStarts = new RandomStream(options.seed ?? 0, [EPISODE_START_STREAM]);
    const { entropyFloor = ENTROPY_FLOOR, onWarning = () => {} } = options;
    checkNumber("The Trainer's entropyFloor", entropyFloor, { min: 0, description: "" });
    this.monitor = new TrainingMonitor({ entropyFloor, onWarning });
  }

  /**
   * Goes on from the newest checkpoint, if there is one; gives the number of updates made before. Throws FILE_CORRUPT,
   * WEIGHTS_MISMATCH, and RUN_INCOMPATIBLE for a checkpoint of another version or of another number of environments.
   */
  async resume(): Promise<number> {
    const { checkpointDir, agent, numEnvs = DEFAULT_NUM_ENVS, onWarning = () => {} } = this.options;
    const folder = checkpointDir === undefined ? undefined : await findLatestCheckpoint(checkpointDir);
    this.latestCheckpoint = folder;
    if (folder === undefined) return 0;
    const { state, envSlots, episodeStarts } = await loadCheckpoint(folder, agent);
    if (envSlots.length !== numEnvs) {
      throw new LlamaGymError(
        "RUN_INCOMPATIBLE",
        `The checkpoint ${folder} is of a run with ${envSlots.length} environments at once, this one has ${numEnvs} (numEnvs).`,
      );
    }
    const collector = await this.openCollector();
    this.state = state;
    this.episodeStarts.setState(episodeStarts as RandomState);
    collector.setState(envSlots);
    if (envSlots.some(({ env, hasStarted }) => hasStarted && env === null))
      onWarning("The environment cannot be saved, so the run goes on with new episodes.");
    return state.updates;
  }

  /**
   * Trains until the episodes or turns are played, or the signal comes, then closes the environments; it can be called once.
   * Throws what the agent, the environments and the algorithm throw (the last checkpoint then stands), and INVALID_STATE where
   * the checkpoints are those of another run that was not resumed.
   */
  async train(callbacks: TrainCallbacks = {}): Promise<TrainResult> {
    const { agent, saveSteps = 10 } = this.options;
    await this.checkCheckpointDir();
    agent.train();
    if (this.state.updates === 0) await this.warmStart(callbacks);
    const learner = await agent.getLearner();
    const collector = await this.openCollector();
    try {
      while (this.progress < 1 && callbacks.signal?.aborted !== true) {
        await this.update(learner, collector, callbacks);
        if (this.state.updates % saveSteps === 0) await this.save(collector);
      }
      if (!(await this.isSaved())) await this.save(collector);
    } finally {
      await this.close();
    }
    return {
      state: this.state,
      metrics: this.metrics,
      isInterrupted: this.progress < 1 || (this.state.updates === 0 && callbacks.signal?.aborted === true),
      latestCheckpoint: this.latestCheckpoint,
    };
  }

  /** Whether each update is followed by one from the best episodes so far (the agent's onlineSft); it may be switched at any time. */
  get onlineSft(): boolean {
    return this.options.agent.onlineSft;
  }

  set onlineSft(enabled: boolean) {
    if (enabled) this.options.agent.enableOnlineSft();
    else this.options.agent.disableOnlineSft();
  }

  /** Closes the environments; `train` does so at its end. */
  async close(): Promise<void> {
    this.isClosed = true;
    for (const env of this.envs.splice(0)) await env.close();
  }

  /** 0 to 1: how much of the run is done. */
  private get progress(): number {
    return this.computeProgress(this.state);
  }

  private computeProgress(state: TrainerState): number {
    return progressFraction(this.options, state);
  }

  /** Learns the agent's demonstrations, if it has any; their last update is the record before the first one. */
  private async warmStart({ tracker, onWarmStart, signal }: TrainCallbacks): Promise<void> {
    const stats = await this.options.agent.warmStart({ onStep: onWarmStart, signal });
    if (stats !== undefined) await tracker?.log(0, toSftMetrics(stats));
  }

  private async update(
    learner: Learner,
    collector: RolloutCollector,
    { tracker, completionLogSteps = 10, onProgress }: TrainCallbacks,
  ): Promise<void> {
    const { progress } = this;
    const start = performance.now();
    const rollout = await this.collect(learner, collector, onProgress);
    const collectEnd = performance.now();
    const updateMetrics = await learner.update(rollout.trajectories, { progress });
    const end = performance.now();
    const turns = rollout.trajectories.flatMap((trajectory) => trajectory.turns);
    const returns = [...this.state.recentReturns, ...rollout.finishedEpisodes.map((episode) => episode.return)];
    this.updateState(rollout, turns, (end - start) / 1000);
    const { updates, tokens, episodes, turns: totalTurns } = this.state;
    this.metrics = {
      "rollout/ep_rew_mean": mean(returns.slice(-Math.max(RETURN_WINDOW, rollout.finishedEpisodes.length))),
      "rollout/ep_len_mean": mean(rollout.finishedEpisodes.map((episode) => episode.turns)),
      "rollout/truncated_ratio": mean(rollout.finishedEpisodes.map(({ end }) => (end === "truncated" ? 1 : 0))),
      "rollout/invalid_action_ratio": mean(turns.map(({ isValid }) => (isValid ? 0 : 1))),
      "rollout/turns_per_second": (turns.length * 1000) / (end - start),
      "completions/mean_length": mean(turns.map((turn) => turn.tokens.length)),
      "completions/clipped_ratio": mean(turns.map(({ finishReason }) => (finishReason === "length" ? 1 : 0))),
      ...computeExtractionShares(turns),
      ...updateMetrics,
      num_tokens: tokens,
      num_episodes: episodes,
      num_turns: totalTurns,
      "time/rollout": (collectEnd - start) / 1000,
      "time/update": (end - collectEnd) / 1000,
      step_time: (end - start) / 1000,
    };
    this.monitor.check(this.metrics);
    await tracker?.log(updates, this.metrics);
    if ((updates - 1) % completionLogSteps === 0) await tracker?.logCompletions?.(updates, this.completionRows(turns));
    onProgress?.({ state: this.state, progress: this.progress, metrics: this.metrics });
  }

  private async collect(
    learner: Learner,
    collector: RolloutCollector,
    onProgress: TrainCallbacks["onProgress"],
  ): Promise<Rollout> {
    const { rolloutSpec } = learner;
    const { state, metrics } = this;
    let { episodes } = state;
    const reportProgress = (turns: number, finished: readonly unknown[]) => {
      episodes += finished.length;
      const current = { ...state, turns: state.turns + turns, episodes };
      onProgress?.({ state: current, progress: this.computeProgress(current), metrics });
    };
    if (rolloutSpec.kind === "turns") return collector.collectTurns(rolloutSpec.turns, { onProgress: reportProgress });
    return collectGroups(collector, rolloutSpec, {
      nextSeed: () => this.episodeStarts.integers(0, 2 ** 31),
      onProgress: reportProgress,
    });
  }

  private updateState({ finishedEpisodes }: Rollout, turns: readonly Turn[], seconds: number): void {
    const { state } = this;
    const recent = [...state.recentReturns, ...finishedEpisodes.map((episode) => episode.return)];
    this.state = {
      updates: state.updates + 1,
      turns: state.turns + turns.length,
      episodes: state.episodes + finishedEpisodes.length,
      tokens: state.tokens + turns.reduce((sum, turn) => sum + turn.tokens.length, 0),
      seconds: state.seconds + seconds,
      recentReturns: recent.slice(-RETURN_WINDOW),
    };
  }

  private completionRows(turns: readonly Turn[]): CompletionRow[] {
    const { tokenizer } = this.options.agent.model;
    return turns.slice(0, LOGGED_COMPLETIONS).map(({ prompt, text, reward, isValid, extraction }) => ({
      prompt: tokenizer.decode(prompt, { skipSpecialTokens: true }),
      completion: text,
      reward,
      is_valid: isValid,
      extraction: isValid ? extraction : "failed",
    }));
  }

  /** The environments and those who play in them, made once. */
  private async openCollector(): Promise<RolloutCollector> {
    if (this.isClosed) {
      throw new LlamaGymError(
        "INVALID_STATE",
        "This Trainer has trained already. Make a new one, and let it resume() to go on from the last checkpoint.",
      );
    }
    if (this.collector !== undefined) return this.collector;
    const { agent, env, numEnvs = DEFAULT_NUM_ENVS, seed = 0 } = this.options;
    const createEnv = typeof env === "string" ? async () => openEnv(env) : env;
    try {
      for (let i = 0; i < numEnvs; i++) this.envs.push(await createEnv());
    } catch (error) {
      await this.close();
      throw error;
    }
    const { spreadSparseRewards } = agent.settings;
    const envSlots = this.envs.map((slotEnv, i) => {
      const random = new RandomStream(seed, [ROLLOUT_STREAM, i]);
      const start = this.episodeStarts.integers(0, 2 ** 31);
      return new EnvSlot(slotEnv, () => agent.newEpisode(random), random, start, spreadSparseRewards);
    });
    return (this.collector = new RolloutCollector(envSlots));
  }

  /** A new run must not mix its checkpoints with those of another. */
  private async checkCheckpointDir(): Promise<void> {
    const { checkpointDir } = this.options;
    if (checkpointDir === undefined || this.latestCheckpoint !== undefined) return;
    const other = await findLatestCheckpoint(checkpointDir);
    if (other === undefined) return;
    throw new LlamaGymError(
      "INVALID_STATE",
      `${checkpointDir} holds the checkpoints of a run. Let the Trainer resume() it before it trains, or choose another folder.`,
    );
  }

  private async isSaved(): Promise<boolean> {
    const { checkpointDir } = this.options;
    if (checkpointDir === undefined || this.state.updates === 0) return true;
    return this.latestCheckpoint === join(checkpointDir, String(this.state.updates).padStart(6, "0"));
  }

  private async save(collector: RolloutCollector): Promise<void> {
    const { checkpointDir, agent } = this.options;
    if (checkpointDir === undefined) return;
    const { state } = this;
    this.latestCheckpoint = await saveCheckpoint(checkpointDir, agent, {
      state,
      envSlots: collector.getState(),
      episodeStarts: this.episodeStarts.getState(),
    });
  }
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
