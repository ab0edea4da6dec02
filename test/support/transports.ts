import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, afterEach, beforeAll } from "vitest";
import { JOB_LOG_FILE, type JobLogLine } from "../../src/app/distributed/job-log-line.js";
import type { WorkerQueue, WorkSession } from "../../src/app/distributed/job-queue.js";
import { openTransport, openWorkerQueue, type WorkersAddress } from "../../src/app/distributed/open-transport.js";
import { runWorker } from "../../src/app/distributed/rollout-worker.js";
import { openRunModel } from "../../src/app/runs/open-model.js";
import { makeTextAgent, readTextEnv } from "../../src/app/runs/make-text-agent.js";
import { RunEnv } from "../../src/app/runs/run-env.js";
import { resolveTrainConfig } from "../../src/app/runs/run-settings.js";
import { stream } from "../../src/core/random/streams.js";
import type { LanguageModel } from "../../src/generation/language-model.js";
import type { GradientTransport } from "../../src/rl/algorithms/update/gradient-transport.js";
import { InProcessTransport, type RolloutJob, type RolloutTransport } from "../../src/rl/rollout/rollout-job.js";
import { hasRedis, RedisServer } from "./redis-server.js";
import { TcpProxy } from "./tcp-proxy.js";

/** Far above what a busy machine delays signs of life. */
export const times = { leaseMs: 10_000 };
/** For tests that wait for a lost lease. */
export const shortTimes = { leaseMs: 1000 };
export const files = { threads: 1, device: "cpu" as const };
export const config = resolveTrainConfig({ env: "Blackjack-v1", threads: 1, device: "cpu" });
const createEnv = async () => new RunEnv(config).open();

export const info = {
  version: "0",
  host: "",
  pid: 0,
  threads: 1,
  processor: "",
  memoryGb: 1,
  startedAt: "",
  status: "working",
  jobs: 0,
  turns: 0,
  turnsPerSecond: 0,
} as const;

export const createJob = (turns = 6, seed = 1): RolloutJob => ({
  weightsVersion: 0,
  firstSlot: 0,
  slots: [0, 1].map((index) => ({
    state: { env: null, hasStarted: false, random: stream(seed, "rollout", index).getState(), episode: null },
    firstSeed: seed + index,
    record: index === 0,
  })),
  work: { turns },
});

export const readJobLog = async (run: string) =>
  (await readFile(join(run, JOB_LOG_FILE), "utf8"))
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as JobLogLine);

/** Reads until something is there. */
export async function waitFor<Value>(read: () => Promise<readonly Value[]>): Promise<readonly Value[]> {
  for (;;) {
    const values = await read();
    if (values.length > 0) return values;
    await sleep(50);
  }
}

/**
 * A model, a folder, a Redis server where there is one, and what connects learners and workers; for
 * the tests of one file.
 */
export function useTransports() {
  let redis: RedisServer | undefined;
  let folder: string;
  let model: LanguageModel;
  let numRuns = 0;
  const cleanups: (() => Promise<unknown>)[] = [];
  const warnings: string[] = [];

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "transports-"));
    if (hasRedis) redis = await RedisServer.start();
    model = await openRunModel(config, { valueHead: { kind: "linear", dropout: 0 } });
  });
  afterEach(async () => {
    warnings.length = 0;
    for (const cleanup of cleanups.splice(0).toReversed()) await cleanup();
  });
  afterAll(async () => {
    await model.close();
    await redis?.stop();
    await rm(folder, { recursive: true, force: true });
  });

  /** Path of a new run folder. */
  const nextRun = () => join(folder, `run-${++numRuns}`);

  const onWarning = (message: string) => void warnings.push(message);

  const openAgent = async (settings = config) =>
    makeTextAgent(model, await readTextEnv(await createEnv(), config.env), { ...settings, sftWarmStart: undefined });

  async function openInProcess(): Promise<RolloutTransport> {
    const agent = await openAgent();
    const { settings } = agent;
    const newEpisode = agent.newEpisode.bind(agent);
    const options = {
      model: model.causalLM,
      newEpisode: (random: Parameters<typeof newEpisode>[0]) => newEpisode(random),
    };
    return new InProcessTransport({ ...options, createEnv, settings, onWarning });
  }

  const addresses: Readonly<Record<string, (leases?: typeof times) => WorkersAddress>> = {
    "a shared directory": (leases = times) => ({ workersFolder: join(folder, "shared"), times: leases }),
    ...(hasRedis ? { Redis: (leases = times) => ({ redis: redis!.url, times: leases }) } : {}),
  };

  const openLearner = async (address: WorkersAddress, run = nextRun(), settings = config) =>
    openTransport(address, run, { config: settings, model, onWarning });

  /** Starts a worker in this process, with its own model. */
  async function startWorker(address: WorkersAddress, name: string): Promise<AbortController> {
    const controller = new AbortController();
    const { signal } = controller;
    const queue = await openWorkerQueue(address);
    const ended = runWorker({ queue, name, files, times, signal, onInfo: () => {}, onWarning });
    cleanups.push(async () => {
      controller.abort();
      await ended;
    });
    return controller;
  }

  /** Takes a job and does not answer it, as a worker that is slow or about to fail. */
  async function holdJob(address: WorkersAddress, name: string) {
    const proxy = address.redis === undefined ? undefined : await TcpProxy.start(redis!.port);
    const queue = await openWorkerQueue(proxy === undefined ? address : { ...address, redis: proxy.url });
    const announce = async () => queue.announce({ ...info, name }).catch(() => {});
    await announce();
    const heartbeat = setInterval(() => void announce(), address.times!.leaseMs / 4);
    const [open] = await waitFor(async () => queue.listRuns(name));
    let release: () => void = () => {};
    const released = new Promise<Uint8Array>((resolve) => (release = () => resolve(new Uint8Array())));
    let session: WorkSession | undefined;
    const taken = new Promise<void>((resolve) => {
      session = queue.work(open.run, name, async () => {
        resolve();
        return released;
      });
    });
    let isDead = false;
    const die = () => {
      isDead = true;
      clearInterval(heartbeat);
      proxy?.cut();
    };
    cleanups.push(async () => {
      if (isDead) proxy?.restore();
      const closed = session?.close();
      release();
      if (!isDead) await closed;
      clearInterval(heartbeat);
      await queue.close(name);
      await proxy?.stop();
    });
    return { taken, release, die };
  }

  /** Opens a worker's end, closed with the test. */
  async function openQueue(address: WorkersAddress, name: string): Promise<WorkerQueue> {
    const queue = await openWorkerQueue(address);
    cleanups.push(async () => queue.close(name));
    return queue;
  }

  /**
   * Two optimizer steps of several micro-batches; returns the trained values after them in
   * hexadecimal digits.
   */
  async function openGradientRun() {
    const settings = { ...config, gradientWorkers: true, microBatchTokens: 150, miniBatchSize: 8, numPpoEpochs: 1 };
    const { trajectories } = await (await openInProcess()).run(createJob(16));
    const { causalLM } = model;
    const before = (await causalLM.runtime.read(causalLM.parameters.values)).data as Float32Array;
    const initial = before.slice();
    cleanups.push(async () => {
      await causalLM.runtime.write(causalLM.parameters.values, initial);
      causalLM.markParametersChanged();
    });
    const update = async (transport?: GradientTransport) => {
      await causalLM.runtime.write(causalLM.parameters.values, initial);
      causalLM.markParametersChanged();
      const learner = await (await openAgent(settings)).getLearner();
      if (transport !== undefined) learner.useGradientTransport!(transport);
      const metrics = await learner.update(await learner.prepare(trajectories));
      const { data } = await causalLM.runtime.read(causalLM.parameters.values);
      await learner.release();
      return { metrics, values: Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString("hex") };
    };
    return { settings, update };
  }

  async function publish(transport: RolloutTransport): Promise<void> {
    const { data } = await model.causalLM.runtime.read(model.causalLM.parameters.values);
    await transport.publish({ version: 0, values: data as Float32Array });
  }

  /** Runs of a job, of its continuation, and of whole episodes. */
  async function runJobs(transport: RolloutTransport): Promise<unknown> {
    await publish(transport);
    const first = await transport.run(createJob());
    const slots = createJob().slots.map((slot, i) => ({ ...slot, state: first.states[i] }));
    const [second, episodes] = await Promise.all([
      transport.run({ ...createJob(), slots }),
      transport.run({
        ...createJob(),
        work: {
          episodes: [
            { seed: 5, group: 0 },
            { seed: 5, group: 0 },
            { seed: 6, group: 1 },
          ],
        },
      }),
    ]);
    return JSON.parse(JSON.stringify([first, second, episodes]));
  }

  return {
    addresses,
    warnings,
    onWarning,
    openInProcess,
    openLearner,
    startWorker,
    holdJob,
    openQueue,
    openGradientRun,
    publish,
    runJobs,
    nextRun,
    getFolder: () => folder,
    getModel: () => model,
    getRedis: () => redis!,
    /** Runs after the test, the last one first. */
    onCleanup: (cleanup: () => Promise<unknown>) => void cleanups.push(cleanup),
  };
}
