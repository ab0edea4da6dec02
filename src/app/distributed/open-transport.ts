import { randomUUID } from "node:crypto";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { invalidArgument } from "../../core/errors.js";
import type { LanguageModel } from "../../generation/index.js";
import { readJsonIfExists, writeJson } from "../../core/files/json-file.js";
import type { TrainConfig } from "../runs/run-settings.js";
import { DEFAULT_TIMES, type LearnerQueue, type QueueTimes, type WorkerQueue } from "./job-queue.js";
import { JobLog } from "./job-log.js";
import { QueueTransport } from "./queue-transport.js";
import { createSetup } from "./run-setup.js";

/**
 * Where workers are: a Redis server, a directory that all machines share, or Redis with trained
 * values in a directory.
 */
export interface WorkersAddress {
  readonly redis?: string;
  readonly workersFolder?: string;
  readonly times?: QueueTimes;
}

/** Shortens the lease, for tests. */
const LEASE_VARIABLE = "LLAMAGYM_WORKER_LEASE_MS";

/** An empty variable is not set. */
const readVariable = (name: string) => (process.env[name] === "" ? undefined : process.env[name]);

/** Returns the given address with the times that apply; undefined for none. */
export function resolveWorkers({
  redis,
  workersFolder,
}: WorkersAddress): (Required<Pick<WorkersAddress, "times">> & WorkersAddress) | undefined {
  if (redis === undefined && workersFolder === undefined) return undefined;
  const leaseMs = Number(readVariable(LEASE_VARIABLE) ?? DEFAULT_TIMES.leaseMs);
  if (!(leaseMs > 0)) throw invalidArgument(`${LEASE_VARIABLE} must be a number of milliseconds above 0.`);
  return { redis, workersFolder, times: { leaseMs } };
}

/**
 * As `resolveWorkers`, with the address of LLAMAGYM_REDIS_URL for none. @throws INVALID_ARGUMENT
 * without one.
 */
export function requireWorkers({
  redis,
  workersFolder,
}: WorkersAddress): Required<Pick<WorkersAddress, "times">> & WorkersAddress {
  const isGiven = redis !== undefined || workersFolder !== undefined;
  const address = resolveWorkers(isGiven ? { redis, workersFolder } : { redis: readVariable("LLAMAGYM_REDIS_URL") });
  if (address !== undefined) return address;
  throw invalidArgument("The address of the runs is missing: give --redis URL or --workers-folder FOLDER.");
}

/**
 * Opens the learner's end for a run, whose id is stored in its folder. @throws INVALID_STATE if
 * another process trains the run.
 */
export async function openTransport(
  { redis, workersFolder, times = DEFAULT_TIMES }: WorkersAddress,
  folder: string,
  {
    config,
    model,
    onWarning,
  }: { readonly config: TrainConfig; readonly model: LanguageModel; readonly onWarning: (message: string) => void },
): Promise<QueueTransport> {
  const run = await readRunId(folder);
  const setup = await createSetup(config, model);
  let queue: LearnerQueue;
  if (redis !== undefined) {
    const { RedisLearnerQueue } = await import("./redis-learner-queue.js");
    queue = await RedisLearnerQueue.open(redis, run, setup, times, workersFolder);
  } else {
    const { DirectoryLearnerQueue } = await import("./directory-learner-queue.js");
    queue = await DirectoryLearnerQueue.open(workersFolder!, run, setup, times);
  }
  const setAside = async (id: string, message: object) => {
    const path = join(folder, "set-aside", `${id}.json`);
    await mkdir(join(folder, "set-aside"), { recursive: true });
    await writeJson(path, JSON.parse(JSON.stringify(message)) as Record<string, never>);
    return path;
  };
  const { vocabSize } = model.causalLM.config;
  const log = new JobLog(folder, onWarning);
  return new QueueTransport({ queue, vocabSize, run, onWarning, setAside, log });
}

/** Opens a worker's end. */
export async function openWorkerQueue({
  redis,
  workersFolder,
  times = DEFAULT_TIMES,
}: WorkersAddress): Promise<WorkerQueue> {
  if (redis !== undefined)
    return (await import("./redis-worker-queue.js")).RedisWorkerQueue.open(redis, times, workersFolder);
  return new (await import("./directory-worker-queue.js")).DirectoryWorkerQueue(workersFolder!, times);
}

/** Returns the run's id, which a resumed run keeps. */
async function readRunId(folder: string): Promise<string> {
  const path = join(folder, "workers.json");
  const saved = await readJsonIfExists(path);
  if (typeof saved?.run === "string" && /^[\w-]{1,64}$/.test(saved.run)) return saved.run;
  const run = randomUUID();
  await mkdir(folder, { recursive: true });
  await writeJson(path, { run });
  return run;
}
