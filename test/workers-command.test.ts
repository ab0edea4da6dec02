import type { ChildProcess } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { RandomStream } from "../src/core/random/random-stream.js";
import { parseAllDocuments } from "yaml";
import { openWorkerQueue } from "../src/app/distributed/open-transport.js";
import { parseCommandArgs } from "../src/app/cli/options/parse-args.js";
import { workersOptions } from "../src/app/cli/options/workers-options.js";
import { runCommand, startCommand } from "./support/command.js";
import { hasRedis, RedisServer } from "./support/redis-server.js";

/**
 * Kills of processes during a run. KILLS=200 KILL_SEED=1 npx vitest run
 * test/workers-command.test.ts for a long test.
 */
const KILLS = Number(process.env.KILLS ?? 4);
const KILL_SEED = Number(process.env.KILL_SEED ?? 0);
/** Turns that last about as long as the kills. */
const TURNS = 100 * Math.max(4, KILLS);
const BATCH = "--batch-size 100 --mini-batch-size 50 --num-ppo-epochs 2 --micro-batch-tokens 1000";
const SETTINGS = `--turns ${TURNS} ${BATCH} --num-envs 8 --threads 1 --max-staleness 0 --save-steps 1 --seed 3 --no-tensorboard`;
const TRAIN = `train blackjack ${SETTINGS}`.split(" ");
const env = { LLAMAGYM_WORKER_LEASE_MS: "1000" };
/** Differences of the workers' clocks to that of the learner and of Redis. */
const CLOCK_HOURS = [5, -5];
const clock = `--import ${new URL("support/shift-clock.mjs", import.meta.url).href}`;

let folder: string;
let expected: Buffer;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "workers-"));
  const { status, err } = await runCommand([...TRAIN, "--output", join(folder, "local")]);
  if (status !== 0) throw new Error(err);
  expected = await readAdapter("local");
}, 600_000);
afterAll(() => rm(folder, { recursive: true, force: true }));

const readAdapter = async (run: string) => readFile(join(folder, run, "adapter", "adapter_model.safetensors"));

/** Fields of a Kubernetes object that the test reads. */
interface Manifest {
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly spec: {
    readonly ports: readonly { readonly port: number }[];
    readonly selector: { readonly matchLabels: object };
    readonly template: {
      readonly metadata: { readonly labels: object };
      readonly spec: {
        readonly containers: readonly {
          readonly command: readonly string[];
          readonly args: readonly string[];
          readonly env: readonly { readonly name: string }[];
        }[];
      };
    };
  };
}

/**
 * A command that is started again whenever it is killed, and when the kills have hit the workers of
 * one job three times.
 */
class Restarted {
  private child: ChildProcess | undefined;
  private isStopped = false;
  private onReady = () => {};
  /** Resolves when the process that runs has connected. */
  ready = this.nextReady();
  output = "";
  readonly exited: Promise<number | null>;

  constructor(
    private readonly args: (isFirst: boolean) => readonly string[],
    private readonly clockHours = 0,
  ) {
    this.exited = this.run();
  }

  kill(): void {
    // false if the process has ended.
    if (this.child?.kill("SIGKILL") === true) this.ready = this.nextReady();
  }

  /**
   * Ends a worker as a service manager does, once it is ready: a starting process does not handle
   * the signal yet.
   */
  async stop(): Promise<number | null> {
    await this.ready;
    this.isStopped = true;
    this.child?.kill("SIGTERM");
    return this.exited;
  }

  /** Ends the process, as after a failed test. */
  end(): void {
    this.isStopped = true;
    this.child?.kill("SIGKILL");
  }

  private async nextReady(): Promise<void> {
    return new Promise((resolve) => (this.onReady = resolve));
  }

  private async run(): Promise<number | null> {
    for (let isFirst = true; ; isFirst = false) {
      const shifted = { NODE_OPTIONS: clock, CLOCK_SHIFT_HOURS: String(this.clockHours) };
      const child = startCommand(this.args(isFirst), { env: { ...env, ...shifted } });
      this.child = child;
      const start = this.output.length;
      child.stdout.on("data", (data: Buffer) => {
        this.output += data.toString();
        if (!child.killed && /is ready\.|Run folder|Resuming|Restarting/.test(data.toString())) this.onReady();
      });
      child.stderr.on("data", (data: Buffer) => (this.output += data.toString()));
      const code = await new Promise<number | null>((resolve) => child.on("close", resolve));
      const isSetAside = this.output.slice(start).includes("A job was set aside");
      if ((code === null || isSetAside) && !this.isStopped) continue;
      this.onReady();
      return code;
    }
  }
}

/** Trains with two workers while processes are killed, and returns the learner's output. */
async function trainWithKills(
  address: readonly string[],
  run: string,
  killServer?: () => Promise<void>,
): Promise<string> {
  const output = join(folder, run);
  const workers = [1, 2].map(
    (i) => new Restarted(() => ["worker", ...address, "--threads", "1", "--name", `worker-${i}`], CLOCK_HOURS[i - 1]),
  );
  let hasStarted = false;
  const learner = new Restarted((isFirst) => {
    hasStarted ||= !isFirst && learner.output.includes("Run folder");
    if (hasStarted) return ["train", "--resume", output, ...address];
    return [...TRAIN, ...address, "--gradient-workers", "--output", output];
  });
  onTestFinished(() => [...workers, learner].forEach((each) => each.end()));
  const random = new RandomStream(KILL_SEED);
  const kinds = killServer === undefined ? 3 : 4;
  const done = new AbortController();
  void learner.exited.then(() => done.abort());
  for (let kill = 0; kill < KILLS && !done.signal.aborted; kill++) {
    await sleep(500 + 1500 * random.random());
    // Each kind once, then any.
    const kind = kill < kinds ? kill : random.integers(0, kinds);
    if (kind < 2) workers[kind].kill();
    else if (kind === 2) {
      await learner.ready;
      learner.kill();
    } else {
      // A process that starts without a server ends with an error.
      await Promise.all([...workers, learner].map(async ({ ready }) => ready));
      await killServer!();
    }
  }
  const status = await learner.exited;
  if (status !== 0) throw new Error(`The learner ended with status ${status}: ${learner.output}`);
  const ended = await Promise.all(workers.map(async (worker) => ({ status: await worker.stop(), worker })));
  expect(ended.map((each) => ({ status: each.status, output: each.worker.output }))).toMatchObject([
    { status: 0 },
    { status: 0 },
  ]);
  expect(await readFile(join(output, "jobs.jsonl"), "utf8")).toContain('"work":"gradients"');
  return learner.output;
}

describe("llamagym worker", () => {
  it("trains the same adapter over a shared directory, whatever is killed, with clocks that differ", async () => {
    await trainWithKills(["--workers-folder", join(folder, "shared")], "directory");
    expect((await readAdapter("directory")).equals(expected)).toBe(true);
  }, 600_000);

  it.runIf(hasRedis)(
    "trains the same adapter over Redis, whatever is killed, with clocks that differ, and writes no credentials",
    async () => {
      const redis = await RedisServer.start(["--requirepass", "secret-word"]);
      const address = ["--redis", `redis://:secret-word@127.0.0.1:${redis.port}`];
      try {
        const output = await trainWithKills(address, "redis", async () => {
          await redis.kill();
          await redis.restart(["--requirepass", "secret-word"]);
        });
        expect((await readAdapter("redis")).equals(expected)).toBe(true);
        expect(output).not.toContain("secret-word");
        for (const file of ["config.json", "workers.json"])
          expect(await readFile(join(folder, "redis", file), "utf8")).not.toContain("secret-word");
        const { status, out } = await runCommand(["workers", ...address]);
        expect([status, out]).toEqual([0, expect.stringContaining("No worker")]);
      } finally {
        await redis.stop();
      }
    },
    600_000,
  );

  it("is deployed by manifests whose commands are valid", async () => {
    const read = async (name: string) => {
      const path = new URL(`../deploy/kubernetes/${name}.yaml`, import.meta.url);
      return parseAllDocuments(await readFile(path, "utf8")).map((document) => {
        expect(document.errors).toEqual([]);
        return document.toJS() as Manifest;
      });
    };
    const [deployment] = await read("workers");
    const [service, redis] = await read("redis");
    expect([deployment.kind, service.kind, redis.kind]).toEqual(["Deployment", "Service", "StatefulSet"]);
    for (const { spec } of [deployment, redis])
      expect(spec.template.metadata.labels).toEqual(spec.selector.matchLabels);
    const [{ command, args, env: variables }] = deployment.spec.template.spec.containers;
    expect(command.slice(-2)).toEqual(["llamagym", "worker"]);
    const { redis: url } = parseCommandArgs(workersOptions, args.slice(0, 2)).values;
    expect(url).toBe(`redis://${service.metadata.name}:${service.spec.ports[0].port}`);
    expect(variables.map(({ name }) => name)).toContain("LLAMAGYM_REDIS_PASSWORD");
  });

  it("lists the last error of each worker", async () => {
    const address = { workersFolder: join(folder, "listed") };
    const queue = await openWorkerQueue(address);
    const info = { version: "0", host: "", pid: 0, threads: 1, processor: "", memoryGb: 1, startedAt: "" };
    const counts = { status: "waiting", jobs: 0, turns: 0, turnsPerSecond: 0 } as const;
    await queue.announce({ ...info, ...counts, name: "healthy" });
    await queue.announce({ ...info, ...counts, name: "broken", lastError: "The model is not here." });
    const { out } = await runCommand(["workers", "--workers-folder", address.workersFolder]);
    expect(out).toMatch(/healthy +waiting/);
    expect(out.match(/Last error.*/g)).toEqual(["Last error of broken: The model is not here."]);
  });

  it("names what is missing", async () => {
    const { status, err } = await runCommand(["worker"], { env: { LLAMAGYM_REDIS_URL: "" } });
    expect([status, err]).toEqual([1, expect.stringContaining("give --redis URL or --workers-folder FOLDER")]);
  });
});
