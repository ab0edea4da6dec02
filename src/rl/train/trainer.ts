import { fs } from "#platform";
import {
  checkOptions,
  type OptionNames,
  type OtherOptions,
  resolveSettings,
  selectSettings,
  type Settings,
} from "../../core/settings.js";
import { describeValue } from "../../core/format.js";
import { algorithms } from "../algorithms/algorithms.js";
import { printWarning } from "../../core/terminal-text.js";
import { invalidArgument, LlamaGymError } from "../../core/errors.js";
import { type EnvSource, toMakeEnv } from "../../envs/index.js";
import { removeFolder } from "../../core/files/remove-folder.js";
import { withFolderLock, type FolderLock } from "../../core/files/folder-lock.js";
import type { Agent } from "../agent/agent.js";
import { toSftMetrics, type SftMetrics } from "../algorithms/sft/sft-learner.js";
import type { GradientTransport } from "../algorithms/update/gradient-transport.js";
import type { RolloutTransport } from "../rollout/rollout-job.js";
import { BestModel } from "./best-model.js";
import { checkNoCheckpoints, findLatestCheckpoint, restoreLatestCheckpoint, saveCheckpoint } from "./checkpoints.js";
import type { RolloutMode } from "./record-rollout.js";
import { RolloutTask } from "./rollout-task.js";
import { runTrainLoop, type TrainLoopOptions, type TrainResult } from "./train-loop.js";
import { INITIAL_STATE, type ResumedRun, type TrainerState } from "./train-task.js";
import { checkEvaluationSettings, checkSelfPlaySettings, trainerSettings } from "./trainer-settings.js";
import { TrainingMonitor } from "../algorithms/training-monitor.js";

/** Options of a `Trainer`. */
export interface TrainerOptions extends Partial<Settings<typeof trainerSettings>> {
  readonly agent: Agent;
  /** An environment's id, a class that extends Env, or a function that makes an environment. */
  readonly env: EnvSource;
  /** Folder for checkpoints; without it, nothing is saved. */
  readonly checkpointDir?: string;
  /** Lock that the program holds on the run folder; without it, `train` locks `checkpointDir`. */
  readonly lock?: FolderLock;
  /** Which episodes a tracker with `logRollout` receives. Default "none". */
  readonly rollouts?: RolloutMode;
  /** Receives warnings that do not stop the run; by default they are printed. */
  readonly onWarning?: (message: string) => void;
  /** Collects rollouts on workers instead of in this process (docs/scale.md). */
  readonly transport?: RolloutTransport;
  /** Computes the gradients of updates on workers instead of in this process. */
  readonly gradientTransport?: GradientTransport;
}

const otherOptions: OtherOptions<TrainerOptions, typeof trainerSettings> = {
  agent: true,
  env: true,
  checkpointDir: String,
  lock: true,
  rollouts: true,
  onWarning: Function,
  transport: true,
  gradientTransport: true,
};

/** Callbacks and tracker of a training run. */
export interface TrainCallbacks extends Pick<TrainLoopOptions, "tracker" | "onProgress" | "onUpdate" | "signal"> {
  /** Called after each update of the warm start. */
  readonly onWarmStart?: (metrics: SftMetrics) => void;
}

const callbackNames: OptionNames<TrainCallbacks> = {
  tracker: true,
  onProgress: Function,
  onUpdate: Function,
  signal: AbortSignal,
  onWarmStart: Function,
};

/** Where training ends. */
export type TrainLength = Pick<TrainerOptions, "episodes" | "turns">;

/** Returns how much of a run of this many episodes or turns is complete: 0 to 1. */
export function progressFraction(
  { episodes = Infinity, turns = Infinity }: TrainLength,
  state: Pick<TrainerState, "episodes" | "turns">,
): number {
  if (turns === 0) return 1;
  return Math.min(1, Math.max(state.episodes / episodes, state.turns / turns));
}

/**
 * Trains an agent by online reinforcement learning in parallel environments. A run resumed from a
 * checkpoint produces the same numbers as an uninterrupted one.
 */
export class Trainer {
  private task: RolloutTask | undefined;
  private resumed: ResumedRun | undefined;
  private isClosed = false;
  private isResuming = false;
  private hasWarmStart = false;
  private settings: Settings<typeof trainerSettings>;
  private readonly onWarning: (message: string) => void;
  private readonly monitor: TrainingMonitor;
  private readonly bestModel: BestModel | undefined;

  /**
   * @throws INVALID_ARGUMENT for values out of range, unknown options, and without an agent,
   * `episodes` or `turns`.
   */
  constructor(private readonly options: TrainerOptions) {
    checkTrainerOptions(options);
    this.settings = resolveSettings("A Trainer", trainerSettings, selectSettings(trainerSettings, options));
    if (options.episodes === undefined && options.turns === undefined)
      throw new LlamaGymError(
        "INVALID_ARGUMENT",
        "The Trainer needs the length of the run: set `episodes` or `turns`.",
      );
    checkAgent(options.agent);
    const { agent, checkpointDir, onWarning = printWarning } = options;
    this.onWarning = onWarning;
    checkEvaluationSettings(this.settings);
    checkSelfPlaySettings(this.settings);
    const { entropyFloor, loadBestModelAtEnd } = this.settings;
    if (loadBestModelAtEnd && checkpointDir === undefined)
      throw invalidArgument("`loadBestModelAtEnd` saves the best model next to the checkpoints: set `checkpointDir`.");
    this.bestModel = loadBestModelAtEnd ? new BestModel(agent, checkpointDir!) : undefined;
    this.monitor = new TrainingMonitor({ entropyFloor, onWarning });
  }

  /**
   * Restores the newest undamaged checkpoint, if there is one, and returns the number of updates
   * made so far. `train` continues a warm start that was interrupted.
   * @throws FILE_CORRUPT, WEIGHTS_MISMATCH, and RUN_INCOMPATIBLE for a checkpoint of another
   * version or number of environments.
   */
  async resume(): Promise<number> {
    const { checkpointDir } = this.options;
    this.isResuming = true;
    try {
      this.resumed = await restoreLatestCheckpoint(checkpointDir, async () => this.openTask(), this.onWarning);
    } catch (error) {
      await this.close();
      throw error;
    }
    if (this.resumed === undefined) this.hasWarmStart = (await this.findWarmStart()) !== undefined;
    return this.resumed?.state.updates ?? 0;
  }

  /**
   * Trains until the episodes or turns are complete or `signal` aborts, then closes the
   * environments. Can be called once.
   * @throws what the agent, the environments and the algorithm throw (the last checkpoint remains),
   * INVALID_STATE if `checkpointDir` contains another run, and FOLDER_IN_USE while another process
   * writes to it.
   */
  async train(callbacks: TrainCallbacks = {}): Promise<TrainResult> {
    checkOptions("Trainer.train", callbacks, callbackNames);
    const { lock, checkpointDir } = this.options;
    if (lock !== undefined) return this.trainLocked(callbacks, lock);
    return withFolderLock(checkpointDir, async (taken) => this.trainLocked(callbacks, taken));
  }

  private async trainLocked(
    { onWarmStart, ...callbacks }: TrainCallbacks,
    lock: FolderLock | undefined,
  ): Promise<TrainResult> {
    const { agent, checkpointDir, gradientTransport } = this.options;
    const { resumed, monitor, settings } = this;
    if (resumed === undefined) await this.checkNewRun();
    // Left by a process that was killed right after the warm start.
    else await this.removeWarmStart();
    agent.train();
    // What cannot be played or trained is refused before a warm start.
    const task = await this.openTask();
    const learner = await agent.getLearner();
    if (gradientTransport !== undefined) learner.useGradientTransport?.(gradientTransport);
    const stopped = resumed === undefined ? await this.warmStartOrClose(callbacks, onWarmStart, lock) : undefined;
    if (stopped !== undefined) return stopped;
    this.isClosed = true;
    const stopping = isStoppedByEvaluations(settings) ? { ...settings, metric: "eval/mean_return" } : undefined;
    const options = { ...settings, stopping, resumed: this.resumed, monitor, checkpointDir, lock };
    const result = await runTrainLoop(task, { ...callbacks, ...options });
    const bestEvaluation = result.isInterrupted ? undefined : await this.bestModel?.load();
    return { ...result, bestEvaluation };
  }

  /** Closes the environments if the warm start fails or is interrupted. */
  private async warmStartOrClose(...warmStart: Parameters<Trainer["warmStart"]>): Promise<TrainResult | undefined> {
    let continues = false;
    try {
      const stopped = await this.warmStart(...warmStart);
      continues = stopped === undefined;
      return stopped;
    } finally {
      if (!continues) await this.close();
    }
  }

  /** @throws INVALID_STATE if the folder has checkpoints of a run that is not resumed. */
  private async checkNewRun(): Promise<void> {
    const { checkpointDir } = this.options;
    for (const dir of this.isResuming ? [checkpointDir] : [checkpointDir, this.warmStartDir])
      await checkNoCheckpoints(dir, "Call resume() before train(), or choose another folder.");
  }

  /**
   * Whether each update is followed by one on the best episodes so far (the agent's onlineSft). Can
   * be changed at any time.
   */
  get onlineSft(): boolean {
    return this.options.agent.onlineSft;
  }

  set onlineSft(enabled: boolean) {
    if (enabled) this.options.agent.enableOnlineSft();
    else this.options.agent.disableOnlineSft();
  }

  /**
   * Changes where training ends; also while it runs. @throws INVALID_ARGUMENT for values out of
   * range.
   */
  setLength({ episodes = this.settings.episodes, turns = this.settings.turns }: TrainLength): void {
    this.settings = resolveSettings("A Trainer", trainerSettings, { ...this.settings, episodes, turns });
  }

  /** Folder of the last checkpoint restored by `resume`; undefined if there was none. */
  get restoredCheckpoint(): string | undefined {
    return this.resumed?.folder;
  }

  /** Whether `resume` found a warm start that was interrupted. */
  get resumesWarmStart(): boolean {
    return this.hasWarmStart;
  }

  /**
   * Opens the environments and the opponents, which otherwise `train` does. Throws what it throws
   * for them.
   */
  async open(): Promise<void> {
    await this.openTask();
  }

  /** Closes the environments; `train` does so at its end. */
  async close(): Promise<void> {
    this.isClosed = true;
    await this.task?.close();
  }

  /**
   * Trains on the agent's demonstrations, if it has any, logs the last update as step 0 and saves a
   * checkpoint. Returns the result of a run that `signal` interrupted.
   */
  private async warmStart(
    { tracker, signal }: TrainCallbacks,
    onStep: TrainCallbacks["onWarmStart"],
    lock: FolderLock | undefined,
  ): Promise<TrainResult | undefined> {
    const { onWarning } = this;
    const { agent, checkpointDir } = this.options;
    const start = performance.now();
    const { WarmStartCheckpoints } = await import("./warm-start-checkpoints.js");
    const { warmStartDir: dir, isResuming: isResumed } = this;
    const checkpoints =
      dir === undefined ? undefined : new WarmStartCheckpoints({ dir, isResumed, signal, lock, onWarning });
    const metrics = await agent.warmStart({ onStep, signal }, checkpoints);
    const seconds = checkpoints?.seconds ?? (performance.now() - start) / 1000;
    const state = { ...INITIAL_STATE, seconds };
    if (signal?.aborted === true && checkpoints?.isComplete !== true)
      return { state, metrics: {}, isInterrupted: true, latestCheckpoint: await this.findWarmStart() };
    if (metrics === undefined) return undefined;
    await tracker?.log(0, toSftMetrics(metrics));
    const folder =
      checkpointDir === undefined ? undefined : await saveCheckpoint(checkpointDir, state, await this.openTask());
    this.resumed = { state, folder };
    await this.removeWarmStart();
    return undefined;
  }

  /** Folder of the warm start's checkpoints, in the folder of the run's. */
  private get warmStartDir(): string | undefined {
    const { checkpointDir } = this.options;
    return checkpointDir === undefined ? undefined : fs.join(checkpointDir, "warm_start");
  }

  private async findWarmStart(): Promise<string | undefined> {
    return this.warmStartDir === undefined ? undefined : findLatestCheckpoint(this.warmStartDir);
  }

  private async removeWarmStart(): Promise<void> {
    if (this.warmStartDir !== undefined) await removeFolder(this.warmStartDir);
  }

  private async openTask(): Promise<RolloutTask> {
    if (this.isClosed)
      throw new LlamaGymError(
        "INVALID_STATE",
        "This Trainer has already trained. Create a new one; its resume() continues from the last checkpoint.",
      );
    const { agent, env, rollouts = "none", transport } = this.options;
    const { evalSteps, evalEpisodes } = this.settings;
    return (this.task ??= await RolloutTask.open({
      ...this.settings,
      agent,
      createEnv: toMakeEnv(env, "A Trainer's `env`"),
      episodes: () => this.settings.episodes,
      rollouts,
      progress: (state) => progressFraction(this.settings, state),
      onWarning: this.onWarning,
      transport,
      evalEpisodes: evalSteps === undefined ? 0 : evalEpisodes,
      bestModel: this.bestModel,
    }));
  }
}

function isStoppedByEvaluations({ earlyStoppingPatience, rewardThreshold }: Settings<typeof trainerSettings>): boolean {
  return earlyStoppingPatience !== undefined || rewardThreshold !== undefined;
}

/** @throws INVALID_ARGUMENT for an unknown option. */
function checkTrainerOptions(options: TrainerOptions): void {
  const isOfAlgorithm = (name: string) =>
    Object.values(algorithms).some(({ settings }) => Object.hasOwn(settings, name));
  const hint = Object.keys(options).some(isOfAlgorithm)
    ? "Settings of the algorithm belong to the agent: new MyAgent(model, tokenizer, { algorithm: ppo({ ... }) })."
    : undefined;
  checkOptions("A Trainer", options, { ...trainerSettings, ...otherOptions }, hint);
}

/** @throws INVALID_ARGUMENT for what JavaScript may pass instead of an agent. */
function checkAgent(agent: Partial<Agent> | undefined): void {
  if (typeof agent?.newEpisode === "function") return;
  throw invalidArgument(`A Trainer needs an \`agent\`, such as new MyAgent(model), got ${describeValue(agent)}.`);
}
