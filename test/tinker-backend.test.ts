import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { decodeForwardBackward } from "../src/tinker/wire/index.js";
import { closeHost, runCommand, runInHost, startCommand } from "./support/command.js";
import { FlakyHttpProxy, type Fate } from "./support/flaky-http-proxy.js";
import { listDifferences as listRunDifferences, readRunMetrics } from "./support/run-metrics.js";

const folder = mkdtempSync(join(tmpdir(), "tinker-backend-"));
const KEY = "tml-secret-of-this-test";
const env = { TINKER_API_KEY: KEY };
const RUN =
  "--model embedded --batch-size 16 --num-generations 4 --min-turns 0 --mini-batch-size 64 --num-iterations 2 " +
  "--num-envs 4 --sft-warm-start none --no-tensorboard --rollouts none --seed 3";
const CHOICES = `${RUN} --action-mode choices`;

let server: ReturnType<typeof startCommand>;
let url = "";

/** Waits for the address in a line of a server's output. */
async function readUrl(process: ReturnType<typeof startCommand>, line: RegExp): Promise<string> {
  return new Promise<string>((resolve, reject) => {
    let out = "";
    process.stdout.on("data", (data: Buffer) => {
      out += data.toString();
      const found = line.exec(out)?.[1];
      if (found !== undefined) resolve(found);
    });
    process.once("exit", (status) => reject(new Error(`The server exited with status ${status}.`)));
  });
}

beforeAll(async () => {
  const options = ["--port", "0", "--api-key", KEY, "--tinker-folder", join(folder, "service")];
  server = startCommand(["serve", "--tinker", "--model", "embedded", "--threads", "1", ...options]);
  url = await readUrl(server, /Tinker API at (http:\S+):/u);
});

afterAll(async () => {
  server.kill("SIGKILL");
  closeHost();
  rmSync(folder, { recursive: true, force: true });
});

const path = (name: string) => join(folder, name);

async function train(name: string, options: string, { baseUrl = url, isRemote = true } = {}) {
  const backend = isRemote ? ["--backend", "tinker", "--base-url", baseUrl] : ["--threads", "1"];
  return runInHost(["train", "blackjack", ...options.split(" "), ...backend, "--output", path(name)], { env });
}

const readRun = (name: string) => readRunMetrics(path(name));
const listDifferences = (actual: string, expected: string, tolerance?: number) =>
  listRunDifferences(path(actual), path(expected), tolerance);

function readAllFiles(folderPath: string): string {
  return readdirSync(folderPath, { recursive: true, encoding: "utf8" })
    .map((name) => join(folderPath, name))
    .filter((file) => statSync(file).isFile())
    .map((file) => readFileSync(file, "latin1"))
    .join("\n");
}

describe("a run on a Tinker service in another process", () => {
  it.each(["grpo --beta 0.05", "rloo", "reinforce", "online-dpo"])(
    "has the metrics of the same run in one process: %s",
    async (algorithm) => {
      const options = `--algorithm ${algorithm} ${CHOICES} --turns 150`;
      const name = algorithm.split(" ")[0];
      const remote = await train(`${name}-remote`, options);
      expect(remote.err + remote.out).toContain("Tokens of the service");
      expect(remote.status).toBe(0);
      await train(`${name}-local`, options, { isRemote: false });
      expect(readRun(`${name}-local`).length).toBeGreaterThanOrEqual(5);
      expect(listDifferences(`${name}-remote`, `${name}-local`)).toEqual([]);
    },
  );

  it("has the metrics of the same run after a warm start, whose optimizer it drops", async () => {
    const options = `--algorithm grpo ${CHOICES} --turns 40`.replace(
      "--sft-warm-start none",
      "--sft-warm-start 8 --sft-steps 4",
    );
    expect((await train("warm-remote", options)).status).toBe(0);
    await train("warm-local", options, { isRemote: false });
    expect(listDifferences("warm-remote", "warm-local")).toEqual([]);
  });

  it("has them on a service that loads weights only into a model that exists", async () => {
    const options = `--algorithm grpo ${CHOICES} --turns 40`.replace(
      "--sft-warm-start none",
      "--sft-warm-start 8 --sft-steps 4",
    );
    let refused = 0;
    const proxy = await FlakyHttpProxy.start(url, (name) =>
      name === "load_weights" && refused++ === 0
        ? { status: 422, answer: { detail: [{ loc: ["body", "model_id"], msg: "Field required" }] } }
        : "forward",
    );
    const run = await train("existing", options, { baseUrl: proxy.url });
    await proxy.stop();
    expect(run.status).toBe(0);
    expect(refused).toBe(2);
    expect(listDifferences("existing", "warm-local")).toEqual([]);
  });

  it("samples free completions, and evaluates and plays them on the service", async () => {
    const { status, err, out } = await train("free", `--algorithm grpo ${RUN} --action-mode free --turns 60`);
    expect(err + out).toContain("Saved");
    // Turns in the same state share tokens, so that the linear loss is cheaper.
    expect(out + err).toContain("Losses of the service: linear.");
    expect(status).toBe(0);
    const adapter = join(path("free"), "adapter");
    expect(JSON.parse(readFileSync(join(adapter, "tinker.json"), "utf8"))).toMatchObject({ losses: ["linear"] });
    const evaluated = await runInHost(["eval", "blackjack", "--adapter", adapter, "--episodes", "8", "--json"], {
      env,
    });
    expect(JSON.parse(evaluated.out)).toMatchObject({ episodes: 8, model: "embedded" });
    const played = await runInHost(["play", "blackjack", "--agent", "--adapter", adapter, "--seed", "1"], { env });
    expect(played.out).toMatch(/return/iu);
    const generated = await runInHost(["generate", "--model", adapter, "--max-new-tokens", "3", "--prompt", "hello"], {
      env,
    });
    expect(generated.status).toBe(0);
    const exported = path("exported");
    const { err: problem } = await runInHost(["export", path("free"), "--format", "peft", "--output", exported], {
      env,
    });
    expect(problem).not.toContain("LlamaGymError");
    const game = [
      "eval",
      "blackjack",
      "--episodes",
      "8",
      "--json",
      "--action-mode",
      "free",
      "--max-completion-length",
      "8",
    ];
    const local = await runInHost([...game, "--model", "embedded", "--adapter", exported, "--threads", "1"]);
    const remote = JSON.parse(evaluated.out) as { meanReturn: number };
    expect((JSON.parse(local.out) as { meanReturn: number }).meanReturn).toBe(remote.meanReturn);

    // The command that a gateway's run prints at its end.
    const serving = startCommand(
      ["serve", "--model", "embedded", "--threads", "1", "--port", "0", "--adapter", `trained=${adapter}`],
      { env },
    );
    try {
      const address = await readUrl(serving, /Serving embedded, trained at (http:\S+)/u);
      const response = await fetch(`${address}/chat/completions`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ model: "trained", messages: [{ role: "user", content: "hello" }], max_tokens: 3 }),
      });
      expect(await response.json()).toMatchObject({ model: "trained", choices: [{ message: { role: "assistant" } }] });
    } finally {
      serving.kill("SIGKILL");
    }
  });

  it("writes the key into no file and no output", async () => {
    const run = await train("key", `--algorithm grpo ${CHOICES} --turns 16`);
    expect(run.out + run.err).not.toContain(KEY);
    expect(readAllFiles(path("key"))).not.toContain(KEY);
    const wrong = await runInHost(
      [
        "train",
        "blackjack",
        ...`--algorithm grpo ${CHOICES} --backend tinker --base-url ${url}`.split(" "),
        "--output",
        path("wrong"),
      ],
      { env: { TINKER_API_KEY: "tml-wrong" } },
    );
    expect(wrong.err).toContain("Set TINKER_API_KEY to a key of this service");
    expect(wrong.err).not.toContain("tml-wrong");
  });

  it("ends with a checkpoint at the limit of tokens, and resumes with a higher one", async () => {
    const options = `--algorithm grpo ${CHOICES} --turns 110`;
    const stopped = await train("limit", `${options} --max-service-tokens 6000`);
    expect(stopped.out).toMatch(/Stopped and saved after update \d at the limit of service tokens/u);
    const args = ["train", "--resume", path("limit"), "--max-service-tokens", "1000000"];
    expect((await runInHost(args, { env })).status).toBe(0);
    await train("unlimited", options);
    expect(listDifferences("limit", "unlimited")).toEqual([]);
  });

  it("resumes and evaluates on a service that samples saved weights only while their model is loaded", async () => {
    const options = `--algorithm grpo ${CHOICES} --turns 110`;
    let isLoaded = true;
    let refused = 0;
    const proxy = await FlakyHttpProxy.start(url, (name, _count, headers) => {
      if (name === "load_weights") isLoaded = true;
      if (isLoaded || headers["x-tinker-request-type"] !== "Sample") return "forward";
      refused++;
      return { answer: { error: "Model model_1 not loaded", category: "unknown" } };
    });
    await train("unloaded", `${options} --max-service-tokens 6000`, { baseUrl: proxy.url });
    const resume = ["train", "--resume", path("unloaded"), "--max-service-tokens", "1000000"];
    const evaluate = ["eval", "blackjack", "--adapter", join(path("unloaded"), "adapter"), "--episodes", "8", "--json"];
    for (const args of [resume, evaluate]) {
      isLoaded = false;
      refused = 0;
      const { status, err } = await runInHost(args, { env });
      expect({ status, err: status === 0 ? "" : err }).toEqual({ status: 0, err: "" });
      expect(refused).toBeGreaterThan(0);
    }
    await proxy.stop();
    expect(listDifferences("unloaded", "unlimited")).toEqual([]);
  });
});

describe("PPO with a critic in this process", () => {
  const options =
    "--algorithm ppo --model embedded --batch-size 32 --mini-batch-size 16 --num-ppo-epochs 2 --num-envs 4 --turns 96 " +
    "--sft-warm-start none --no-tensorboard --rollouts none --seed 3";

  it("trains the critic on returns, and resumes with it", async () => {
    expect((await train("ppo", options)).status).toBe(0);
    const errors = readRun("ppo").map((metrics) => metrics["val/error"]);
    expect(errors.at(-1)).toBeLessThan(errors[0]);
    const half = options.replace("--turns 96", "--turns 32");
    expect((await train("ppo-half", half)).status).toBe(0);
    const more = await runInHost(["train", "--resume", path("ppo-half"), "--turns", "96"], { env });
    expect(more.err).not.toContain("LlamaGymError");
    // The schedule depends on the length of the run.
    expect(readRun("ppo-half")).toHaveLength(readRun("ppo").length);
  });

  it("trains the critic alone at first with valueWarmup", async () => {
    expect((await train("warmup", `${options} --value-warmup 5`)).status).toBe(0);
    const kls = readRun("warmup").map((metrics) => metrics["policy/kl_avg"]);
    expect(Math.max(...kls.map(Math.abs))).toBeLessThan(1e-5);
    const errors = readRun("warmup").map((metrics) => metrics["val/error"]);
    expect(errors.at(-1)).toBeLessThan(errors[0]);
  });

  it("refuses a critic where it has no use", async () => {
    const unused = await train("critic-grpo", `--algorithm grpo ${CHOICES} --critic embedded`);
    expect(unused.err).toContain("`critic` estimates values");
    const local = await train("critic-local", `${options} --critic embedded`, { isRemote: false });
    expect(local.err).toContain("`critic` is a setting of a Tinker service");
  });
});

describe("a service that fails", () => {
  const options = `--algorithm grpo ${CHOICES} --turns 40`;

  it("changes nothing in a run, and gets no number twice", async () => {
    let state = 7;
    const random = () => (state = (state * 48_271) % 2_147_483_647) / 2_147_483_647;
    const fates: readonly Fate[] = [429, 500, "drop", "drop-answer", "drop-answer"];
    const isFlaky = (name: string) => !/client|capabilities|heartbeat|finish|create_session|unload/u.test(name);
    const proxy = await FlakyHttpProxy.start(url, (name) =>
      isFlaky(name) && random() < 0.08 ? fates[Math.floor(random() * fates.length)] : "forward",
    );
    expect((await train("flaky", options, { baseUrl: proxy.url })).status).toBe(0);
    await proxy.stop();
    await train("steady", options);
    expect(listDifferences("flaky", "steady")).toEqual([]);
    const bodies = new Map<string, Set<string>>();
    let repeated = 0;
    for (const { path: name, body } of proxy.requests) {
      if (name !== "forward_backward") continue;
      const { modelId, seqId } = decodeForwardBackward(body);
      const key = `${modelId} ${seqId}`;
      if (bodies.has(key)) repeated++;
      bodies.set(key, (bodies.get(key) ?? new Set()).add(body.toString("base64")));
    }
    expect([...bodies.values()].filter(({ size }) => size > 1)).toEqual([]);
    expect(repeated).toBeGreaterThan(0);
  });

  it("samples again what the service has dropped", async () => {
    let gone = 0;
    const proxy = await FlakyHttpProxy.start(url, (name, count) =>
      name === "retrieve_future" && count > 20 && gone++ < 1 ? { status: 410, answer: { detail: "gone" } } : "forward",
    );
    const run = await train("gone", options, { baseUrl: proxy.url });
    await proxy.stop();
    expect(gone).toBeGreaterThan(0);
    expect(run.status).toBe(0);
    await train("steady-again", options);
    expect(listDifferences("gone", "steady-again")).toEqual([]);
  });

  it.each(["CreateModel", "ForwardBackward", "OptimStep", "SaveWeights", "SaveWeightsForSampler", "Sample"])(
    "says how to continue where a restarted service has lost a result: %s",
    async (kind) => {
      let asked = 0;
      const lose = { status: 410, answer: { detail: "gone" } };
      const proxy = await FlakyHttpProxy.start(url, (_path, _count, headers) =>
        headers["x-tinker-request-type"] === kind && asked++ >= 0 ? lose : "forward",
      );
      const run = await train(`lost-${kind}`, `--algorithm grpo --action-mode free ${RUN} --turns 16`, {
        baseUrl: proxy.url,
      });
      await proxy.stop();
      expect(asked).toBeGreaterThan(0);
      expect(run.status).not.toBe(0);
      expect(run.err).toMatch(new RegExp(`no longer has the result of ${kind}. Resume the run`, "u"));
    },
  );

  it("waits for results that are not there yet", async () => {
    let asked = 0;
    const proxy = await FlakyHttpProxy.start(url, (name) =>
      name === "retrieve_future" && asked++ % 3 === 0
        ? { answer: { type: "try_again", request_id: "r", queue_state: "active" } }
        : "forward",
    );
    const run = await train("waiting", `--algorithm grpo ${CHOICES} --turns 16`, { baseUrl: proxy.url });
    await proxy.stop();
    expect(run.status).toBe(0);
  });
});

describe("a learner that is killed", () => {
  it("resumes without a difference", async () => {
    const options = `--algorithm grpo ${CHOICES} --turns 110 --save-steps 1`;
    await train("whole", options);
    const args = [
      "train",
      "blackjack",
      ...options.split(" "),
      "--backend",
      "tinker",
      "--base-url",
      url,
      "--output",
      path("killed"),
    ];
    const log = () => {
      try {
        return readFileSync(join(path("killed"), "metrics.jsonl"), "utf8")
          .trim()
          .split("\n").length;
      } catch {
        return 0;
      }
    };
    let command = args;
    for (const updates of [2, 4]) {
      const killed = runCommand(command, {
        env,
        onStdout: () => {},
        onStderr: (_err, kill) => {
          if (log() >= updates) kill("SIGKILL");
        },
      });
      await killed;
      command = ["train", "--resume", path("killed")];
    }
    expect((await runInHost(command, { env })).status).toBe(0);
    expect(listDifferences("killed", "whole")).toEqual([]);
  });
});

describe("settings that a service cannot have", () => {
  it.each([
    ["--algorithm grpo --quantize 8", "the service chooses the precision"],
    ["--algorithm grpo --tuning full", "trains adapters"],
    ["--algorithm grpo --lora-alpha 16", "scales adapters by 32 / r"],
    ["--algorithm grpo --lora-dropout 0.1", "without dropout"],
    ["--algorithm grpo --layers-to-transform last-2", "adapter to all layers"],
    ["--algorithm grpo --target-modules q_proj", "trains whole groups"],
    ["--algorithm grpo --temperature 0.7", "trains at 1"],
    ["--algorithm grpo --top-p 0.9", "leave out tokens"],
    ["--algorithm grpo --action-mode regex --action-regex hit|stay", "constrains each token"],
    ["--algorithm grpo --action-mode free --entropy-coef 0.1", "Set it to 0"],
    ["--algorithm grpo --action-mode free --top-entropy-quantile 0.5", "Set it to 1"],
    ["--algorithm grpo --model somewhere/else --tokenizer embedded", "It has: embedded"],
  ])("refuses them before anything is spent: %s", async (options, problem) => {
    const proxy = await FlakyHttpProxy.start(url, () => "forward");
    const args = [
      "train",
      "blackjack",
      ...options.split(" ").filter(Boolean),
      "--backend",
      "tinker",
      "--base-url",
      proxy.url,
    ];
    const { status, err } = await runInHost([...args, "--output", path("refused")], { env });
    await proxy.stop();
    expect(err).toContain(problem);
    expect(status).not.toBe(0);
    expect(proxy.requests.map(({ path: name }) => name)).not.toContain("create_model");
  });
});

describe("llamagym tinker check", () => {
  it("measures how a service computes", async () => {
    const { out } = await runInHost(["tinker", "check", url, "--json"], { env });
    expect(JSON.parse(out)).toMatchObject({
      model: "embedded",
      reduction: "sum",
      losses: ["importance_sampling", "ppo", "cispo", "dro", "gspo"],
      clipSettings: ["ppo", "cispo"],
      severalTargets: "sparse",
      hasPromptLogProbs: true,
    });
    const { samplingError, ppoBounds, cispoBounds } = JSON.parse(out) as {
      samplingError: number;
      ppoBounds: readonly number[];
      cispoBounds: readonly number[];
    };
    expect(samplingError).toBeLessThan(1e-4);
    for (const bounds of [ppoBounds, cispoBounds]) {
      expect(bounds[0]).toBeCloseTo(0.8, 5);
      expect(bounds[1]).toBeCloseTo(1.2, 5);
    }
  });

  it("leaves out a loss that the service refuses, whose request takes no number", async () => {
    let passes = 0;
    const proxy = await FlakyHttpProxy.start(url, (name) =>
      name === "forward_backward" && ++passes === 4 ? { status: 422, answer: { detail: "unknown loss" } } : "forward",
    );
    const { out } = await runInHost(["tinker", "check", proxy.url, "--json"], { env });
    await proxy.stop();
    expect((JSON.parse(out) as { losses: readonly string[] }).losses).toEqual(["ppo", "cispo", "dro", "gspo"]);
  });
});
