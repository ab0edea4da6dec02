import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, it } from "vitest";
import { grpo, onlineDpo, ppo, reinforce, rloo } from "../src/rl/algorithms/index.js";
import { openTrainable } from "../src/generation/auto-model.js";
import { openEnv } from "../src/envs/registry/open-env.js";
import { TextAgent, type AgentOptions } from "../src/rl/agent/index.js";
import { GrpoTrainer } from "../src/rl/train/prompts/grpo-trainer.js";
import { DpoTrainer } from "../src/rl/preferences/dpo-trainer.js";
import { KtoTrainer } from "../src/rl/preferences/kto-trainer.js";
import { SftTrainer } from "../src/rl/train/sft-trainer.js";
import { InProcessTransport } from "../src/rl/rollout/rollout-job.js";
import { Trainer } from "../src/rl/train/trainer.js";
import { TokenUsage } from "../src/tinker/client/token-usage.js";
import { CountingEnv, EvenOddAgent } from "./support/counting.js";
import { TrainableModels } from "./support/trainable.js";

const page = fileURLToPath(new URL("../docs/metrics.md", import.meta.url));

const models = new TrainableModels();
let folder: string;
beforeAll(async () => {
  ({ folder } = await models.open({ maxPositions: 512, scale: 0.2 }));
});
afterAll(() => models.close());

const logged = new Set<string>();
const tracker = {
  log: (_step: number, metrics: object) => {
    for (const name of Object.keys(metrics)) logged.add(name);
  },
};

const PPO = ppo({ batchSize: 16, rewardScaling: true, explorationBonus: 0.1, initKlCoef: 0.1, syncRefModel: true });

class SuccessEnv extends CountingEnv {
  override step(action: number) {
    return { ...super.step(action), info: { is_success: true } };
  }
}

async function openModel(valueHead: null | object) {
  const model = await openTrainable(folder, { device: "cpu", threads: 1, peftConfig: { r: 2 }, valueHead });
  models.track(model);
  return model;
}

async function trainInEnv(options: AgentOptions<number, number>): Promise<void> {
  const agent = new EvenOddAgent(await openModel(options.algorithm === PPO ? {} : null), undefined, options);
  const createEnv = () => new SuccessEnv();
  const transport = new InProcessTransport({
    model: agent.model.causalLM,
    newEpisode: (random) => agent.newEpisode(random),
    createEnv,
    settings: agent.settings,
    onWarning: () => {},
  });
  await new Trainer({ agent, env: createEnv, numEnvs: 4, turns: 40, transport, evalSteps: 1, evalEpisodes: 2 }).train({
    tracker,
  });
  await transport.close();
}

async function trainInGames(): Promise<void> {
  const env = () => openEnv("Nim-v0", { piles: [1, 2] });
  const { text } = await env();
  const model = await openModel({});
  const adapter = join(folder, "adapter");
  await model.savePretrained(adapter);
  const agent = new TextAgent(model, text!, {
    actionMode: "scored",
    historyTurns: 0,
    algorithm: ppo({ batchSize: 100 }),
  });
  const league = { selfPlay: true, opponents: `self,past,random,minimax,${adapter}`, evalExact: true };
  await new Trainer({ agent, env, numEnvs: 8, episodes: 200, evalSteps: 10, evalEpisodes: 2, ...league }).train({
    tracker,
  });
}

async function trainOnPrompts(): Promise<void> {
  const reward = ({ completions }: { completions: readonly string[] }) => completions.map(({ length }) => length);
  const trainer = new GrpoTrainer({
    model: await openModel(null),
    rewardFuncs: Object.defineProperty(reward, "name", { value: "NAME" }),
    trainDataset: [{ prompt: "1" }, { prompt: "2" }],
    args: { maxSteps: 1, batchSize: 8, maxCompletionLength: 4 },
    trackers: [tracker],
  });
  await trainer.train();
  const tool = { name: "look", parameters: { type: "object" }, execute: () => "nothing" };
  const withTools = new GrpoTrainer({
    model: await openModel(null),
    tools: [tool],
    rewardFuncs: Object.defineProperty(reward, "name", { value: "NAME" }) as never,
    trainDataset: [{ prompt: [{ role: "user", content: "1" }] }],
    args: { maxSteps: 1, batchSize: 8, maxCompletionLength: 4 },
    trackers: [tracker],
  });
  await withTools.train();
}

async function fineTune(): Promise<void> {
  const train = [{ prompt: "1", completion: "2" }];
  const trainer = await SftTrainer.create(await openModel(null), { train, evaluation: train, maxSteps: 1 });
  await trainer.train({ tracker });
}

async function trainOnPreferences(): Promise<void> {
  const pairs = [{ prompt: "1", chosen: "2", rejected: "3" }];
  const dpo = await DpoTrainer.create(await openModel(null), { train: pairs, evaluation: pairs, maxSteps: 1 });
  await dpo.train({ tracker });
  const completions = [true, false].map((label) => ({ prompt: "1", completion: "2", label }));
  const kto = await KtoTrainer.create(await openModel(null), {
    train: completions,
    evaluation: completions,
    maxSteps: 1,
  });
  await kto.train({ tracker });
}

/** Names in the first columns of the page's tables. */
async function documentedNames(): Promise<string[]> {
  const rows = (await readFile(page, "utf8")).split("\n").filter((line) => line.startsWith("| `"));
  return rows.flatMap((row) => Array.from(row.split("|")[1].matchAll(/`([^`]+)`/g), ([, name]) => name));
}

it("docs/metrics.md lists the metrics that short runs of all algorithms log, and no others", async () => {
  const groups = { batchSize: 8, numGenerations: 4, filterGroups: false };
  await trainInEnv({
    algorithm: PPO,
    onlineSft: true,
  });
  for (const lossType of ["dapo", "cispo", "vespo"] as const)
    await trainInEnv({ algorithm: grpo({ ...groups, lossType, beta: 0.1, useAdaptiveEntropy: lossType === "dapo" }) });
  await trainInEnv({ algorithm: rloo(groups) });
  await trainInEnv({ algorithm: onlineDpo({ batchSize: 8 }) });
  await trainInEnv({ algorithm: reinforce({ batchSize: 8 }), teacher: { model: "self", hint: "1" } });
  await trainInEnv({ algorithm: reinforce({ batchSize: 8, klCoef: 0.1 }) });
  await trainInGames();
  await trainOnPrompts();
  await fineTune();
  await trainOnPreferences();
  const documented = await documentedNames();
  expect(new Set(documented).size).toBe(documented.length);
  for (const name of Object.keys(new TokenUsage().metrics)) logged.add(name);
  expect([...logged].sort()).toEqual(documented.sort());
}, 120_000);
