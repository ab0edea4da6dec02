import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import {
  config,
  createJob,
  files,
  info,
  readJobLog,
  shortTimes,
  times,
  useTransports,
  waitFor,
} from "../../../test/support/transports.js";
import { make, register } from "../../envs.js";
import { openTransport, openWorkerQueue, type WorkersAddress } from "./open-transport.js";
import { runWorker } from "./rollout-worker.js";
import { encodeMessage } from "./wire.js";

const {
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
  getModel,
  onCleanup,
} = useTransports();

describe.each(Object.entries(addresses))("a transport over %s", (_, getAddress) => {
  it("returns the results of this process, bit for bit", async () => {
    const expected = await runJobs(await openInProcess());
    const transport = await openLearner(getAddress());
    onCleanup(async () => transport.close(true));
    await startWorker(getAddress(), "worker-1");
    expect(await runJobs(transport)).toEqual(expected);
  });

  it("sums gradients to the bytes of this process, with one worker and with two", async () => {
    const { settings, update } = await openGradientRun();
    const expected = await update();
    expect(expected.metrics.num_optimizer_steps).toBe(2);
    const run = nextRun();
    const transport = await openLearner(getAddress(), run, settings);
    onCleanup(async () => transport.close(true));
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
    const transport = await openLearner(getAddress(shortTimes), nextRun(), settings);
    onCleanup(async () => transport.close(true));
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
    const run = nextRun();
    const transport = await openLearner(address, run);
    await publish(transport);
    const forgotten = transport.run(createJob()).catch(() => {});
    await sleep(100);
    await transport.close();
    await forgotten;
    const resumed = await openLearner(address, run);
    onCleanup(async () => resumed.close(true));
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
    onCleanup(async () => transport.close(true));
    await publish(transport);
    const answer = transport.run(createJob());
    const liar = await openQueue(address, "liar");
    await liar.announce({ ...info, name: "liar" });
    const [open] = await waitFor(async () => liar.listRuns("liar"));
    const session = liar.work(open.run, "liar", async () => encodeMessage({ result: { trajectories: [] } }));
    await session.ended;
    await session.close();
    expect(await liar.listRuns("liar")).toEqual([]);
    const refusal = await liar.readRefusal(open.run, "liar");
    expect(refusal).toMatch(/^seconds: expected number/);
    expect(warnings.join()).toContain(
      `Worker liar returned an unusable result and gets no more jobs of this run: ${refusal}`,
    );
    await startWorker(address, "worker-3");
    expect((await answer).states).toHaveLength(2);
  });

  it("sets a job aside that fails on every worker, with its input", async () => {
    const transport = await openLearner(getAddress());
    onCleanup(async () => transport.close(true));
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
    const run = nextRun();
    const transport = await openLearner(getAddress(), run);
    onCleanup(async () => transport.close(true));
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
    // Garbage, so that the fast worker also does this job.
    slow.release();
    expect(await Promise.all(jobs)).toHaveLength(6);
    const used = (await readJobLog(run)).filter(({ outcome }) => outcome === "used");
    expect(used.map(({ worker }) => worker)).toEqual(Array(6).fill("fast"));
  });

  it("sets a job aside that three workers did not survive", async () => {
    const transport = await openLearner(getAddress(shortTimes));
    onCleanup(async () => transport.close(true));
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
    const run = nextRun();
    const env = `Hanging-v${run.split("-").at(-1)}`;
    const reset = async () => hang;
    register({ id: env, disableEnvChecker: true, entryPoint: () => Object.assign(make("Blackjack-v1"), { reset }) });
    const hanging = { ...config, env, callTimeoutSeconds: 0, jobTimeoutSeconds: 0.2 };
    const options = { config: hanging, model: getModel(), onWarning };
    const transport = await openTransport(getAddress(), run, options);
    onCleanup(async () => transport.close(true));
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
    const run = nextRun();
    const transport = await openLearner(getAddress(shortTimes), run);
    onCleanup(async () => transport.close(true));
    await expect(openLearner(getAddress(shortTimes), run)).rejects.toThrow("Another process trains this run.");
  });
});

/** Returns the number of jobs that worker-2 has completed. */
async function countJobs(address: WorkersAddress): Promise<number> {
  const queue = await openWorkerQueue(address);
  const workers = await queue.listWorkers();
  await queue.close("none");
  return workers.find(({ name }) => name === "worker-2")!.jobs;
}
