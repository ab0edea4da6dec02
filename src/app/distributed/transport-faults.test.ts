import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Redis } from "ioredis";
import { describe, expect, it } from "vitest";
import { hasRedis, RedisServer } from "../../../test/support/redis-server.js";
import { TcpProxy } from "../../../test/support/tcp-proxy.js";
import { config, createJob, files, info, times, useTransports, waitFor } from "../../../test/support/transports.js";
import { openWorkerQueue } from "./open-transport.js";
import { createSetup, openSetup } from "./run-setup.js";

const {
  addresses,
  onWarning,
  openInProcess,
  openLearner,
  startWorker,
  publish,
  runJobs,
  nextRun,
  getFolder,
  getModel,
  getRedis,
  onCleanup,
} = useTransports();

it("names the version that a worker needs", async () => {
  const setup = JSON.parse(await createSetup(config, getModel())) as object;
  const older = JSON.stringify({ ...setup, version: "0.0.1" });
  await expect(openSetup(older, files, onWarning)).rejects.toThrow(
    /The run is of llamagym 0.0.1, this worker of .*Install the same version/,
  );
});

describe("a shared directory", () => {
  it("repeats the job of a worker that was restarted under its name", async () => {
    const address = addresses["a shared directory"]();
    const transport = await openLearner(address);
    onCleanup(async () => transport.close(true));
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
    const run = nextRun();
    const transport = await openLearner({ redis: getRedis().url, times }, run);
    const client = new Redis(getRedis().url);
    const [lease] = await client.keys("llamagym:run:*:lease");
    await client.set(lease, "999", "PX", 60_000);
    await client.set(lease.replace("lease", "fence"), "999");
    await expect(publish(transport)).rejects.toThrow("Another process has taken over this run.");
    await transport.close();
    await client.del(lease);
    client.disconnect();
  });

  it("carries trained values through a directory as well", async () => {
    const address = { redis: getRedis().url, workersFolder: join(getFolder(), "values"), times };
    const expected = await runJobs(await openInProcess());
    const transport = await openLearner(address);
    await startWorker(address, "worker-7");
    expect(await runJobs(transport)).toEqual(expected);
    const files = async () =>
      (await readdir(address.workersFolder, { recursive: true })).filter((name) => /[0-9a-f]{64}$/.test(name));
    const client = new Redis(getRedis().url);
    expect([(await files()).length, await client.keys("*:weights:*")]).toEqual([1, []]);
    client.disconnect();
    await transport.close(true);
    expect(await files()).toEqual([]);
  });

  it("continues after the server was killed", async () => {
    const transport = await openLearner({ redis: getRedis().url, times });
    onCleanup(async () => transport.close(true));
    await publish(transport);
    await getRedis().kill();
    const answer = transport.run(createJob());
    await sleep(200);
    await getRedis().restart();
    await startWorker({ redis: getRedis().url, times }, "worker-5");
    expect((await answer).states).toHaveLength(2);
  });

  it.each(["cut", "halfOpen"] as const)("continues over a slow network after it was %s", async (fault) => {
    const proxies = await Promise.all([1, 2].map(async () => TcpProxy.start(getRedis().port, { delayMs: 10 })));
    for (const proxy of proxies) onCleanup(async () => proxy.stop());
    const [learnerSide, workerSide] = proxies;
    const transport = await openLearner({ redis: learnerSide.url, times });
    onCleanup(async () => transport.close(true));
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
    onCleanup(async () => full.stop());
    const transport = await openLearner({ redis: full.url, times });
    onCleanup(async () => transport.close());
    await expect(publish(transport)).rejects.toThrow("Raise its maxmemory");
  });

  it("does not print the password", async () => {
    const error = openWorkerQueue({ redis: "redis://:secret@127.0.0.1:1", times });
    await expect(error).rejects.toThrow(/Redis at redis:\/\/127.0.0.1:1 does not answer/);
    await expect(error).rejects.not.toThrow(/secret/);
  });
});
