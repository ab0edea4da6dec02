import { spawn } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { JOB_LOG_FILE, type JobLogLine } from "../../src/app/distributed/job-log-line.js";
import { DEFAULT_TIMES } from "../../src/app/distributed/job-queue.js";
import { openTransport, openWorkerQueue } from "../../src/app/distributed/open-transport.js";
import { RedisLearnerQueue } from "../../src/app/distributed/redis-learner-queue.js";
import { connectRedis } from "../../src/app/distributed/redis-keys.js";
import { openRunModel } from "../../src/app/runs/open-model.js";
import { resolveTrainConfig } from "../../src/app/runs/run-settings.js";
import { RandomStream } from "../../src/core/random/random-stream.js";
import { stream } from "../../src/core/random/streams.js";
import type { RolloutJob } from "../../src/rl/rollout/rollout-job.js";
import { RedisServer } from "../../test/support/redis-server.js";
import type { Request, Result } from "../framework.js";
import type { PlayWork, SimulateWork } from "../scale.js";
import { serve, timeRuns } from "../serve.js";

// Compiled, this file is bench/.build/bench/ours/scale.js.
const command = fileURLToPath(new URL("../../../../dist/app/cli/bin.js", import.meta.url));
const envModule = fileURLToPath(new URL("waiting-env.js", import.meta.url));
/** Redis as docs/scale.md starts it: `appendonly yes` syncs its file once a second. */
const EVERYSEC = ["--appendfsync", "everysec"];
/** Rollouts that one worker collects before the measured ones. */
const WARMUP_RUNS = 3;
const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0);

async function play(request: Request<PlayWork>): Promise<Result> {
  const { workers, slots, slots_per_job: slotsPerJob, rounds, wait_ms: waitMs, repeat } = request;
  const redis = await RedisServer.start(EVERYSEC);
  const folder = await mkdtemp(join(tmpdir(), "bench-scale-"));
  const env = { ...process.env, LLAMAGYM_BENCH_WAIT_MS: String(waitMs) };
  const processes = Array.from({ length: workers }, (_, i) => {
    const args = [command, "worker", "--redis", redis.url, "--threads", "1", "--device", "cpu", "--name", `w${i}`];
    return spawn(process.execPath, [...args, "--env-module", envModule], {
      env,
      stdio: ["ignore", "ignore", "inherit"],
    });
  });
  process.once("exit", () => processes.forEach((child) => child.kill()));
  const config = resolveTrainConfig({ env: "bench/Waiting-v0", threads: 1, device: "cpu" });
  const model = await openRunModel(config, { valueHead: { kind: "linear", dropout: 0 } });
  const transport = await openTransport({ redis: redis.url }, folder, { config, model, onWarning: console.error });
  const { causalLM } = model;
  const { data } = await causalLM.runtime.read(causalLM.parameters.values);
  await transport.publish({ version: 0, values: data as Float32Array });
  const queue = await openWorkerQueue({ redis: redis.url });
  while ((await queue.listWorkers()).filter(({ status }) => status === "working").length < workers) await sleep(100);
  const collect = async (run: number, numRounds: number) => {
    const jobs = Array.from({ length: slots / slotsPerJob }, (_, i): RolloutJob => {
      const jobSlots = Array.from({ length: slotsPerJob }, (__, j) => {
        const seed = run * slots + i * slotsPerJob + j;
        const random = stream(seed, "rollout", 0).getState();
        return { state: { env: null, hasStarted: false, random, episode: null }, firstSeed: seed, record: false };
      });
      return {
        weightsVersion: 0,
        slots: jobSlots,
        firstSlot: i * slotsPerJob,
        work: { turns: numRounds * slotsPerJob },
      };
    });
    await Promise.all(jobs.map(async (job) => transport.run(job)));
  };
  let run = 0;
  // As many jobs per worker in every case: the first ones fetch weights, compile graphs, and run
  // code that V8 has not optimized.
  while (run < WARMUP_RUNS * workers) await collect(run++, rounds);
  const seconds = await timeRuns(repeat, async () => collect(run++, rounds));
  const text = await readFile(join(folder, JOB_LOG_FILE), "utf8");
  const lines = text
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as JobLogLine);
  const measured = lines.slice((WARMUP_RUNS * workers * slots) / slotsPerJob);
  const mean = (name: "jobBytes" | "answerBytes") => sum(measured.map((line) => line[name])) / measured.length;
  const overhead = (sum(seconds) - sum(measured.map((line) => line.seconds ?? 0))) / measured.length;
  await transport.close(true);
  await queue.close("");
  await model.close();
  await Promise.all(
    processes.map(async (child) => {
      const exited = new Promise((resolve) => child.once("exit", resolve));
      child.kill();
      return exited;
    }),
  );
  await redis.stop();
  await rm(folder, { recursive: true, force: true });
  const bytes = { job_bytes: mean("jobBytes"), answer_bytes: mean("answerBytes") };
  const values = workers === 1 ? { ...bytes, queue_ms_per_job: overhead * 1000 } : {};
  return { seconds, count: slots * rounds, values };
}

async function simulate(request: Request<SimulateWork>): Promise<Result> {
  const {
    workers,
    updates,
    job_seconds: [shortest, longest],
    update_seconds: updateSeconds,
    bytes,
  } = request;
  const redis = await RedisServer.start([...EVERYSEC, "--maxclients", String(2 * workers + 1000)]);
  const admin = await connectRedis(redis.url, DEFAULT_TIMES);
  const queue = await RedisLearnerQueue.open(redis.url, "simulation", "{}", DEFAULT_TIMES);
  const random = new RandomStream(0);
  const payload = Uint8Array.from({ length: bytes }, () => random.integers(0, 256));
  const sessions = await Promise.all(
    Array.from({ length: workers }, async (_, i) => {
      const worker = await openWorkerQueue({ redis: redis.url });
      const handle = async () => {
        await sleep(1000 * (shortest + (longest - shortest) * random.random()));
        return payload;
      };
      return { worker, session: worker.work("simulation", `w${i}`, handle) };
    }),
  );
  const collect = async (update: number) => {
    const ids = Array.from({ length: workers }, (_, i) => `${update}-${i}`);
    await Promise.all(
      ids.map(async (id) => {
        await queue.submit(id, payload);
        await queue.remove(id);
      }),
    );
  };
  let waiting = 0;
  const start = performance.now();
  // Nothing can be trained before the first rollout.
  await collect(0);
  const trainingStart = performance.now();
  let next = Promise.resolve();
  for (let update = 1; update <= updates; update++) {
    const waitingStart = performance.now();
    await next;
    waiting += performance.now() - waitingStart;
    next = collect(update);
    await sleep(1000 * updateSeconds);
  }
  const training = performance.now() - trainingStart;
  await next;
  const seconds = [(performance.now() - start) / 1000];
  const readInfo = async (section: string, field: string) =>
    Number(new RegExp(`${field}:(\\d+)`).exec(await admin.info(section))?.[1]);
  const values = {
    [`simulate_${workers}_waiting_share`]: waiting / training,
    [`simulate_${workers}_redis_peak_mb`]: (await readInfo("memory", "used_memory_peak")) / 1e6,
    [`simulate_${workers}_redis_clients`]: await readInfo("clients", "connected_clients"),
    [`simulate_${workers}_redis_commands_per_second`]:
      (await readInfo("stats", "total_commands_processed")) / seconds[0],
  };
  await queue.close(true);
  admin.disconnect();
  await Promise.all(sessions.map(async ({ session }) => session.close()));
  await Promise.all(sessions.map(async ({ worker }, i) => worker.close(`w${i}`)));
  await redis.stop();
  return { seconds, count: (updates + 1) * workers, values };
}

await serve<PlayWork | SimulateWork>(async (request) => (request.work === "play" ? play(request) : simulate(request)));
