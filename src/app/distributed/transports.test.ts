import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { hasRedis, RedisServer } from "../../../test/support/redis-server.js";
import type { LanguageModel } from "../../generation/language-model.js";
import { InProcessTransport, type RolloutJob, type RolloutTransport } from "../../rl/rollout/rollout-job.js";
import { stream } from "../../core/random/streams.js";
import { openRunModel } from "../runs/open-model.js";
import { createEnvFactory, makeTextAgent, requireTextEnv } from "../runs/make-text-agent.js";
import { resolveTrainConfig } from "../runs/run-settings.js";
import type { WorkerQueue } from "./job-queue.js";
import { openTransport, openWorkerQueue, type WorkersAddress } from "./open-transport.js";
import { runWorker } from "./rollout-worker.js";
import { encodeMessage } from "./wire.js";

const times = { leaseMs: 1000 };
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

async function openInProcess(): Promise<RolloutTransport> {
  const agent = makeTextAgent(model, await requireTextEnv(createEnv, config.env), {
    ...config,
    sftWarmStart: undefined,
  });
  const { settings } = agent;
  const newEpisode = agent.newEpisode.bind(agent);
  const options = {
    model: model.causalLM,
    newEpisode: (random: Parameters<typeof newEpisode>[0]) => newEpisode(random),
  };
  return new InProcessTransport({ ...options, createEnv, settings, onWarning });
}

let numRuns = 0;
const addresses: Readonly<Record<string, () => WorkersAddress>> = {
  "a shared directory": () => ({ workersFolder: join(folder, "shared"), times }),
  ...(hasRedis ? { Redis: () => ({ redis: redis!.url, times }) } : {}),
};

const openLearner = async (address: WorkersAddress, run = join(folder, `run-${++numRuns}`)) =>
  openTransport(address, run, { config, model, onWarning });

/** Starts a worker in this process, with a model of its own. */
async function startWorker(address: WorkersAddress, name: string): Promise<AbortController> {
  const controller = new AbortController();
  const { signal } = controller;
  const queue = await openWorkerQueue(address);
  const files = { threads: 1, device: "cpu" as const };
  const ended = runWorker({ queue, name, files, times, signal, onInfo: () => {}, onWarning });
  cleanups.push(async () => {
    controller.abort();
    await ended;
  });
  return controller;
}

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
  });

  it("keeps a second learner out", async () => {
    const run = join(folder, `run-${++numRuns}`);
    const transport = await openLearner(getAddress(), run);
    cleanups.push(async () => transport.close(true));
    await expect(openLearner(getAddress(), run)).rejects.toThrow("Another process trains this run.");
  });
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
