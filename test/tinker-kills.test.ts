import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, it } from "vitest";
import { decodeForwardBackward } from "../src/tinker/wire/index.js";
import { runCommand, startCommand } from "./support/command.js";
import { FlakyHttpProxy } from "./support/flaky-http-proxy.js";
import { listDifferences } from "./support/run-metrics.js";
import { TinkerTestClient, TinkerTestModel, toDatum } from "./support/tinker-client.js";

/** More with LLAMAGYM_TEST_KILLS. */
const KILLS = Number(process.env.LLAMAGYM_TEST_KILLS ?? 3);
const STEPS = 8 * KILLS;
/** Time until a kill: a step with its checkpoint takes about 100 ms. */
const MAX_MS = 1500;

const data = [toDatum([5, 6, 7, 8, 9], [6, 7, 8, 9, 10]), toDatum([40, 41], [41, 42])];
let folder = "";

beforeAll(async () => void (folder = await mkdtemp(join(tmpdir(), "tinker-kills-"))));
afterAll(() => rm(folder, { recursive: true, force: true }));

async function start(name: string) {
  const args = ["serve", "--tinker", "-m", "embedded", "--port", "0", "--tinker-folder", join(folder, name)];
  const child = startCommand([...args, "--threads", "1"]);
  let err = "";
  child.stderr.on("data", (data: Buffer) => (err += data.toString()));
  const exit = once(child, "exit").then(([status, signal]) => {
    throw new Error(`The server ended before it listened (${String(status ?? signal)}): ${err}`);
  });
  const listening = once(createInterface({ input: child.stdout }), "line");
  const [line] = (await Promise.race([listening, exit])) as [string];
  exit.catch(() => {});
  return { child, client: new TinkerTestClient(line.replace(/.* at (.*)\/v1$/, "$1")) };
}

/** Returns how often a server has run each kind of request. */
async function readWork(url: string): Promise<(kind: string) => number> {
  const metrics = await (await fetch(`${url}/metrics`)).text();
  return (kind) => Number(new RegExp(`work_total\\{kind="${kind}"\\} (\\d+)`, "u").exec(metrics)?.[1] ?? 0);
}

/** Finds the checkpoint with the most steps among all runs. */
async function findLast(client: TinkerTestClient): Promise<{ path: string; step: number } | undefined> {
  const { checkpoints } = await client.get("checkpoints?limit=1000");
  const steps = checkpoints.map(({ tinker_path: path }: { tinker_path: string }) => ({
    path,
    step: Number(path.replace(/.*step-/, "")),
  }));
  return steps.sort((a: { step: number }, b: { step: number }) => b.step - a.step)[0];
}

/**
 * Trains from the last checkpoint on, and saves one after each step. Each request is sent twice, as
 * after a lost response.
 */
async function train(client: TinkerTestClient, onStep: (step: number) => void): Promise<number[]> {
  const last = await findLast(client);
  const session = await client.createSession();
  const lora = { base_model: "embedded", lora_config: { rank: 4, seed: 1 } };
  const model = await (last === undefined
    ? TinkerTestModel.create(client, session, lora)
    : TinkerTestModel.load(client, session, last.path));
  let seq_id = 0;
  const twice = async (path: string, body: object) => {
    const numbered = { model_id: model.id, seq_id: ++seq_id, ...body };
    const [first, second] = await Promise.all([client.post(path, numbered), client.post(path, numbered)]);
    expect(second.request_id).toBe(first.request_id);
    return client.wait(first.request_id);
  };
  for (let step = (last?.step ?? 0) + 1; step <= STEPS; step++) {
    await model.pass("cross_entropy", data, { seqId: ++seq_id });
    await twice("optim_step", { adam_params: { learning_rate: 1e-3, weight_decay: 0.01 } });
    await twice("save_weights", { path: `step-${step}` });
    onStep(step);
  }
  const { lossFnOutputs } = await model.pass("cross_entropy", data, { seqId: ++seq_id, forwardOnly: true });
  const count = await readWork(client.url);
  // The last server has run each number once.
  const steps = STEPS - (last?.step ?? 0);
  expect([count("forward_backward"), count("optim_step"), count("save_weights")]).toEqual([steps, steps, steps]);
  return lossFnOutputs.flatMap(({ logprobs }) => Array.from(logprobs.data));
}

it(`continues after ${KILLS} kills of the server as without them`, { timeout: 60_000 + 60_000 * KILLS }, async () => {
  const undisturbed = await start("undisturbed");
  const expected = await train(undisturbed.client, () => undefined);
  undisturbed.child.kill("SIGKILL");
  let kills = 0;
  let lastStep = 0;
  const lost: number[] = [];
  for (;;) {
    const { child, client } = await start("killed");
    const isKilled = kills < KILLS;
    const killing = isKilled && sleep(MAX_MS * Math.random()).then(() => child.kill("SIGKILL"));
    const result = await train(client, (step) => {
      if (step !== lastStep + 1) lost.push(step);
      lastStep = step;
    }).catch((error: unknown) => {
      if (!isKilled || (error as Error).name === "AssertionError") throw error;
      return undefined;
    });
    await killing;
    child.kill("SIGKILL");
    if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
    if (isKilled) kills++;
    if (result === undefined) {
      // A step whose checkpoint was written may not have been reported.
      lastStep = await lastSaved();
      continue;
    }
    const differences = result.map((value, i) => Math.abs(value - expected[i]));
    expect(Math.max(...differences)).toBeLessThan(1e-6);
    // A checkpoint that was reported is there after the kill.
    expect(lost).toEqual([]);
    expect(kills).toBeGreaterThan(0);
    return;
  }
});

/** Starts a server to see which checkpoint is the last. */
async function lastSaved(): Promise<number> {
  const { child, client } = await start("killed");
  const last = await findLast(client);
  child.kill("SIGKILL");
  await once(child, "exit");
  return last?.step ?? 0;
}

/** A share of the answers that is lost, after which a request is sent again. */
const LOST_ANSWERS = 0.05;
/** Time until a kill: the learner starts in a second, and an update takes about 300 ms. */
const MAX_LEARNER_MS = 5000;
const TRAINING_KINDS = ["forward", "forward_backward", "optim_step"];
const RUN =
  "train blackjack --backend tinker --model embedded --algorithm grpo --batch-size 16 --num-generations 4 --min-turns 0 " +
  "--mini-batch-size 64 --num-iterations 2 --num-envs 4 --sft-warm-start none --no-tensorboard --rollouts none --seed 3 " +
  "--action-mode choices --turns 110 --save-steps 1";

/** Lists the numbered requests of some kind that a server may have run: model and number. */
function listNumbers({ requests }: FlakyHttpProxy, kind: string): Set<string> {
  const numbers = requests.flatMap(({ path, body, status = 200 }) => {
    if (status !== 200) return [];
    if (path === "optim_step") {
      const { model_id: id, seq_id: seq } = JSON.parse(body.toString()) as { model_id: string; seq_id: number };
      return kind === "optim_step" ? [`${id} ${seq}`] : [];
    }
    if (path !== "forward_backward") return [];
    const { modelId, seqId, forwardOnly } = decodeForwardBackward(body);
    return kind === (forwardOnly ? "forward" : "forward_backward") ? [`${modelId} ${seqId}`] : [];
  });
  return new Set(numbers);
}

it(
  `a run continues after ${KILLS} kills of its learner or its server as without them`,
  { timeout: 60_000 + 60_000 * KILLS },
  async () => {
    let server = await start("runs");
    const proxy = await FlakyHttpProxy.start(server.client.url, (path) =>
      /forward_backward|optim_step|save_weights|asample/u.test(path) && Math.random() < LOST_ANSWERS
        ? "drop-answer"
        : "forward",
    );
    const output = (name: string) => join(folder, name);
    const begin = (name: string) => [...RUN.split(" "), "--base-url", proxy.url, "--output", output(name)];
    expect((await runCommand(begin("whole"))).status).toBe(0);

    const table = { learner: 0, server: 0, runs: 0, trained: 0, repeated: 0 };
    /** Checks that the server has run no number twice, before it ends. */
    const checkWork = async () => {
      const count = await readWork(server.client.url);
      for (const kind of TRAINING_KINDS) expect(count(kind)).toBeLessThanOrEqual(listNumbers(proxy, kind).size);
      table.trained += count("forward_backward");
      const sent = proxy.requests.filter(({ path }) => path === "optim_step").length;
      table.repeated += sent - listNumbers(proxy, "optim_step").size;
    };
    const restartServer = async () => {
      await checkWork();
      server.child.kill("SIGKILL");
      proxy.target = undefined;
      await once(server.child, "exit");
      proxy.requests.length = 0;
      server = await start("runs");
      proxy.target = server.client.url;
    };
    const unexplained: string[] = [];
    let kills = 0;
    for (let run = 0; kills < KILLS; run++) {
      const name = `run-${run}`;
      let status: number | null = null;
      while (status !== 0) {
        const isResumed = existsSync(join(output(name), "config.json"));
        const child = startCommand(isResumed ? ["train", "--resume", output(name)] : begin(name));
        let err = "";
        child.stderr.on("data", (data: Buffer) => (err += data.toString()));
        child.stdout.resume();
        const ended = once(child, "close") as Promise<[number | null]>;
        if (kills < KILLS) {
          await Promise.race([sleep(MAX_LEARNER_MS * Math.random()), ended]);
          if (child.exitCode === null) {
            kills++;
            if (Math.random() < 0.5) {
              table.learner++;
              child.kill("SIGKILL");
            } else {
              table.server++;
              await restartServer();
            }
          }
        }
        [status] = await ended;
        // A server that has forgotten its sessions ends the run by an error that says so.
        if (status !== 0 && status !== null && !/resume the run/iu.test(err)) unexplained.push(err);
      }
      table.runs++;
      expect(listDifferences(output(name), output("whole"))).toEqual([]);
    }
    expect(unexplained).toEqual([]);
    await checkWork();
    server.child.kill("SIGKILL");
    await proxy.stop();
    expect(table.learner + table.server).toBe(KILLS);
    if (process.env.LLAMAGYM_TEST_KILLS !== undefined) console.table(table);
  },
);
