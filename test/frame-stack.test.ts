import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createSetup, openSetup } from "../src/app/distributed/run-setup.js";
import { RunEnv } from "../src/app/runs/run-env.js";
import { resolveTrainConfig, type TrainConfig } from "../src/app/runs/run-settings.js";
import { requireRunConfig } from "../src/rl/train/run-config.js";
import { openRunModel } from "../src/app/runs/open-model.js";
import { decodeChunk, parseRolloutLine } from "../src/rl/tracking/rollouts/chunk.js";
import { runInHost } from "./support/command.js";
import { writeRandomModel } from "./support/random-model.js";
import { createJob } from "./support/transports.js";

let model: string;
let removeModel: () => Promise<void>;
let folder: string;
beforeAll(async () => {
  ({ folder: model, remove: removeModel } = await writeRandomModel({ maxPositions: 2048, scale: 0.2 }));
  folder = await mkdtemp(join(tmpdir(), "frame-stack-"));
  await run(["train", "frozenlake", ...common(), ...trainArgs, "--output", path("run")]);
});
afterAll(async () => {
  await removeModel();
  await rm(folder, { recursive: true });
});

const path = (name: string) => join(folder, name);
const common = () => ["--frame-stack", "3", "--model", model, "--device", "cpu", "--threads", "1"];
const trainArgs = "--turns 32 --batch-size 16 --num-envs 2 --r 2 --action-mode choices --rollouts all".split(" ");

async function run(args: readonly string[]): Promise<string> {
  const { status, out, err } = await runInHost(args);
  expect({ status, err: status === 0 ? "" : err }).toEqual({ status: 0, err: "" });
  return out;
}

const readConfig = async () => resolveTrainConfig(await requireRunConfig<TrainConfig>(path("run")));

describe("--frame-stack", () => {
  it("shows earlier observations in training, and stays with a resumed run", async () => {
    await run(["train", "--resume", path("run"), "--turns", "48"]);
    const lines = (await readFile(join(path("run"), "rollouts.jsonl"), "utf8")).trim().split("\n");
    for (const line of lines) {
      const { episodes } = await decodeChunk(parseRolloutLine(line)!);
      const observations = episodes.flatMap(({ turns }) => turns.map(({ observation }) => observation));
      expect(observations.some((text) => /^2 steps ago: [^]*\n1 step ago: [^]*\nNow: /.test(text ?? ""))).toBe(true);
    }
  });

  it("belongs to the environment that a run names for other commands", async () => {
    const env = new RunEnv(await readConfig());
    expect(env.toJson()).toEqual({ env: "FrozenLake-v1", envOptions: {}, frameStack: 3 });
    expect(new RunEnv(env.toJson())).toEqual(env);
    expect([env.isAsRegistered, new RunEnv({ env: env.id }).isAsRegistered]).toEqual([false, true]);
  });

  it("shows them in play, demos and eval", async () => {
    const agent = ["--adapter", join(path("run"), "adapter")];
    const played = await run(["play", "frozenlake", "--agent", "--text", "--seed", "1", ...common(), ...agent]);
    expect(played).toContain("1 step ago: ");
    await run(["demos", "frozenlake", "--frame-stack", "2", "--episodes", "1", "--output", path("demos.jsonl")]);
    expect(await readFile(path("demos.jsonl"), "utf8")).toMatch(/"1 step ago: /);
    const evaluated = await run(["eval", "frozenlake", "-n", "2", ...common(), ...agent]);
    expect(evaluated).not.toContain("random actions");
  });

  it("shows them on workers", async () => {
    const config = await readConfig();
    const learner = await openRunModel(config, { valueHead: { kind: "linear", dropout: 0 } });
    const opened = await openSetup(await createSetup(config, learner), { model, device: "cpu", threads: 1 }, () => {});
    try {
      const { trajectories } = await opened.runner.run(createJob(6));
      const prompts = trajectories.flatMap(({ turns }) =>
        turns.map(({ prompt }) => learner.tokenizer.decode([...prompt])),
      );
      expect(prompts.some((text) => text.includes("2 steps ago: "))).toBe(true);
    } finally {
      await opened.close();
      await learner.close();
    }
  });
});
