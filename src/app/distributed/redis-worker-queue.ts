import type * as BullMqModule from "bullmq";
import type { Redis } from "ioredis";
import { WeightsFolder } from "./directory-files.js";
import type { AnnouncedRun, QueueCounts, QueueTimes, WorkerInfo, WorkerQueue, WorkSession } from "./job-queue.js";
import { MAX_LOSSES } from "./job-queue.js";
import {
  blockingSeconds,
  connectRedis,
  KEEP_SECONDS,
  QUEUE,
  runKeys,
  runPrefix,
  RUNS_KEY,
  workerKey,
  WORKER_KEYS,
} from "./redis-keys.js";

type BullMq = typeof BullMqModule;

/**
 * 0: the run has ended or bars the worker; 1: it has no learner; 2: it continues. One command,
 * because many workers ask.
 */
const RUN_STATE = `if redis.call('exists', KEYS[1]) == 0 or redis.call('hexists', KEYS[2], ARGV[1]) == 1 then return 0 end
return 1 + redis.call('exists', KEYS[3])`;

/** A worker's end of the queues in Redis. */
export class RedisWorkerQueue implements WorkerQueue {
  private constructor(
    private readonly redis: Redis,
    private readonly bullmq: BullMq,
    private readonly times: QueueTimes,
    private readonly weightsFolder: string | undefined,
  ) {}

  /** Reads trained values from a folder, if one is given. @throws as `connectRedis`. */
  static async open(url: string, times: QueueTimes, weightsFolder?: string): Promise<RedisWorkerQueue> {
    const redis = await connectRedis(url, times);
    return new RedisWorkerQueue(redis, await import("bullmq"), times, weightsFolder);
  }

  async announce(info: WorkerInfo): Promise<void> {
    await this.redis.set(workerKey(info.name), JSON.stringify(info), "PX", this.times.leaseMs);
  }

  async listRuns(worker: string): Promise<readonly AnnouncedRun[]> {
    const runs: AnnouncedRun[] = [];
    for (const run of (await this.redis.smembers(RUNS_KEY)).toSorted()) {
      const { setup: setupKey, lease, refused } = runKeys(run);
      const setup = await this.redis.get(setupKey);
      if (setup === null) await this.redis.srem(RUNS_KEY, run);
      else if ((await this.redis.exists(lease)) === 1 && (await this.redis.hexists(refused, worker)) === 0)
        runs.push({ run, setup });
    }
    return runs;
  }

  async readRefusal(run: string, worker: string): Promise<string | undefined> {
    return (await this.redis.hget(runKeys(run).refused, worker)) ?? undefined;
  }

  async getWeights(run: string, sha256: string): Promise<Uint8Array | undefined> {
    if (this.weightsFolder !== undefined) return new WeightsFolder(this.weightsFolder, run).get(sha256);
    return (await this.redis.getBuffer(runKeys(run).weights(sha256))) ?? undefined;
  }

  work(run: string, worker: string, handle: (payload: Uint8Array) => Promise<Uint8Array>): WorkSession {
    const { leaseMs } = this.times;
    const bullWorker = new this.bullmq.Worker<{ readonly payload: string }>(
      QUEUE,
      async ({ id, data }) => {
        const payload = await handle(Buffer.from(data.payload, "base64"));
        await this.redis.set(runKeys(run).answer(id!, worker), Buffer.from(payload), "EX", KEEP_SECONDS);
        return { worker };
      },
      {
        connection: this.redis,
        prefix: runPrefix(run),
        name: worker,
        concurrency: 1,
        lockDuration: leaseMs,
        stalledInterval: leaseMs / 2,
        maxStalledCount: MAX_LOSSES - 1,
        drainDelay: blockingSeconds(this.times),
      },
    );
    bullWorker.on("error", () => {});
    const { lease, setup, refused } = runKeys(run);
    let timer: NodeJS.Timeout | undefined;
    const ended = new Promise<void>((resolve) => {
      let missingSince: number | undefined;
      const check = async () => {
        const state = await this.redis.eval(RUN_STATE, 3, setup, refused, lease, worker);
        if (state === 0) return resolve();
        missingSince = state === 2 ? undefined : (missingSince ?? performance.now());
        if (missingSince !== undefined && performance.now() - missingSince > leaseMs) resolve();
      };
      timer = setInterval(() => void check().catch(() => {}), leaseMs / 10);
    });
    return {
      ended,
      close: async () => {
        clearInterval(timer);
        await bullWorker.close();
      },
    };
  }

  async listWorkers(): Promise<readonly WorkerInfo[]> {
    return listRedisWorkers(this.redis);
  }

  async listQueues(): Promise<readonly QueueCounts[]> {
    const queues: QueueCounts[] = [];
    for (const run of (await this.redis.smembers(RUNS_KEY)).toSorted()) {
      const queue = new this.bullmq.Queue(QUEUE, { connection: this.redis, prefix: runPrefix(run) });
      const { waiting, active, failed } = await queue.getJobCounts("waiting", "active", "failed");
      queues.push({ run, waiting, active, setAside: failed });
      await queue.close();
    }
    return queues;
  }

  async close(worker: string): Promise<void> {
    // A worker ends also while the server is away.
    if (this.redis.status === "ready") await this.redis.del(workerKey(worker));
    this.redis.disconnect();
  }
}

/** Returns the workers with a sign of life. */
export async function listRedisWorkers(redis: Redis): Promise<readonly WorkerInfo[]> {
  const workers: WorkerInfo[] = [];
  let cursor = "0";
  do {
    const [next, keys] = await redis.scan(cursor, "MATCH", WORKER_KEYS, "COUNT", 1000);
    cursor = next;
    if (keys.length === 0) continue;
    for (const text of await redis.mget(keys)) if (text !== null) workers.push(JSON.parse(text) as WorkerInfo);
  } while (cursor !== "0");
  return workers.toSorted((a, b) => (a.name < b.name ? -1 : 1));
}
