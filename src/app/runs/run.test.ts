import { existsSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { writeRandomModel } from "../../../test/support/random-model.js";
import { make, register } from "../../envs.js";
import { resumeRun, startRun, type Run } from "./run.js";

let folder: string;
let opened = 0;
let closed = 0;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "run-"));
  register({
    id: "Counted-v0",
    entryPoint: () => {
      const env = make("Blackjack-v1");
      const close = env.close.bind(env);
      opened++;
      return Object.assign(env, {
        close: async () => {
          closed++;
          await close();
        },
      });
    },
  });
});
afterAll(() => rm(folder, { recursive: true }));

const settings = { numEnvs: 2, batchSize: 8, miniBatchSize: 8, device: "cpu", threads: 1 } as const;

it("opens no environment only to look at it, in new and in resumed runs", async () => {
  const run = await startRun({ env: "Counted-v0", turns: 8, ...settings }, join(folder, "counted"));
  expect(opened).toBe(2);
  await run.train();
  expect(opened).toBe(2);
  await run.close();
  const resumed = await resumeRun(join(folder, "counted"), { turns: 16 });
  await resumed.train();
  await resumed.close();
  expect([opened, closed]).toEqual([4, 4]);
});

it("warns of files of the environment that changed before a run is resumed", async () => {
  register({ id: "Rewarded-v0", entryPoint: () => make("Blackjack-v1") });
  const path = join(folder, "reward.mjs");
  await writeFile(path, "export const goal = () => 1;");
  const runFolder = join(folder, "changed");
  const envOptions = { reward: `${path}#goal`, tasks: ["a task"] };
  const run = await startRun({ env: "Rewarded-v0", envOptions, turns: 8, ...settings }, runFolder);
  await run.train();
  await run.close();
  const warningsOf = async (turns: number) => {
    const warnings: string[] = [];
    const resumed = await resumeRun(runFolder, { turns }, { onWarning: (message) => void warnings.push(message) });
    await resumed.close();
    return warnings.filter((message) => message.includes(path));
  };
  expect(await warningsOf(16)).toEqual([]);
  await writeFile(path, "export const goal = () => 2;");
  expect(await warningsOf(24)).toEqual([expect.stringMatching(/reward\.mjs has changed since the run started/)]);
});

it.each([
  ["opponents that the game does not have", { env: "Pig-v0", opponents: "minimax" }, "no minimax player"],
  ["opponents that do not exist", { env: "Nim-v0", opponents: "self:1,stockfish:1" }, "unknown opponent"],
  ["a game with one player", { env: "Blackjack-v1" }, "one player"],
])("refuses %s before it writes a folder", async (_, options, message) => {
  const runFolder = join(folder, "refused");
  const start = startRun({ turns: 8, selfPlay: true, sftWarmStart: "none", ...settings, ...options }, runFolder);
  await expect(start).rejects.toThrow(message);
  expect(existsSync(runFolder)).toBe(false);
});

it("closes an environment that was not handed out", async () => {
  const run = await startRun({ env: "Counted-v0", turns: 8, ...settings }, join(folder, "closed"));
  await run.close();
  expect(closed).toBe(opened);
});

it("trains the layers of its settings, also of those that follow from the environment", async () => {
  const { folder: model, remove } = await writeRandomModel({ config: { num_hidden_layers: 6 } });
  const options = { env: "Blackjack-v1", model, ...settings } as const;
  const readLayers = ({ config, agent }: Run) => [
    config.layersToTransform,
    agent.model.causalLM.adapter?.config.layersToTransform,
  ];
  const runFolder = join(folder, "layers");
  const run = await startRun({ ...options, turns: 8 }, runFolder);
  expect(readLayers(run)).toEqual(["last-4", [2, 3, 4, 5]]);
  await run.train();
  await run.close();
  // As given, without what follows from the environment.
  const resumed = await resumeRun(runFolder, { ...options, turns: 16 });
  expect(readLayers(resumed)).toEqual(["last-4", [2, 3, 4, 5]]);
  await resumed.train();
  await resumed.close();
  await remove();
});
