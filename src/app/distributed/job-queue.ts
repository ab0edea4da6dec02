/** A job's answer from a worker. */
export interface JobAnswer {
  readonly worker: string;
  /** Encoded result; see `wire.ts`. */
  readonly payload: Uint8Array;
}

/** A job whose answer a learner awaits. */
export interface PendingJob {
  readonly payload: Uint8Array;
  readonly resolve: (answer: JobAnswer) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Longest time between two signs of life of a learner or a worker, and between two attempts at a
 * lost job.
 */
export interface QueueTimes {
  /**
   * Time without a sign of life after which a worker's jobs go to others, and a learner's run to
   * another learner.
   */
  readonly leaseMs: number;
}

export const DEFAULT_TIMES: QueueTimes = { leaseMs: 30_000 };

/** Workers that lose the same job before it is set aside. */
export const MAX_LOSSES = 3;
/** Ids with this beginning are taken before others. */
export const URGENT = "0-";

/** The learner's end of the queue of one run. */
export interface LearnerQueue {
  /**
   * Makes weights available to workers. @throws INVALID_STATE if another learner has taken over the
   * run.
   */
  putWeights(sha256: string, values: Uint8Array): Promise<void>;
  removeWeights(sha256: string): Promise<void>;
  /**
   * Adds a job, unless it is there already, and waits for its answer. @throws JobLostError,
   * INVALID_STATE as `putWeights`.
   */
  submit(id: string, payload: Uint8Array): Promise<JobAnswer>;
  /** Removes a job whose answer has been used or refused. */
  remove(id: string): Promise<void>;
  /** Bars a worker from this run. */
  refuse(worker: string, reason: string): Promise<void>;
  listWorkers(): Promise<readonly WorkerInfo[]>;
  /** Releases the run; `isFinished` also deletes its jobs and weights. */
  close(isFinished: boolean): Promise<void>;
}

/** What a worker publishes about itself. */
export interface WorkerInfo {
  readonly name: string;
  readonly version: string;
  readonly host: string;
  readonly pid: number;
  readonly threads: number;
  readonly processor: string;
  readonly memoryGb: number;
  readonly startedAt: string;
  readonly status: "waiting" | "loading" | "working" | "draining";
  /** Run that it works for. */
  readonly run?: string;
  readonly model?: string;
  readonly jobs: number;
  readonly turns: number;
  /** Turns per second since it joined the run. */
  readonly turnsPerSecond: number;
  readonly lastError?: string;
}

/** Work of one run. */
export interface WorkSession {
  /** Settles when the run has ended or has no learner any more. */
  readonly ended: Promise<void>;
  /** Takes no more jobs and waits for those that are running. */
  close(): Promise<void>;
}

/** A run that needs workers. */
export interface AnnouncedRun {
  readonly run: string;
  readonly setup: string;
}

/** A worker's end of the queues of all runs. */
export interface WorkerQueue {
  /** Publishes the worker, until the next call or the end of the lease. */
  announce(info: WorkerInfo): Promise<void>;
  /** Returns the runs that have a learner and do not bar this worker. */
  listRuns(worker: string): Promise<readonly AnnouncedRun[]>;
  /** Returns why a run bars this worker; undefined if it does not. */
  readRefusal(run: string, worker: string): Promise<string | undefined>;
  /** Returns published weights; undefined if they are not kept any more. */
  getWeights(run: string, sha256: string): Promise<Uint8Array | undefined>;
  /** Takes jobs of a run, one after another, until it is closed. */
  work(run: string, worker: string, handle: (payload: Uint8Array) => Promise<Uint8Array>): WorkSession;
  listWorkers(): Promise<readonly WorkerInfo[]>;
  listQueues(): Promise<readonly QueueCounts[]>;
  close(worker: string): Promise<void>;
}

/** Jobs of a run by state. */
export interface QueueCounts {
  readonly run: string;
  readonly waiting: number;
  readonly active: number;
  readonly setAside: number;
}

/** Several workers ended or disconnected while they ran the job. */
export class JobLostError extends Error {}
