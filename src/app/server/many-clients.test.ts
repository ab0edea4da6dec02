import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { make, openEnv } from "../../envs.js";
import { serveEnv } from "../../envs/bridges/index.js";
import { AutoModelForCausalLM } from "../../generation/auto-model.js";
import type { LanguageModel } from "../../generation/language-model.js";
import { startDashboard } from "../dashboard/server.js";
import { startRun } from "../runs/run.js";
import { startHttpServer } from "./http-server.js";
import { ModelChatEngine } from "./model-chat-engine.js";
import { serveModels } from "./serve-models.js";

/** More than the listeners of an emitter or a signal above which Node.js warns of a leak, 10. */
const CLIENTS = 50;

const times = <Value>(run: () => Promise<Value>) => Promise.all(Array.from({ length: CLIENTS }, run));

/** Runs something and returns the warnings that Node.js printed meanwhile. */
async function collectWarnings(run: () => Promise<unknown>): Promise<string[]> {
  const warnings: string[] = [];
  const note = (warning: Error) => warnings.push(String(warning));
  process.on("warning", note);
  await run();
  // Warnings are emitted in the next tick.
  await new Promise((done) => setImmediate(done));
  process.off("warning", note);
  return warnings;
}

let model: LanguageModel;
let root: string;

beforeAll(async () => {
  model = await AutoModelForCausalLM.fromPretrained("embedded");
  root = await mkdtemp(join(tmpdir(), "many-clients-"));
});
afterAll(async () => {
  await model.close();
  await rm(root, { recursive: true });
});

it("streams of a server print no warning", async () => {
  const warnings = await collectWarnings(async () => {
    const server = await startHttpServer({ port: 0 }, (app) => serveModels(app, [new ModelChatEngine(model, "m")], {}));
    const body = JSON.stringify({
      messages: [{ role: "user", content: "hit or stay?" }],
      max_tokens: 10,
      n: 2,
      stream: true,
    });
    const headers = { "content-type": "application/json" };
    const texts = await times(async () =>
      (await fetch(`${server.url}/v1/chat/completions`, { method: "POST", headers, body })).text(),
    );
    expect(texts.every((text) => text.endsWith("data: [DONE]\n\n"))).toBe(true);
    await server.close();
  });
  expect(warnings).toEqual([]);
});

it("completions with one signal print no warning", async () => {
  const warnings = await collectWarnings(async () => {
    const { signal } = new AbortController();
    const completions = await times(() => model.generate("hit", { maxNewTokens: 3, seed: 1, signal }));
    expect(completions).toHaveLength(CLIENTS);
  });
  expect(warnings).toEqual([]);
});

it("pages of the dashboard print no warning", async () => {
  const warnings = await collectWarnings(async () => {
    const dashboard = await startDashboard({ runs: root });
    const { origin, searchParams } = new URL(dashboard.url);
    const headers = { authorization: `Bearer ${searchParams.get("token")}` };
    const pages = await times(async () => fetch(`${origin}/api/events`, { headers }));
    const readers = pages.map((page) => page.body!.getReader());
    await Promise.all(readers.map((reader) => reader.read()));
    await Promise.all(readers.map((reader) => reader.cancel()));
    await dashboard.close();
  });
  expect(warnings).toEqual([]);
});

it("clients of a served environment print no warning", async () => {
  const warnings = await collectWarnings(async () => {
    const server = await serveEnv(() => make("Taxi-v4"), { port: 0 });
    const envs = await times(() => openEnv(`openenv:${server.url}`));
    await Promise.all(envs.map(async (env) => env.reset()));
    await Promise.all(envs.map(async (env) => env.close()));
    await server.close();
  });
  expect(warnings).toEqual([]);
});

it("a run with 64 environments prints no warning", async () => {
  const warnings = await collectWarnings(async () => {
    const options = { env: "Blackjack-v1", model: "embedded", numEnvs: 64, turns: 128, batchSize: 64 };
    const run = await startRun(options, join(root, "run"));
    await run.train();
    await run.close();
  });
  expect(warnings).toEqual([]);
});
