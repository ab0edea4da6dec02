import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
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
  MAX_LOSSES,
  type AnnouncedRun,
  type QueueCounts,
  type QueueTimes,
  type WorkerInfo,
  type WorkerQueue,
  type WorkSession,
} from "./job-queue.js";

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
    await removeAbandonedFiles(workersPath(this.folder));
    await writeWhole(join(workersPath(this.folder), `${info.name}.json`), JSON.stringify(info));
  }

  async listRuns(worker: string): Promise<readonly AnnouncedRun[]> {
    const open: AnnouncedRun[] = [];
    for (const run of await listFolder(join(this.folder, "runs"))) {
      const { setup: path, lease } = runPaths(this.folder, run);
      const setup = await readIfExists(path);
      const isRefused = (await this.readRefusal(run, worker)) !== undefined;
      if (setup !== undefined && !isRefused && (await this.observer.isAlive(lease)))
        open.push({ run, setup: setup.toString() });
    }
    return open;
  }

  async readRefusal(run: string, worker: string): Promise<string | undefined> {
    return (await readIfExists(join(runPaths(this.folder, run).refused, worker)))?.toString();
  }

  async getWeights(run: string, sha256: string): Promise<Uint8Array | undefined> {
    return new WeightsFolder(this.folder, run).get(sha256);
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
      await this.returnClaims(run, worker);
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

  /** Leaves to others what an earlier process of the same name had claimed when it ended. */
  private async returnClaims(run: string, worker: string): Promise<void> {
    for (const name of await listFolder(runPaths(this.folder, run).claims))
      if (parseName(name).worker === worker) await this.returnClaim(run, name);
  }

  private async returnClaim(run: string, name: string): Promise<void> {
    const { jobs, claims, answers } = runPaths(this.folder, run);
    const { id, losses } = parseName(name);
    const isLost = losses + 1 >= MAX_LOSSES;
    await moveIfExists(join(claims, name), isLost ? join(answers, `${id}~${LOST}`) : join(jobs, `${id}.${losses + 1}`));
  }

  /**
   * Claims a job and answers it; false if there is none. A worker that fails leaves the job to
   * others.
   */
  private async takeJob(
    run: string,
    worker: string,
    handle: (payload: Uint8Array) => Promise<Uint8Array>,
  ): Promise<boolean> {
    const { jobs, claims, answers } = runPaths(this.folder, run);
    for (const name of await listFolder(jobs)) {
      const claim = join(claims, `${name}~${worker}`);
      if (!(await moveIfExists(join(jobs, name), claim))) continue;
      try {
        await writeWhole(join(answers, `${parseName(name).id}~${worker}`), await handle(await readFile(claim)));
      } catch {
        await this.returnClaim(run, `${name}~${worker}`);
        return false;
      }
      await removeIfExists(claim);
      return true;
    }
    return false;
  }
}
