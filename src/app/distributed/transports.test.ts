import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { hasRedis, RedisServer } from "../../../test/support/redis-server.js";
import { TcpProxy } from "../../../test/support/tcp-proxy.js";
import { make, register } from "../../envs/index.js";
import type { LanguageModel } from "../../generation/language-model.js";
import type { GradientTransport } from "../../rl/algorithms/update/gradient-transport.js";
import { InProcessTransport, type RolloutJob, type RolloutTransport } from "../../rl/rollout/rollout-job.js";
import { stream } from "../../core/random/streams.js";
import { openRunModel } from "../runs/open-model.js";
import { createEnvFactory, makeTextAgent, requireTextEnv } from "../runs/make-text-agent.js";
import { resolveTrainConfig } from "../runs/run-settings.js";
import { JOB_LOG_FILE, type JobLogLine } from "./job-log.js";
import type { WorkerQueue, WorkSession } from "./job-queue.js";
import { openTransport, openWorkerQueue, type WorkersAddress } from "./open-transport.js";
import { runWorker } from "./rollout-worker.js";
import { createSetup, openSetup } from "./run-setup.js";
import { encodeMessage } from "./wire.js";

/** Far above what a busy machine delays signs of life. */
const times = { leaseMs: 10_000 };
/** For tests that wait for a lost lease. */
const shortTimes = { leaseMs: 1000 };
const files = { threads: 1, device: "cpu" as const };
const config = resolveTrainConfig({ env: "Blackjack-v1", threads: 1, device: "cpu" });
const createEnv = createEnvFactory(config);

let redis: RedisServer | undefined;
let folder: string;
let model: LanguageModel;
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

const onWarning = (message: string) => void warnings.push(message);

const openAgent = async (settings = config) =>
  makeTextAgent(model, await requireTextEnv(createEnv, config.env), { ...settings, sftWarmStart: undefined });

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

let numRuns = 0;
const addresses: Readonly<Record<string, (leases?: typeof times) => WorkersAddress>> = {
  "a shared directory": (leases = times) => ({ workersFolder: join(folder, "shared"), times: leases }),
  ...(hasRedis ? { Redis: (leases = times) => ({ redis: redis!.url, times: leases }) } : {}),
};

const openLearner = async (address: WorkersAddress, run = join(folder, `run-${++numRuns}`), settings = config) =>
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

const readJobLog = async (run: string) =>
  (await readFile(join(run, JOB_LOG_FILE), "utf8"))
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as JobLogLine);

/** Opens a worker's end, closed with the test. */
async function openQueue(address: WorkersAddress, name: string): Promise<WorkerQueue> {
  const queue = await openWorkerQueue(address);
  cleanups.push(async () => queue.close(name));
  return queue;
}

const info = {
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

const createJob = (turns = 6, seed = 1): RolloutJob => ({
  weightsVersion: 0,
  firstSlot: 0,
  slots: [0, 1].map((index) => ({
    state: { env: null, hasStarted: false, random: stream(seed, "rollout", index).getState(), episode: null },
    firstSeed: seed + index,
    record: index === 0,
  })),
  work: { turns },
});

/** Two optimizer steps of several micro-batches; returns the trained values after them in hexadecimal digits. */
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

describe.each(Object.entries(addresses))("a transport over %s", (_, getAddress) => {
  it("returns the results of this process, bit for bit", async () => {
    const expected = await runJobs(await openInProcess());
    const transport = await openLearner(getAddress());
    cleanups.push(async () => transport.close(true));
    await startWorker(getAddress(), "worker-1");
    expect(await runJobs(transport)).toEqual(expected);
  });

  it("sums gradients to the bytes of this process, with one worker and with two", async () => {
    const { settings, update } = await openGradientRun();
    const expected = await update();
    expect(expected.metrics.num_optimizer_steps).toBe(2);
    const run = join(folder, `run-${++numRuns}`);
    const transport = await openLearner(getAddress(), run, settings);
    cleanups.push(async () => transport.close(true));
    await startWorker(getAddress(), "gradients-1");
    expect(await update(transport)).toEqual(expected);
    await startWorker(getAddress(), "gradients-2");
    expect(await update(transport)).toEqual(expected);
    const log = await readJobLog(run);
    expect(log.length).toBeGreaterThan(4);
    expect(log.every(({ work, outcome }) => work === "gradients" && outcome === "used")).toBe(true);
  });

  it("gives the gradient job of a lost worker to another, and refuses garbage", async () => {
    const { settings, update } = await openGradientRun();
    const expected = await update();
    const transport = await openLearner(getAddress(shortTimes), join(folder, `run-${++numRuns}`), settings);
    cleanups.push(async () => transport.close(true));
    const updated = update(transport);
    const victim = await holdJob(getAddress(shortTimes), "gradients-victim");
    await victim.taken;
    victim.die();
    // Its answer is empty.
    const liar = await holdJob(getAddress(shortTimes), "gradients-liar");
    await liar.taken;
    liar.release();
    await startWorker(getAddress(shortTimes), "gradients-3");
    expect(await updated).toEqual(expected);
    expect(warnings.join()).toMatch(/Worker gradients-liar returned an unusable result/);
  });

  it("runs a job once that a learner submits again when it returns", async () => {
    const address = getAddress();
    const run = join(folder, `run-${++numRuns}`);
    const transport = await openLearner(address, run);
    await publish(transport);
    const forgotten = transport.run(createJob()).catch(() => {});
    await sleep(100);
    await transport.close();
    await forgotten;
    const resumed = await openLearner(address, run);
    cleanups.push(async () => resumed.close(true));
    await publish(resumed);
    const answers = resumed.run(createJob());
    await startWorker(address, "worker-2");
    await answers;
    await resumed.run(createJob(8));
    expect(await waitFor(async () => [await countJobs(address)].filter((count) => count >= 2))).toEqual([2]);
  });

  it("refuses a worker that returns garbage, and repeats the job", async () => {
    const address = getAddress();
    const transport = await openLearner(address);
    cleanups.push(async () => transport.close(true));
    await publish(transport);
    const answer = transport.run(createJob());
    const liar = await openQueue(address, "liar");
    await liar.announce({ ...info, name: "liar" });
    const [open] = await waitFor(async () => liar.listRuns("liar"));
    const session = liar.work(open.run, "liar", async () => encodeMessage({ result: { trajectories: [] } }));
    await session.ended;
    await session.close();
    expect(await liar.listRuns("liar")).toEqual([]);
    expect(await liar.readRefusal(open.run, "liar")).toBeTruthy();
    expect(warnings.join()).toMatch(/Worker liar returned an unusable result/);
    await startWorker(address, "worker-3");
    expect((await answer).states).toHaveLength(2);
  });

  it("sets a job aside that fails on every worker, with its input", async () => {
    const transport = await openLearner(getAddress());
    cleanups.push(async () => transport.close(true));
    await publish(transport);
    await startWorker(getAddress(), "worker-4");
    const job = createJob();
    const state = { ...job.slots[0].state, hasStarted: true, env: { random: job.slots[0].state.random, state: 5 } };
    await expect(transport.run({ ...job, slots: [{ state, firstSeed: 0, record: false }] })).rejects.toThrow(
      /A job was set aside: .*set-aside/,
    );
    const queue = await openQueue(getAddress(), "reader");
    const read = async () =>
      (await queue.listWorkers()).flatMap(({ name, lastError }) => (name === "worker-4" && lastError) || []);
    expect((await waitFor(read))[0]).not.toBe("");
  });

  it("gives a slow worker fewer jobs, and logs who completed them", async () => {
    const run = join(folder, `run-${++numRuns}`);
    const transport = await openLearner(getAddress(), run);
    cleanups.push(async () => transport.close(true));
    await publish(transport);
    const jobs = Array.from({ length: 6 }, async (_, i) => transport.run(createJob(2, 10 + i)));
    const slow = await holdJob(getAddress(), "slow");
    await slow.taken;
    await startWorker(getAddress(), "fast");
    const [log] = await waitFor(async () => [await readJobLog(run)].filter(({ length }) => length >= 5));
    for (const { worker, outcome, version, step, time, queued, seconds = -1, pending } of log.slice(0, 5)) {
      expect([worker, outcome, version, step]).toEqual(["fast", "used", 0, 0]);
      expect([time >= queued, seconds > 0, pending >= 2, pending <= 6]).toEqual([true, true, true, true]);
    }
    // Garbage, so that the fast worker does this job, too.
    slow.release();
    expect(await Promise.all(jobs)).toHaveLength(6);
    const used = (await readJobLog(run)).filter(({ outcome }) => outcome === "used");
    expect(used.map(({ worker }) => worker)).toEqual(Array(6).fill("fast"));
  });

  it("sets a job aside that three workers did not survive", async () => {
    const transport = await openLearner(getAddress(shortTimes));
    cleanups.push(async () => transport.close(true));
    await publish(transport);
    const answer = transport.run(createJob());
    answer.catch(() => {});
    for (let i = 0; i < 3; i++) {
      const victim = await holdJob(getAddress(shortTimes), `victim-${i}`);
      // A worker of a busy machine may lose the job earlier.
      await Promise.race([victim.taken, answer.catch(() => {})]);
      victim.die();
    }
    // Workers find jobs of lost workers in Redis.
    await holdJob(getAddress(shortTimes), "survivor");
    await expect(answer).rejects.toThrow(/A job was set aside: .*set-aside/);
  });

  it("leaves a job that does not return to others, and ends the worker", async () => {
    let endHang: () => void = () => {};
    const hang = new Promise<never>((_, reject) => (endHang = () => reject(new Error("The test is over."))));
    hang.catch(() => {});
    const env = `Hanging-v${++numRuns}`;
    const reset = async () => hang;
    register({ id: env, disableEnvChecker: true, entryPoint: () => Object.assign(make("Blackjack-v1"), { reset }) });
    const hanging = { ...config, env, callTimeoutSeconds: 0, jobTimeoutSeconds: 0.2 };
    const options = { config: hanging, model, onWarning };
    const transport = await openTransport(getAddress(), join(folder, `run-${numRuns}`), options);
    cleanups.push(async () => transport.close(true));
    await publish(transport);
    transport.run(createJob()).catch(() => {});
    const queue = await openWorkerQueue(getAddress());
    const { signal } = new AbortController();
    const worker = runWorker({ queue, name: "hung", files, times, signal, onInfo: () => {}, onWarning });
    await expect(worker).rejects.toThrow(/A job took longer than 0.2 s/);
    await (
      await holdJob(getAddress(), "other")
    ).taken;
    endHang();
  });

  it("rejects a second learner", async () => {
    const run = join(folder, `run-${++numRuns}`);
    const transport = await openLearner(getAddress(shortTimes), run);
    cleanups.push(async () => transport.close(true));
    await expect(openLearner(getAddress(shortTimes), run)).rejects.toThrow("Another process trains this run.");
  });
});

it("names the version that a worker needs", async () => {
  const setup = JSON.parse(await createSetup(config, model)) as object;
  const older = JSON.stringify({ ...setup, version: "0.0.1" });
  await expect(openSetup(older, files, onWarning)).rejects.toThrow(
    /The run is of llamagym 0.0.1, this worker of .*Install the same version/,
  );
});

describe("a shared directory", () => {
  it("repeats the job of a worker that was restarted under its name", async () => {
    const address = addresses["a shared directory"]();
    const transport = await openLearner(address);
    cleanups.push(async () => transport.close(true));
    await publish(transport);
    const answer = transport.run(createJob());
    const ended = await openWorkerQueue(address);
    await ended.announce({ ...info, name: "worker-5" });
    const [open] = await waitFor(async () => ended.listRuns("worker-5"));
    await new Promise<void>((resolve) => {
      ended.work(open.run, "worker-5", async () => {
        resolve();
        return new Promise(() => {});
      });
    });
    await startWorker(address, "worker-5");
    expect((await answer).states).toHaveLength(2);
  });
});

describe.runIf(hasRedis)("Redis", () => {
  it("stops a learner that another one has replaced", async () => {
    const run = join(folder, `run-${++numRuns}`);
    const transport = await openLearner({ redis: redis!.url, times }, run);
    const client = new Redis(redis!.url);
    const [lease] = await client.keys("llamagym:run:*:lease");
    await client.set(lease, "999", "PX", 60_000);
    await client.set(lease.replace("lease", "fence"), "999");
    await expect(publish(transport)).rejects.toThrow("Another process has taken over this run.");
    await transport.close();
    await client.del(lease);
    client.disconnect();
  });

  it("carries trained values through a directory as well", async () => {
    const address = { redis: redis!.url, workersFolder: join(folder, "values"), times };
    const expected = await runJobs(await openInProcess());
    const transport = await openLearner(address);
    await startWorker(address, "worker-7");
    expect(await runJobs(transport)).toEqual(expected);
    const files = async () =>
      (await readdir(address.workersFolder, { recursive: true })).filter((name) => /[0-9a-f]{64}$/.test(name));
    const client = new Redis(redis!.url);
    expect([(await files()).length, await client.keys("*:weights:*")]).toEqual([1, []]);
    client.disconnect();
    await transport.close(true);
    expect(await files()).toEqual([]);
  });

  it("continues after the server was killed", async () => {
    const transport = await openLearner({ redis: redis!.url, times });
    cleanups.push(async () => transport.close(true));
    await publish(transport);
    await redis!.kill();
    const answer = transport.run(createJob());
    await sleep(200);
    await redis!.restart();
    await startWorker({ redis: redis!.url, times }, "worker-5");
    expect((await answer).states).toHaveLength(2);
  });

  it.each(["cut", "halfOpen"] as const)("continues over a slow network after it was %s", async (fault) => {
    const proxies = await Promise.all([1, 2].map(async () => TcpProxy.start(redis!.port, { delayMs: 10 })));
    for (const proxy of proxies) cleanups.push(async () => proxy.stop());
    const [learnerSide, workerSide] = proxies;
    const transport = await openLearner({ redis: learnerSide.url, times });
    cleanups.push(async () => transport.close(true));
    await publish(transport);
    await startWorker({ redis: workerSide.url, times }, "worker-6");
    await transport.run(createJob(2, 20));
    const answer = transport.run(createJob(2, 21));
    for (const proxy of proxies) proxy[fault]();
    await sleep(50);
    for (const proxy of proxies) proxy.acceptNew();
    expect((await answer).states).toHaveLength(2);
  });

  it("names a full server", async () => {
    const full = await RedisServer.start(["--maxmemory", "1500kb"]);
    cleanups.push(async () => full.stop());
    const transport = await openLearner({ redis: full.url, times });
    cleanups.push(async () => transport.close());
    await expect(publish(transport)).rejects.toThrow("Raise its maxmemory");
  });

  it("does not print the password", async () => {
    const error = openWorkerQueue({ redis: "redis://:secret@127.0.0.1:1", times });
    await expect(error).rejects.toThrow(/Redis at redis:\/\/127.0.0.1:1 does not answer/);
    await expect(error).rejects.not.toThrow(/secret/);
  });
});

/** Returns the number of jobs that worker-2 has completed. */
async function countJobs(address: WorkersAddress): Promise<number> {
  const queue = await openWorkerQueue(address);
  const workers = await queue.listWorkers();
  await queue.close("none");
  return workers.find(({ name }) => name === "worker-2")!.jobs;
}

async function waitFor<Value>(read: () => Promise<readonly Value[]>): Promise<readonly Value[]> {
  for (;;) {
    const values = await read();
    if (values.length > 0) return values;
    await sleep(50);
  }
}
