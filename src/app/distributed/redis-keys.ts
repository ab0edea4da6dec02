import { invalidArgument, LlamaGymError } from "../../core/errors.js";
import type { Redis } from "ioredis";
import type { QueueTimes } from "./job-queue.js";

/** Name of the queue within the prefix of its run. */
export const QUEUE = "rollouts";

/** Time that Redis may take to accept the first connection. */
const CONNECT_TIMEOUT_MS = 10_000;

/**
 * A process that was busy for this long must not lose its connection; the lease is shorter in tests
 * only.
 */
const MIN_SOCKET_TIMEOUT_MS = 5000;

/** Keys of a run whose learner never returned are removed after this time. */
export const KEEP_SECONDS = 7 * 24 * 3600;

/** Keys of all runs and workers. */
export const RUNS_KEY = "llamagym:runs";
export const workerKey = (name: string): string => `llamagym:workers:${name}`;
export const WORKER_KEYS = workerKey("*");

/** Prefix of the keys of a run. */
export const runPrefix = (run: string): string => `llamagym:run:${run}`;

/** Keys of a run. */
export const runKeys = (run: string) => ({
  setup: `${runPrefix(run)}:setup`,
  lease: `${runPrefix(run)}:lease`,
  fence: `${runPrefix(run)}:fence`,
  refused: `${runPrefix(run)}:refused`,
  weights: (sha256: string) => `${runPrefix(run)}:weights:${sha256}`,
  /**
   * Answer of a worker to a job, stored apart from the job, because BullMQ also keeps what a job
   * returns in its events.
   */
  answer: (id: string, worker: string) => `${runPrefix(run)}:answers:${id}:${worker}`,
});

/** Names a server without its credentials. */
function describeServer(url: string): string {
  const { protocol, host } = new URL(url);
  return `${protocol}//${host}`;
}

/** Longest time that a command may wait for jobs or events before its next attempt. */
export const blockingSeconds = ({ leaseMs }: QueueTimes): number => Math.min(10_000, leaseMs / 4) / 1000;

/**
 * Connects to Redis. Commands wait for a lost connection to return. A connection without an answer
 * within the lease, such as one to a machine without power, is opened again.
 * @throws INVALID_ARGUMENT for another URL, HUB_UNREACHABLE without a server, without its password.
 */
export async function connectRedis(url: string, { leaseMs }: QueueTimes): Promise<Redis> {
  if (!/^rediss?:\/\/./.test(url) || !URL.canParse(url))
    throw invalidArgument("The address of Redis must be redis://HOST:PORT or rediss://HOST:PORT.");
  const { Redis } = await import("ioredis");
  const password = new URL(url).password === "" ? process.env.LLAMAGYM_REDIS_PASSWORD : undefined;
  const credentials = password === undefined ? {} : { password };
  const probe = new Redis(url, {
    ...credentials,
    lazyConnect: true,
    retryStrategy: () => null,
    connectTimeout: CONNECT_TIMEOUT_MS,
  });
  let cause = "";
  probe.on("error", (error: Error) => (cause = error.message));
  try {
    await probe.connect();
    await probe.ping();
  } catch (error) {
    const reason = cause === "" && error instanceof Error ? error.message : cause;
    throw new LlamaGymError(
      "HUB_UNREACHABLE",
      `Redis at ${describeServer(url)} does not answer: ${reason}. Start redis-server, or correct the address.`,
    );
  } finally {
    probe.disconnect();
  }
  const redis = new Redis(url, {
    ...credentials,
    maxRetriesPerRequest: null,
    connectTimeout: CONNECT_TIMEOUT_MS,
    socketTimeout: Math.max(MIN_SOCKET_TIMEOUT_MS, leaseMs),
    retryStrategy: (times) => Math.min(100 * times, 2000),
  });
  // A lost connection is not an error of the run: commands are sent again when it returns.
  redis.on("error", () => {});
  return redis;
}
