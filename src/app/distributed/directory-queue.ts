import { randomUUID } from "node:crypto";
import { mkdir, readFile, rm, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { LlamaGymError } from "../../core/errors.js";
import {
  FileObserver,
  listFolder,
  moveIfExists,
  readIfExists,
  removeIfExists,
  runPaths,
  workersPath,
  writeWhole,
} from "./directory-files.js";
import {
  JobLostError,
  MAX_LOSSES,
  type JobAnswer,
  type LearnerQueue,
  type OpenRun,
  type QueueCounts,
  type QueueTimes,
  type WorkerInfo,
  type WorkerQueue,
  type WorkSession,
} from "./job-queue.js";

/** Interval at which the directory is read. */
const POLL_MS = 50;
/** Published versions that are kept. */
const KEPT_VERSIONS = 6;

/** In place of a worker's name: the job failed on several workers. */
const LOST = "!lost";

interface PendingJob {
  readonly resolve: (answer: JobAnswer) => void;
  readonly reject: (error: unknown) => void;
}

/** The learner's end of a run's queue in a directory that all machines share. */
export class DirectoryLearnerQueue implements LearnerQueue {
  private readonly paths;
  private readonly observer: FileObserver;
  private readonly pending = new Map<string, PendingJob>();
  private readonly kept: string[] = [];
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
    this.observer = new FileObserver(times.leaseMs);
  }

  /** @throws INVALID_STATE if another process trains the run. */
  static async open(folder: string, run: string, setup: string, times: QueueTimes): Promise<DirectoryLearnerQueue> {
    const queue = new DirectoryLearnerQueue(folder, run, times);
    await queue.acquire();
    for (const path of [queue.paths.jobs, queue.paths.claims, queue.paths.answers])
      await mkdir(path, { recursive: true });
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
    if (this.kept.includes(sha256)) return;
    await writeWhole(join(this.paths.weights, sha256), values);
    this.kept.push(sha256);
    for (const old of this.kept.splice(0, this.kept.length - KEPT_VERSIONS))
      await removeIfExists(join(this.paths.weights, old));
  }

  async submit(id: string, payload: Uint8Array): Promise<JobAnswer> {
    if (this.failure !== undefined) throw this.failure;
    const answer = new Promise<JobAnswer>((resolve, reject) => this.pending.set(id, { resolve, reject }));
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

/** A worker's end of the queues in a shared directory. */
export class DirectoryWorkerQueue implements WorkerQueue {
  private readonly observer: FileObserver;

  constructor(
    private readonly folder: string,
    times: QueueTimes,
  ) {
    this.observer = new FileObserver(times.leaseMs);
  }

  async announce(info: WorkerInfo): Promise<void> {
    await writeWhole(join(workersPath(this.folder), `${info.name}.json`), JSON.stringify(info));
  }

  async listRuns(worker: string): Promise<readonly OpenRun[]> {
    const open: OpenRun[] = [];
    for (const run of await listFolder(join(this.folder, "runs"))) {
      const { setup: path, lease, refused } = runPaths(this.folder, run);
      const setup = await readIfExists(path);
      const isRefused = (await readIfExists(join(refused, worker))) !== undefined;
      if (setup !== undefined && !isRefused && (await this.observer.isAlive(lease)))
        open.push({ run, setup: setup.toString() });
    }
    return open;
  }

  async getWeights(run: string, sha256: string): Promise<Uint8Array | undefined> {
    return readIfExists(join(runPaths(this.folder, run).weights, sha256));
  }

  work(run: string, worker: string, handle: (payload: Uint8Array) => Promise<Uint8Array>): WorkSession {
    const closed = new AbortController();
    const ended = (async () => {
      while (!closed.signal.aborted) {
        if (!(await this.listRuns(worker)).some((open) => open.run === run)) return;
        await sleep(10 * POLL_MS);
      }
    })();
    const loop = (async () => {
      while (!closed.signal.aborted) if (!(await this.takeJob(run, worker, handle))) await sleep(POLL_MS);
    })();
    return {
      ended,
      close: async () => {
        closed.abort();
        await loop;
      },
    };
  }

  async listWorkers(): Promise<readonly WorkerInfo[]> {
    return listDirectoryWorkers(this.folder, this.observer);
  }

  async listQueues(): Promise<readonly QueueCounts[]> {
    return Promise.all(
      (await listFolder(join(this.folder, "runs"))).map(async (run) => {
        const { jobs, claims } = runPaths(this.folder, run);
        const [waiting, active] = await Promise.all(
          [jobs, claims].map(async (path) => (await listFolder(path)).length),
        );
        return { run, waiting, active, setAside: 0 };
      }),
    );
  }

  async close(worker: string): Promise<void> {
    await removeIfExists(join(workersPath(this.folder), `${worker}.json`));
  }

  /** Claims a job and answers it; false if there is none. A worker that fails leaves the job to others. */
  private async takeJob(
    run: string,
    worker: string,
    handle: (payload: Uint8Array) => Promise<Uint8Array>,
  ): Promise<boolean> {
    const { jobs, claims, answers } = runPaths(this.folder, run);
    for (const name of await listFolder(jobs)) {
      const claim = join(claims, `${name}~${worker}`);
      if (!(await moveIfExists(join(jobs, name), claim))) continue;
      const { id, losses } = parseName(name);
      try {
        await writeWhole(join(answers, `${id}~${worker}`), await handle(await readFile(claim)));
      } catch {
        const isLost = losses + 1 >= MAX_LOSSES;
        await moveIfExists(claim, isLost ? join(answers, `${id}~${LOST}`) : join(jobs, `${id}.${losses + 1}`));
        return false;
      }
      await removeIfExists(claim);
      return true;
    }
    return false;
  }
}

/** Splits ID.LOSSES~WORKER, where LOSSES or WORKER may be missing. */
function parseName(name: string): {
  readonly id: string;
  readonly losses: number;
  readonly worker: string | undefined;
} {
  const [job, worker] = name.split("~") as [string, string | undefined];
  const [id, losses = "0"] = job.split(".");
  return { id, losses: Number(losses), worker };
}

async function listDirectoryWorkers(folder: string, observer: FileObserver): Promise<readonly WorkerInfo[]> {
  const workers: WorkerInfo[] = [];
  for (const name of await listFolder(workersPath(folder))) {
    const path = join(workersPath(folder), name);
    const text = (await observer.isAlive(path)) ? await readIfExists(path) : undefined;
    if (text !== undefined) workers.push(JSON.parse(text.toString()) as WorkerInfo);
  }
  return workers;
}
