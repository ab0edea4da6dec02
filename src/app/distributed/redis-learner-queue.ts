import type { Queue, QueueEvents } from "bullmq";
import type { Redis } from "ioredis";
import { setTimeout as sleep } from "node:timers/promises";
import { errorMessage, LlamaGymError } from "../../core/errors.js";
import { formatBytes } from "../../core/format.js";
import {
  JobLostError,
  MAX_LOSSES,
  URGENT,
  type JobAnswer,
  type LearnerQueue,
  type PendingJob,
  type QueueTimes,
  type WorkerInfo,
} from "./job-queue.js";
import { WeightsFolder } from "./directory-files.js";
import { blockingSeconds, connectRedis, KEEP_SECONDS, QUEUE, runKeys, runPrefix, RUNS_KEY } from "./redis-keys.js";
import { listRedisWorkers } from "./redis-worker-queue.js";

/**
 * Weights in Redis; above this, one server cannot feed many workers, and a shared directory is the
 * better place.
 */
const MAX_WEIGHT_BYTES = 256 * 2 ** 20;
/** What the learner reads of a job; its data would come back with every look. */
const READ_FIELDS = ["timestamp", "finishedOn", "returnvalue", "failedReason"] as const;

const ACQUIRE = `if redis.call('exists', KEYS[1]) == 1 then return 0 end
local token = redis.call('incr', KEYS[2])
redis.call('set', KEYS[1], token, 'px', ARGV[1])
return token`;
/** A lease that ended with the server may be renewed unless another learner has held it since. */
const RENEW = `local holder = redis.call('get', KEYS[1])
if holder == ARGV[1] or (not holder and redis.call('get', KEYS[2]) == ARGV[1]) then
  redis.call('set', KEYS[1], ARGV[1], 'px', ARGV[2])
  return 1
end
return 0`;
const RELEASE = `if redis.call('get', KEYS[1]) == ARGV[1] then redis.call('del', KEYS[1]) end`;
const PUT = `if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('set', KEYS[2], ARGV[2], 'ex', ARGV[3])
return 1`;

/**
 * The learner's end of a run's queue in Redis. A lease with a fencing token keeps other learners
 * out.
 */
export class RedisLearnerQueue implements LearnerQueue {
  private readonly pending = new Map<string, PendingJob>();
  private readonly timers: NodeJS.Timeout[] = [];
  private readonly stored = new Set<string>();
  private failure: LlamaGymError | undefined;

  private constructor(
    private readonly redis: Redis,
    private readonly run: string,
    private readonly token: string,
    private readonly queue: Queue,
    private readonly events: QueueEvents,
    private readonly times: QueueTimes,
    private readonly files: WeightsFolder | undefined,
  ) {}

  /**
   * Writes trained values to a folder, if one is given. @throws INVALID_STATE if another learner
   * has the run, and as `connectRedis`.
   */
  static async open(
    url: string,
    run: string,
    setup: string,
    times: QueueTimes,
    weightsFolder?: string,
  ): Promise<RedisLearnerQueue> {
    const redis = await connectRedis(url, times);
    try {
      const { Queue, QueueEvents } = await import("bullmq");
      const { setup: setupKey, lease, fence } = runKeys(run);
      const deadline = performance.now() + 1.5 * times.leaseMs;
      let token = 0;
      while ((token = (await redis.eval(ACQUIRE, 2, lease, fence, times.leaseMs)) as number) === 0) {
        if (performance.now() > deadline)
          throw new LlamaGymError(
            "INVALID_STATE",
            "Another process trains this run. Stop it before you resume the run here.",
          );
        await sleep(times.leaseMs / 10);
      }
      await redis.set(setupKey, setup, "EX", KEEP_SECONDS);
      await redis.sadd(RUNS_KEY, run);
      const options = { connection: redis, prefix: runPrefix(run) };
      const queue = new Queue(QUEUE, options);
      const events = new QueueEvents(QUEUE, { ...options, blockingTimeout: 1000 * blockingSeconds(times) });
      queue.on("error", () => {});
      events.on("error", () => {});
      const files = weightsFolder === undefined ? undefined : new WeightsFolder(weightsFolder, run);
      const opened = new RedisLearnerQueue(redis, run, String(token), queue, events, times, files);
      opened.start();
      return opened;
    } catch (error) {
      redis.disconnect();
      throw error;
    }
  }

  async putWeights(sha256: string, values: Uint8Array): Promise<void> {
    this.throwIfFailed();
    if (this.files !== undefined) {
      await this.renew();
      this.throwIfFailed();
      await this.files.put(sha256, values);
      return void this.stored.add(sha256);
    }
    if (values.length > MAX_WEIGHT_BYTES)
      throw new LlamaGymError(
        "INVALID_ARGUMENT",
        `The trained values have ${formatBytes(values.length)}, but Redis carries at most ${formatBytes(MAX_WEIGHT_BYTES)}. Train a smaller adapter, or add --workers-folder.`,
      );
    const { lease, weights } = runKeys(this.run);
    const isStored = await this.write(async () =>
      this.redis.eval(PUT, 2, lease, weights(sha256), this.token, Buffer.from(values), KEEP_SECONDS),
    );
    if (isStored !== 1) throw this.fail(takenOver());
    this.stored.add(sha256);
  }

  async removeWeights(sha256: string): Promise<void> {
    this.stored.delete(sha256);
    if (this.files === undefined) await this.redis.unlink(runKeys(this.run).weights(sha256));
    else await this.files.remove(sha256);
  }

  async submit(id: string, payload: Uint8Array): Promise<JobAnswer> {
    this.throwIfFailed();
    const answer = new Promise<JobAnswer>((resolve, reject) => {
      this.pending.set(id, { payload, resolve, reject });
    });
    // The answer may be rejected while the job is added.
    answer.catch(() => {});
    await this.add(id, payload);
    await this.settle(id);
    return answer;
  }

  async remove(id: string): Promise<void> {
    const worker = readWorker(await this.redis.hget(this.queue.toKey(id), "returnvalue"));
    await this.queue.remove(id);
    if (worker !== undefined) await this.redis.unlink(runKeys(this.run).answer(id, worker));
  }

  async refuse(worker: string, reason: string): Promise<void> {
    await this.redis.hset(runKeys(this.run).refused, worker, reason);
  }

  async listWorkers(): Promise<readonly WorkerInfo[]> {
    return listRedisWorkers(this.redis);
  }

  async close(isFinished: boolean): Promise<void> {
    this.timers.forEach((timer) => clearInterval(timer));
    this.fail(new LlamaGymError("INVALID_STATE", "The run is closed."));
    const { setup, lease, fence, refused, answer } = runKeys(this.run);
    await this.events.close();
    if (isFinished) {
      await this.redis.srem(RUNS_KEY, this.run);
      for (const hash of this.stored) await this.removeWeights(hash);
      await this.redis.unlink(setup, fence, refused);
      // Workers may still hold jobs of a rollout that was not needed any more.
      await this.queue.obliterate({ force: true }).catch(() => {});
      for await (const keys of this.redis.scanStream({ match: answer("*", "*"), count: 1000 }) as AsyncIterable<
        string[]
      >)
        if (keys.length > 0) await this.redis.unlink(keys);
    }
    await this.redis.eval(RELEASE, 1, lease, this.token);
    await this.queue.close();
    this.redis.disconnect();
  }

  private start(): void {
    this.events.on("completed", ({ jobId }) => void this.settle(jobId).catch(() => {}));
    this.events.on("failed", ({ jobId }) => void this.settle(jobId).catch(() => {}));
    const every = (ms: number, task: () => Promise<void>) =>
      this.timers.push(setInterval(() => void task().catch(() => {}), ms));
    every(this.times.leaseMs / 4, async () => this.renew());
    // An event may be lost with the connection.
    every(this.times.leaseMs / 4, async () => {
      for (const id of this.pending.keys()) await this.settle(id);
    });
  }

  private async renew(): Promise<void> {
    const { lease, fence, setup } = runKeys(this.run);
    if ((await this.redis.eval(RENEW, 2, lease, fence, this.token, this.times.leaseMs)) !== 1) this.fail(takenOver());
    await this.redis.expire(setup, KEEP_SECONDS);
  }

  private async add(id: string, payload: Uint8Array): Promise<void> {
    const options = { jobId: id, attempts: MAX_LOSSES, lifo: id.startsWith(URGENT) };
    const data = { payload: Buffer.from(payload).toString("base64") };
    await this.write(async () => this.queue.add("rollout", data, options));
  }

  /** Resolves or rejects a job that has ended, and adds one again that Redis has lost. */
  private async settle(id: string): Promise<void> {
    const pending = this.pending.get(id);
    if (pending === undefined) return;
    const [addedAt, finishedOn, answer, failedReason] = await this.redis.hmget(this.queue.toKey(id), ...READ_FIELDS);
    if (!this.pending.has(id)) return;
    if (addedAt === null) return this.add(id, pending.payload);
    if (finishedOn === null) return;
    const worker = readWorker(answer);
    if (worker === undefined) {
      this.pending.delete(id);
      return pending.reject(new JobLostError(failedReason ?? "the answer is empty"));
    }
    const payload = await this.redis.getBuffer(runKeys(this.run).answer(id, worker));
    if (!this.pending.has(id)) return;
    if (payload === null) {
      await this.queue.remove(id);
      return this.add(id, pending.payload);
    }
    this.pending.delete(id);
    pending.resolve({ worker, payload });
  }

  /** Names the cause where Redis refuses a write, as a full one does. */
  private async write<Result>(command: () => Promise<Result>): Promise<Result> {
    try {
      return await command();
    } catch (error) {
      if (!/OOM|MISCONF|READONLY/.test(errorMessage(error))) throw error;
      throw new LlamaGymError(
        "RUNTIME_FAILED",
        `Redis refused a write: ${errorMessage(error)} Raise its maxmemory (docs/scale.md), then resume the run.`,
        { cause: error },
      );
    }
  }

  private throwIfFailed(): void {
    if (this.failure !== undefined) throw this.failure;
  }

  private fail(error: LlamaGymError): LlamaGymError {
    this.failure ??= error;
    for (const { reject } of this.pending.values()) reject(this.failure);
    this.pending.clear();
    return this.failure;
  }
}

/** Returns the worker of an answer that BullMQ stores as JSON. */
function readWorker(answer: string | null): string | undefined {
  const { worker } = JSON.parse(answer ?? "{}") as { readonly worker?: unknown };
  return typeof worker === "string" ? worker : undefined;
}

const takenOver = () => new LlamaGymError("INVALID_STATE", "Another process has taken over this run.");
