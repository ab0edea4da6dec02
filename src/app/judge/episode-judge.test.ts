import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { listen } from "../../../test/support/http-server.js";
import { make } from "../../envs.js";
import { startGatewayRun } from "../runs/gateway-run.js";
import { startRun } from "../runs/run.js";
import { EpisodeJudge } from "./episode-judge.js";
import { JudgedEnv } from "./judged-env.js";

interface Body {
  readonly messages: readonly { readonly content: string }[];
}

let folder: string;
let judgeUrl: string;
const asked: string[] = [];

/** A judge that gives 10 to conversations in which the player stays. */
beforeEach(async () => {
  judgeUrl = await listen((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const { messages } = JSON.parse(Buffer.concat(chunks).toString()) as Body;
      const { content } = messages[1];
      asked.push(content);
      response.writeHead(200, { "content-type": "application/json" });
      const score = content.includes('{"role":"assistant","content":"stay"}') ? 10 : 5;
      response.end(JSON.stringify({ choices: [{ message: { content: JSON.stringify({ score }) } }] }));
    });
  });
});

beforeAll(async () => void (folder = await mkdtemp(join(tmpdir(), "llamagym-judge-"))));
afterAll(() => rm(folder, { recursive: true }));

const judgeConfig = () => ({ judge: "m", judgeUrl, judgeRubric: "Was it wise?" });

async function readMetrics(name: string): Promise<Record<string, number>[]> {
  const text = await readFile(join(folder, name, "metrics.jsonl"), "utf8");
  return text
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Record<string, number>);
}

const isJudged = (metrics: Record<string, number>) => metrics["judge/calls"] !== undefined;

describe("a run's judge", () => {
  it("adds its score of the conversation to the last reward of an episode", async () => {
    const judge = EpisodeJudge.create(judgeConfig(), () => {})!;
    const [env, plain] = [new JudgedEnv(make("Blackjack-v1"), judge), make("Blackjack-v1")];
    await env.reset({ seed: 1 });
    await plain.reset({ seed: 1 });
    // The conversation is part of the state.
    const restored = new JudgedEnv(make("Blackjack-v1"), judge);
    await restored.reset({ seed: 2 });
    restored.setState(env.getState());
    const expected = await plain.step(0);
    expect(await restored.step(0)).toEqual({ ...expected, reward: expected.reward + 1 });
    expect(await env.step(0)).toEqual({ ...expected, reward: expected.reward + 1 });
    expect(asked.at(-1)).toMatch(/"role":"system".*blackjack.*"role":"user".*"content":"stay"/s);
    expect(judge.takeMetrics()).toEqual({
      "judge/calls": 1,
      "judge/cached": 1,
      "judge/failures": 0,
      "judge/score_mean": 10,
    });
    expect(judge.takeMetrics()).toEqual({});
  });

  it("scores the episodes of a run and logs its metrics", async () => {
    const options = { env: "Blackjack-v1", turns: 64, batchSize: 32, actionMode: "choices", ...judgeConfig() } as const;
    const run = await startRun(options, join(folder, "env"));
    await run.train();
    await run.close();
    const judged = (await readMetrics("env")).filter(isJudged);
    expect(judged).toHaveLength(2);
    for (const metrics of judged) {
      expect(metrics["judge/score_mean"]).toBeGreaterThanOrEqual(5);
      expect(metrics["judge/failures"]).toBe(0);
      // The worst hand returns -1 of the environment and 0.5 of the judge.
      expect(metrics["rollout/ep_rew_mean"]).toBeGreaterThan(-0.5);
    }
  });

  it("scores the sessions of a gateway at their end", async () => {
    const options = { turns: 4, batchSize: 4, miniBatchSize: 4, maxCompletionLength: 4, ...judgeConfig() };
    const run = await startGatewayRun(options, join(folder, "gateway"), { server: { port: 0 } });
    const trained = run.train();
    const post = async (path: string, body: object) => {
      const headers = { "content-type": "application/json" };
      const response = await fetch(run.opened.url + path, { method: "POST", headers, body: JSON.stringify(body) });
      return (await response.json()) as { id: string; return: number };
    };
    for (let i = 0; i < 4; i++) {
      const { id } = await post("/sessions", {});
      const messages = [{ role: "user", content: `Hand ${i}` }];
      await post(`/sessions/${id}/v1/chat/completions`, { model: "any", messages });
      expect(await post(`/sessions/${id}/end`, { reward: 2 })).toMatchObject({ return: 2.5 });
    }
    expect(asked.at(-1)).toMatch(/\[\{"role":"user","content":"Hand 3"\},\{"role":"assistant","content":/);
    await trained;
    await run.close();
    expect((await readMetrics("gateway")).filter(isJudged)).toMatchObject([
      { "judge/calls": 4, "judge/cached": 0, "judge/failures": 0, "judge/score_mean": 5 },
    ]);
  });

  it("needs a rubric, and a judge for one", () => {
    expect(() => EpisodeJudge.create({ judge: "m" }, () => {})).toThrow(/needs a rubric/);
    const create = (config: object) => () => EpisodeJudge.create({ judge: "m", judgeRubric: "r", ...config }, () => {});
    expect(create({ judgeRubric: " \n" })).toThrow("`judgeRubric` (--judge-rubric) is blank");
    expect(create({ judgeUrl: "localhost:8080" })).toThrow("`judgeUrl` must be a URL such as http://127.0.0.1:8080/v1");
    expect(create({ judgeUrl: "http://a:b@host/v1" })).toThrow("A key belongs in OPENAI_API_KEY");
    expect(() => EpisodeJudge.create({ judgeRubric: "r" }, () => {})).toThrow(/need a judge/);
    expect(EpisodeJudge.create({}, () => {})).toBeUndefined();
  });
});
