import { cpus, hostname, totalmem } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { system } from "#platform";
import { errorMessage, LlamaGymError } from "../../core/errors.js";
import { withTimeout } from "../../core/with-timeout.js";
import { type RolloutJob, type RolloutJobResult } from "../../rl/rollout/index.js";
import type { AnnouncedRun, QueueTimes, WorkerInfo, WorkerQueue, WorkSession } from "./job-queue.js";
import { PACKAGE_VERSION } from "./package-version.js";
import { openSetup, type WorkerRun, type WorkerFiles } from "./run-setup.js";
import { WeightsError, WeightsLoader } from "./weights-loader.js";
import { encodeGradients } from "./gradient-wire.js";
import { decodeJob, encodeFailure, encodeMessage } from "./wire.js";

/** Longest time between two looks for a run. */
const MAX_POLL_MS = 2000;

export interface RolloutWorkerOptions {
  readonly queue: WorkerQueue;
  readonly name: string;
  readonly files: WorkerFiles;
  readonly times: QueueTimes;
  /** Takes no more jobs, completes those that run, and ends. */
  readonly signal: AbortSignal;
  readonly onInfo: (message: string) => void;
  readonly onWarning: (message: string) => void;
}

/**
 * Collects rollouts for runs until `signal` aborts: for one run at a time, the one with the fewest
 * workers first.
 */
export async function runWorker(options: RolloutWorkerOptions): Promise<void> {
  const worker = new RolloutWorker(options);
  await worker.run();
}

type RolloutOutcome =
  | { readonly result: RolloutJobResult }
  | { readonly error: { readonly code: string; readonly message: string } };

function jobTimeoutError(seconds: number): LlamaGymError {
  return new LlamaGymError(
    "RUNTIME_FAILED",
    `A job took longer than ${seconds} s (jobTimeoutSeconds) and is left to other workers. This worker ends, because the job may still run. Look for an environment that does not return, then start the worker again.`,
  );
}

class RolloutWorker {
  private info: WorkerInfo;
  /** Runs that this worker could not open. */
  private readonly failedRuns = new Set<string>();
  private joinedAt = 0;
  private turnsOfRun = 0;

  constructor(private readonly options: RolloutWorkerOptions) {
    const processors = cpus();
    this.info = {
      name: options.name,
      version: PACKAGE_VERSION,
      host: hostname(),
      pid: process.pid,
      threads: options.files.threads ?? system.countCores(),
      processor: processors[0]?.model.trim() ?? process.arch,
      memoryGb: Math.round(totalmem() / 1e9),
      startedAt: new Date().toISOString(),
      status: "waiting",
      jobs: 0,
      turns: 0,
      turnsPerSecond: 0,
    };
  }

  async run(): Promise<void> {
    const { queue, name, signal, times } = this.options;
    await this.update({});
    const heartbeat = setInterval(() => void this.update({}).catch(() => {}), times.leaseMs / 4);
    try {
      while (!signal.aborted) {
        const run = await this.chooseRun();
        if (run === undefined)
          await sleep(Math.min(MAX_POLL_MS, times.leaseMs / 4), undefined, { signal }).catch(() => {});
        else await this.join(run);
      }
    } finally {
      clearInterval(heartbeat);
      await queue.close(name);
    }
  }

  private async chooseRun(): Promise<AnnouncedRun | undefined> {
    const { queue, name } = this.options;
    const runs = (await queue.listRuns(name)).filter(({ run }) => !this.failedRuns.has(run));
    if (runs.length < 2) return runs[0];
    const workers = await queue.listWorkers();
    const countWorkers = ({ run }: AnnouncedRun) => workers.filter((worker) => worker.run === run).length;
    return runs.toSorted((a, b) => countWorkers(a) - countWorkers(b))[0];
  }

  private async join({ run, setup }: AnnouncedRun): Promise<void> {
    const { queue, name, files, signal, onInfo, onWarning } = this.options;
    await this.update({ status: "loading", run });
    let opened: WorkerRun;
    try {
      opened = await openSetup(setup, files, onWarning);
    } catch (error) {
      this.failedRuns.add(run);
      onWarning(this.noteError(`This worker cannot take part in run ${run}: ${errorMessage(error)}`));
      return this.update({ status: "waiting", run: undefined });
    }
    onInfo(`Working for run ${run}.`);
    this.joinedAt = performance.now();
    this.turnsOfRun = 0;
    await this.update({ status: "working", model: (JSON.parse(setup) as { readonly model: string }).model });
    const loader = new WeightsLoader(opened.model.causalLM, async (hash) => queue.getWeights(run, hash));
    let hung: LlamaGymError | undefined;
    const stopped = new AbortController();
    const onTimeout = () => {
      // Takes no other job: this one may still use the environments and the model.
      void session.close();
      stopped.abort();
      return (hung = jobTimeoutError(opened.jobTimeoutSeconds));
    };
    const session: WorkSession = queue.work(run, name, async (payload) => {
      try {
        const handled = async () => this.handle(payload, opened, loader);
        return await withTimeout(handled, opened.jobTimeoutSeconds, onTimeout);
      } catch (error) {
        // The learner repeats the job: a retry by the queue would wait by the clock of this
        // machine.
        return encodeFailure(this.noteError(errorMessage(error)));
      }
    });
    const aborted = new Promise<void>((resolve) => {
      const either = AbortSignal.any([signal, stopped.signal]);
      if (either.aborted) resolve();
      either.addEventListener("abort", () => resolve(), { once: true });
    });
    await Promise.race([session.ended, aborted]);
    await this.update({ status: signal.aborted ? "draining" : "waiting" });
    await session.close();
    if (hung !== undefined) {
      void opened.close().catch(() => {});
      throw hung;
    }
    await opened.close();
    const refusal = await queue.readRefusal(run, name);
    if (refusal !== undefined) onWarning(this.noteError(`The learner of run ${run} refused a result: ${refusal}`));
    await this.update({ status: signal.aborted ? "draining" : "waiting", run: undefined, model: undefined });
    onInfo(signal.aborted ? "Stopped after the last job." : `Run ${run} has ended.`);
  }

  /** Runs a job, and counts it. */
  private async handle(payload: Uint8Array, opened: WorkerRun, loader: WeightsLoader): Promise<Uint8Array> {
    const message = await decodeJob(payload);
    const start = performance.now();
    const elapsed = () => (performance.now() - start) / 1000;
    const prepare = async () => {
      await loader.load(message.weights);
      if (message.past !== undefined) await opened.loadPast(await loader.read(message.past));
    };
    if (message.gradients !== undefined) {
      const result = await opened.runGradients(message.gradients, prepare);
      this.countJob();
      return encodeGradients(result, elapsed());
    }
    const outcome = await this.runRollout(message.job, opened, prepare);
    if ("error" in outcome) this.noteError(outcome.error.message);
    this.countJob("result" in outcome ? outcome.result : undefined);
    return encodeMessage({ ...outcome, seconds: elapsed() });
  }

  /** Errors of the agent and the environment are the run's, others this worker's. */
  private async runRollout(
    job: RolloutJob,
    { runner }: WorkerRun,
    prepare: () => Promise<void>,
  ): Promise<RolloutOutcome> {
    try {
      return { result: await runner.run(job, prepare) };
    } catch (error) {
      if (!(error instanceof LlamaGymError) || error instanceof WeightsError) throw error;
      return { error: { code: error.code, message: error.message } };
    }
  }

  private countJob(result?: RolloutJobResult): void {
    const { jobs, turns } = this.info;
    const newTurns = result?.trajectories.reduce((sum, trajectory) => sum + trajectory.turns.length, 0) ?? 0;
    this.turnsOfRun += newTurns;
    const turnsPerSecond = (this.turnsOfRun * 1000) / Math.max(1, performance.now() - this.joinedAt);
    this.info = { ...this.info, jobs: jobs + 1, turns: turns + newTurns, turnsPerSecond };
  }

  /**
   * Publishes the start of a message as this worker's last error with the next sign of life, and
   * returns it.
   */
  private noteError(message: string): string {
    const lastError = message.slice(0, 500);
    this.info = { ...this.info, lastError };
    return lastError;
  }

  private async update(changes: Partial<WorkerInfo>): Promise<void> {
    this.info = { ...this.info, ...changes };
    await this.options.queue.announce(this.info);
  }
}
