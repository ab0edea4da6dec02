import { randomUUID } from "node:crypto";
import { mkdir, rm, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { LlamaGymError } from "../../core/errors.js";
import { removeAbandonedFiles } from "../../core/files/temporary-path.js";
import {
  FileObserver,
  LOST,
  POLL_MS,
  listDirectoryWorkers,
  listFolder,
  moveIfExists,
  parseName,
  readIfExists,
  removeIfExists,
  runPaths,
  WeightsFolder,
  workersPath,
  writeWhole,
} from "./directory-files.js";
import {
  JobLostError,
  MAX_LOSSES,
  type JobAnswer,
  type LearnerQueue,
  type PendingJob,
  type QueueTimes,
  type WorkerInfo,
} from "./job-queue.js";

/** The learner's end of a run's queue in a directory that all machines share. */
export class DirectoryLearnerQueue implements LearnerQueue {
  private readonly paths;
  private readonly observer: FileObserver;
  private readonly pending = new Map<string, PendingJob>();
  private readonly weights: WeightsFolder;
  private readonly stored = new Set<string>();
  private readonly token = randomUUID();
  private readonly timers: NodeJS.Timeout[] = [];
  private failure: LlamaGymError | undefined;
  private isPolling = false;

  private constructor(
    private readonly folder: string,
    run: string,
    private readonly times: QueueTimes,
  ) {
    this.paths = runPaths(folder, run);
    this.weights = new WeightsFolder(folder, run);
    this.observer = new FileObserver(times.leaseMs);
  }

  /** @throws INVALID_STATE if another process trains the run. */
  static async open(folder: string, run: string, setup: string, times: QueueTimes): Promise<DirectoryLearnerQueue> {
    const queue = new DirectoryLearnerQueue(folder, run, times);
    await queue.acquire();
    const { root, jobs, claims, answers, weights, refused } = queue.paths;
    for (const path of [jobs, claims, answers]) await mkdir(path, { recursive: true });
    for (const path of [root, jobs, answers, weights, refused]) await removeAbandonedFiles(path);
    await writeWhole(queue.paths.setup, setup);
    const every = (ms: number, task: () => Promise<void>) =>
      queue.timers.push(setInterval(() => void task().catch(() => {}), ms));
    every(times.leaseMs / 4, async () => queue.renew());
    every(POLL_MS, async () => queue.poll());
    return queue;
  }

  async putWeights(sha256: string, values: Uint8Array): Promise<void> {
    await this.renew();
    if (this.failure !== undefined) throw this.failure;
    if (this.stored.has(sha256)) return;
    await this.weights.put(sha256, values);
    this.stored.add(sha256);
  }

  async removeWeights(sha256: string): Promise<void> {
    this.stored.delete(sha256);
    await this.weights.remove(sha256);
  }

  async submit(id: string, payload: Uint8Array): Promise<JobAnswer> {
    if (this.failure !== undefined) throw this.failure;
    const answer = new Promise<JobAnswer>((resolve, reject) => this.pending.set(id, { payload, resolve, reject }));
    answer.catch(() => {});
    const { jobs, claims, answers } = this.paths;
    const known = (await Promise.all([jobs, claims, answers].map(listFolder))).flat();
    if (!known.some((name) => name.startsWith(id) && !name.startsWith(`${id}-`)))
      await writeWhole(join(jobs, `${id}.0`), payload);
    return answer;
  }

  async remove(id: string): Promise<void> {
    const { jobs, claims, answers } = this.paths;
    for (const folder of [jobs, claims, answers])
      for (const name of await listFolder(folder))
        if (parseName(name).id === id) await removeIfExists(join(folder, name));
  }

  async refuse(worker: string, reason: string): Promise<void> {
    await writeWhole(join(this.paths.refused, worker), reason);
  }

  async listWorkers(): Promise<readonly WorkerInfo[]> {
    return listDirectoryWorkers(this.folder, this.observer);
  }

  async close(isFinished: boolean): Promise<void> {
    this.timers.forEach((timer) => clearInterval(timer));
    this.fail(new LlamaGymError("INVALID_STATE", "The run is closed."));
    if (!(await this.isHolder())) return;
    await removeIfExists(this.paths.lease);
    if (isFinished) await rm(this.paths.root, { recursive: true, force: true, maxRetries: 3 });
  }

  private async acquire(): Promise<void> {
    const { root, lease } = this.paths;
    await mkdir(root, { recursive: true });
    const deadline = performance.now() + 1.5 * this.times.leaseMs;
    while (performance.now() < deadline) {
      if (!(await this.observer.isAlive(lease))) await moveIfExists(lease, `${lease}.${randomUUID()}.partial`);
      try {
        return await writeFile(lease, this.token, { flag: "wx" });
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
      }
      await sleep(this.times.leaseMs / 10);
    }
    throw new LlamaGymError(
      "INVALID_STATE",
      "Another process trains this run. Stop it before you resume the run here.",
    );
  }

  private async isHolder(): Promise<boolean> {
    return (await readIfExists(this.paths.lease))?.toString() === this.token;
  }

  private async renew(): Promise<void> {
    if (!(await this.isHolder()))
      this.fail(new LlamaGymError("INVALID_STATE", "Another process has taken over this run."));
    else await utimes(this.paths.lease, new Date(), new Date());
  }

  private async poll(): Promise<void> {
    if (this.isPolling || this.pending.size === 0) return;
    this.isPolling = true;
    try {
      for (const name of await listFolder(this.paths.answers)) await this.settle(name);
      for (const name of await listFolder(this.paths.claims)) await this.checkClaim(name);
    } finally {
      this.isPolling = false;
    }
  }

  private async settle(name: string): Promise<void> {
    const { id, worker } = parseName(name);
    const pending = this.pending.get(id);
    const payload = pending && (await readIfExists(join(this.paths.answers, name)));
    if (payload === undefined) return;
    this.pending.delete(id);
    if (worker === LOST) pending!.reject(new JobLostError(`${MAX_LOSSES} workers failed to run it`));
    else pending!.resolve({ worker: worker!, payload });
  }

  /** Returns the job of a worker without a sign of life to the others. */
  private async checkClaim(name: string): Promise<void> {
    const { id, losses, worker } = parseName(name);
    if (!this.pending.has(id)) return;
    if (await this.observer.isAlive(join(workersPath(this.folder), `${worker!}.json`))) return;
    if (losses + 1 < MAX_LOSSES)
      return void (await moveIfExists(join(this.paths.claims, name), join(this.paths.jobs, `${id}.${losses + 1}`)));
    const pending = this.pending.get(id)!;
    this.pending.delete(id);
    pending.reject(new JobLostError(`${MAX_LOSSES} workers ended or disconnected while they ran it`));
  }

  private fail(error: LlamaGymError): void {
    this.failure ??= error;
    for (const { reject } of this.pending.values()) reject(this.failure);
    this.pending.clear();
  }
}
