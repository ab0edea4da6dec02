import { system, yieldToEventLoop } from "#platform";
import { resolveSettings, selectSettings, type Settings } from "../../core/settings.js";
import type { FolderLock } from "../../core/files/folder-lock.js";
import type { Metrics } from "../algorithms/learner.js";
import type { Tracker } from "../tracking/index.js";
import { loopSettings } from "./trainer-settings.js";
import type { BestEvaluation } from "./best-model.js";
import { CheckpointClock, saveCheckpoint } from "./checkpoints.js";
import {
  addCounts,
  addEvaluation,
  describeEarlyStop,
  INITIAL_STATE,
  type ResumedRun,
  type StoppingRule,
  type TrainerState,
  type TrainTask,
} from "./train-task.js";
import type { TrainingMonitor } from "../algorithms/training-monitor.js";

/** State of a run after a rollout round or an update. */
export interface TrainProgress {
  readonly state: TrainerState;
  /** Fraction of the run that is complete. */
  readonly progress: number;
  /** Metrics of the last update. */
  readonly metrics: Metrics;
}

/** Requests of `onUpdate` to the loop. */
export interface TrainRequests {
  /** Save a checkpoint now. */
  readonly checkpoint?: boolean;
  /** End the run with a checkpoint, as `signal` does. */
  readonly stop?: boolean;
  /** Options that replace the earlier ones. */
  readonly options?: Partial<Settings<typeof loopSettings>>;
}

export interface TrainLoopOptions extends Partial<Settings<typeof loopSettings>> {
  /** The checkpoint that the task was restored from. */
  readonly resumed?: ResumedRun;
  /** Folder for checkpoints; without it, nothing is saved. */
  readonly checkpointDir?: string;
  /** Updates between evaluations. Default: once per epoch. The last update is always evaluated. */
  readonly evalSteps?: number;
  /** When evaluations end the run. Default: never. */
  readonly stopping?: StoppingRule;
  /** Lock on the folder of the run, which the loop checks before it logs or saves. */
  readonly lock?: FolderLock;
  readonly tracker?: Tracker;
  readonly monitor?: TrainingMonitor;
  /** Called during rollouts and after each update. */
  readonly onProgress?: (event: TrainProgress) => void;
  /** Called after each update, and awaited. */
  readonly onUpdate?: (event: TrainProgress) => void | Promise<TrainRequests | void>;
  readonly onEvaluation?: (metrics: Metrics, state: TrainerState) => void;
  /** Ends the run after the current update, with a checkpoint. */
  readonly signal?: AbortSignal;
}

/** Outcome of a training loop. */
export interface TrainResult {
  readonly state: TrainerState;
  /** Metrics of the last update. */
  readonly metrics: Metrics;
  /** Whether `signal` ended the run early. */
  readonly isInterrupted: boolean;
  readonly latestCheckpoint: string | undefined;
  /** Why evaluations ended the run before its length; undefined for any other end. */
  readonly stoppedEarly?: string | undefined;
  /** The evaluation whose parameters the agent has at the end, with `loadBestModelAtEnd`. */
  readonly bestEvaluation?: BestEvaluation;
}

/**
 * Runs a task to its end: collect, prepare, update, describe, evaluate, log, checkpoint. Closes the
 * task, also on failure.
 * @throws what the task throws. If collecting or evaluating failed, there is a checkpoint of the
 * last update.
 */
export async function runTrainLoop<Rollout, Batch>(
  task: TrainTask<Rollout, Batch>,
  options: TrainLoopOptions = {},
): Promise<TrainResult> {
  const loop = new TrainLoop(task, options);
  const stopWatching = system.watchOpenWork(() => loop.describeWait());
  try {
    return await loop.run();
  } finally {
    stopWatching();
    await task.close?.();
  }
}

class TrainLoop<Rollout, Batch> {
  private settings: Settings<typeof loopSettings>;
  private state: TrainerState;
  private metrics: Metrics = {};
  private latestCheckpoint: string | undefined;
  private savedUpdates: number;
  private isStopped = false;
  private readonly clock = new CheckpointClock();
  private isSaveRequested = false;
  /** Seconds spent on the recording of the last update. */
  private recordingSeconds = 0;
  private stage: "rollout" | "update" | "evaluation" | "logging" | "checkpoint" = "rollout";
  /** Ends when the recording of the last update is written. */
  private recording: void | Promise<void> = undefined;

  constructor(
    private readonly task: TrainTask<Rollout, Batch>,
    private readonly options: TrainLoopOptions,
  ) {
    const { resumed } = options;
    this.settings = resolveSettings("A training loop", loopSettings, selectSettings(loopSettings, options));
    this.state = resumed?.state ?? INITIAL_STATE;
    this.savedUpdates = this.state.updates;
    this.latestCheckpoint = resumed?.folder;
  }

  async run(): Promise<TrainResult> {
    const { signal } = this.options;
    const isAborted = () => signal?.aborted === true || this.isStopped;
    while (!this.isComplete && !isAborted()) {
      await this.update();
      const isDue = this.state.updates % this.settings.saveSteps === 0 || this.clock.isDue;
      if (isDue || this.isSaveRequested) await this.save();
    }
    await this.save();
    const { state, metrics, latestCheckpoint, stoppedEarly } = this;
    return { state, metrics, isInterrupted: !this.isComplete, latestCheckpoint, stoppedEarly };
  }

  private get isComplete(): boolean {
    return this.progress >= 1 || this.stoppedEarly !== undefined;
  }

  private get stoppedEarly(): string | undefined {
    const { stopping } = this.options;
    return this.progress < 1 && stopping !== undefined ? describeEarlyStop(this.state, stopping) : undefined;
  }

  /**
   * Says what training waits for, in a process that ends because nothing is left that could
   * complete it.
   */
  describeWait(): string {
    const { stage, state, latestCheckpoint } = this;
    const update = state.updates + (stage === "rollout" || stage === "update" ? 1 : 0);
    const saved = latestCheckpoint === undefined ? "There is no checkpoint." : `Last checkpoint: ${latestCheckpoint}.`;
    return (
      `Training ended without a result: it was waiting for the ${stage} of update ${update}, which never completed. A promise ` +
      `of an environment, a reward function, an agent or a callback probably never settles. ${saved}`
    );
  }

  private get progress(): number {
    return this.task.progress(this.state);
  }

  private async update(): Promise<void> {
    const { task, options, state, progress } = this;
    const start = performance.now();
    const onProgress = (current: TrainerState) => options.onProgress?.(this.createEvent(current));
    let rollout: Rollout;
    this.stage = "rollout";
    try {
      rollout = await task.collect(state, onProgress);
    } catch (error) {
      throw await this.saveAfterFailure(error);
    }
    const collectEnd = performance.now();
    this.stage = "update";
    const batch = await task.prepare(rollout);
    const updateMetrics = await task.update(batch, progress);
    const end = performance.now();
    const seconds = (end - start) / 1000;
    this.state = addCounts(state, task.count(rollout), seconds);
    this.metrics = {
      ...task.describe(rollout, this.state, seconds),
      ...updateMetrics,
      "time/rollout": (collectEnd - start) / 1000,
      "time/update": (end - collectEnd) / 1000,
      "time/recording": this.recordingSeconds,
      step_time: seconds,
    };
    let failure: { readonly error: unknown } | undefined;
    this.stage = "evaluation";
    try {
      await this.evaluateIfDue();
    } catch (error) {
      failure = { error };
    }
    await this.log(rollout, batch);
    if (failure !== undefined) throw await this.saveAfterFailure(failure.error);
  }

  private async log(rollout: Rollout, batch: Batch): Promise<void> {
    const { monitor, tracker, onProgress, onUpdate } = this.options;
    const { completionLogSteps, numLoggedCompletions } = this.settings;
    const { updates } = this.state;
    monitor?.check(this.metrics);
    this.stage = "logging";
    await this.options.lock?.verify();
    await tracker?.log(updates, this.metrics);
    if ((updates - 1) % completionLogSteps === 0) {
      const completions = this.task.sampleCompletions?.(rollout, numLoggedCompletions);
      if (completions !== undefined) await tracker?.logCompletions?.(updates, completions);
    }
    await this.record(rollout, batch);
    const event = this.createEvent(this.state);
    onProgress?.(event);
    this.takeRequests((await onUpdate?.(event)) ?? {});
  }

  /** Records the last update's rollout; compression and writing continue during the next one. */
  private async record(rollout: Rollout, batch: Batch): Promise<void> {
    const { tracker } = this.options;
    const start = performance.now();
    await this.recording;
    const { updates } = this.state;
    const record = tracker && (await this.task.recordRollout?.(rollout, batch, updates));
    if (record !== undefined) {
      this.recording = tracker?.logRollout?.(updates, record);
      // A failure is thrown where the recording is awaited.
      this.recording?.catch(() => {});
      await yieldToEventLoop();
    }
    this.recordingSeconds = (performance.now() - start) / 1000;
  }

  private takeRequests({ checkpoint = false, stop = false, options = {} }: TrainRequests): void {
    this.isSaveRequested = checkpoint;
    this.isStopped ||= stop;
    this.settings = { ...this.settings, ...options };
  }

  /** Adds an evaluation to the update's metrics. */
  private async evaluateIfDue(): Promise<void> {
    const { task, state, options } = this;
    const { evalSteps, stopping, onEvaluation } = options;
    if (task.evaluate === undefined) return;
    const isDue = evalSteps === undefined ? task.isEpochEnd?.() : state.updates % evalSteps === 0;
    if (isDue !== true && this.progress < 1) return;
    const start = performance.now();
    const metrics = await task.evaluate(state);
    if (metrics === undefined) return;
    this.state = {
      ...state,
      seconds: state.seconds + (performance.now() - start) / 1000,
      ...(stopping && { evaluations: addEvaluation(state.evaluations, metrics[stopping.metric], stopping) }),
    };
    this.metrics = { ...this.metrics, ...metrics };
    onEvaluation?.(metrics, state);
  }

  /**
   * Saves the last update after user code has thrown. Returns the original error even if saving
   * fails.
   */
  private async saveAfterFailure(error: unknown): Promise<unknown> {
    await this.save({ dropRollout: true }).catch(() => {});
    return error;
  }

  private async save(options: { readonly dropRollout?: boolean } = {}): Promise<void> {
    const { checkpointDir } = this.options;
    await this.recording;
    if (checkpointDir === undefined || this.state.updates === this.savedUpdates) return;
    this.stage = "checkpoint";
    const start = performance.now();
    await this.options.lock?.verify();
    const { savedUpdates: previous } = this;
    this.latestCheckpoint = await saveCheckpoint(checkpointDir, this.state, this.task, { ...options, previous }).catch(
      async (error: unknown) => {
        // A folder that is deleted during the save is the cause of whatever error its files gave.
        await this.options.lock?.verify();
        throw error;
      },
    );
    this.savedUpdates = this.state.updates;
    this.clock.restart(start);
  }

  private createEvent(state: TrainerState): TrainProgress {
    return { state, progress: this.task.progress(state), metrics: this.metrics };
  }
}
