import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { listen } from "../../../test/support/http-server.js";
import { AutoModelForCausalLM } from "../../generation/auto-model.js";
import type { LanguageModel } from "../../generation/language-model.js";
import { RewardScorer } from "../../rl/train/prompts/reward-scorer.js";
import { startHttpServer } from "../server/http-server.js";
import { ModelChatEngine } from "../server/model-chat-engine.js";
import { serveModels } from "../server/serve-models.js";
import { judge, type JudgeOptions } from "./judge.js";

const conversation = (content: string) => ({ messages: [{ role: "user", content }] });

/**
 * Serves these contents of replies in turn, the last one again and again; undefined is status 500.
 */
async function serveReplies(...replies: (string | undefined)[]) {
  const requests: { body: string; authorization: string | undefined }[] = [];
  let running = 0;
  let maxRunning = 0;
  const url = await listen((request, response) => {
    maxRunning = Math.max(maxRunning, ++running);
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      requests.push({ body: Buffer.concat(chunks).toString(), authorization: request.headers.authorization });
      const content = replies[Math.min(requests.length, replies.length) - 1];
      running--;
      response.writeHead(content === undefined ? 500 : 200, { "content-type": "application/json" });
      response.end(JSON.stringify({ choices: [{ message: { content } }] }));
    });
  });
  return { url, requests, maxRunning: () => maxRunning };
}

const open = (baseURL: string, options: Partial<JudgeOptions> = {}) =>
  judge({ model: "m", rubric: "Is it polite?", baseURL, retries: 0, apiKey: "key", ...options });

describe("a judge at a URL", () => {
  it("asks for a score by structured output, once for equal conversations", async () => {
    const { url, requests } = await serveReplies('{"score": 7}');
    const polite = open(`${url}/`);
    const scores = await Promise.all(["a", "a", "b"].map((text) => polite.score(conversation(text))));
    expect(scores).toEqual([7, 7, 7]);
    expect(requests).toHaveLength(2);
    expect(requests[0].authorization).toBe("Bearer key");
    expect(JSON.parse(requests[0].body)).toMatchObject({
      model: "m",
      temperature: 0,
      response_format: {
        type: "json_schema",
        json_schema: { schema: { properties: { score: { enum: { length: 11 } } } } },
      },
    });
    expect(polite.takeMetrics()).toEqual({
      "judge/calls": 2,
      "judge/cached": 1,
      "judge/failures": 0,
      "judge/score_mean": 7,
    });
    expect(polite.takeMetrics()).toEqual({ "judge/calls": 0, "judge/cached": 0, "judge/failures": 0 });
  });

  it.each([
    ["an error", undefined],
    ["text", "seven"],
    ["a score out of range", '{"score": 11}'],
    ["a fraction", '{"score": 1.5}'],
    ["another object", '{"points": 3}'],
  ])("replaces %s by the failure reward, counts it and asks again later", async (_, reply) => {
    const { url } = await serveReplies(reply, '{"score": 4}');
    const warnings: string[] = [];
    const polite = open(url, { failureReward: -1, onWarning: (message) => void warnings.push(message) });
    expect(await polite.score(conversation("a"))).toBe(-1);
    expect(polite.takeMetrics()).toMatchObject({ "judge/failures": 1 });
    expect(warnings).toHaveLength(1);
    expect(await polite.score(conversation("a"))).toBe(4);
  });

  it("prints the first failure without onWarning", async () => {
    const printed = vi.spyOn(console, "warn").mockReturnValue(undefined);
    const { url } = await serveReplies(undefined);
    const polite = open(url);
    await polite.score(conversation("a"));
    await polite.score(conversation("b"));
    const texts = printed.mock.calls.map(([text]) => String(text));
    printed.mockRestore();
    expect(texts.filter((text) => text.includes("The judge failed, so the reward is 0: status 500"))).toHaveLength(1);
  });

  it.each([
    [{ rubric: undefined }, "`rubric` must be a text that says what is judged, got undefined."],
    [{ rubric: "  " }, "`rubric` must be a text"],
    [{ rubric: 3 }, "`rubric` must be a text that says what is judged, got 3."],
    [{ model: "" }, "`model` must be the name of a model at `baseURL`, or a model, such as await"],
    [{ model: undefined }, "`model` must be the name of a model at `baseURL`, or a model, such as await"],
    [{ model: 3 }, "`model` must be the name of a model at `baseURL`, or a model, such as await"],
    [{ model: { name: "m" } }, "`model` must be the name of a model at `baseURL`, or a model, such as await"],
    [{ baseURL: undefined }, "needs a `baseURL`"],
    [{ baseURL: "" }, "`baseURL` must be a URL such as https://api.openai.com/v1"],
    [{ baseURL: "localhost:8080" }, "`baseURL` must be a URL such as https://api.openai.com/v1"],
    [{ baseURL: "file:///x" }, "`baseURL` must be a URL such as https://api.openai.com/v1"],
    [{ baseURL: "http://user:secret@host" }, "without user and password. A key belongs in `apiKey` or OPENAI_API_KEY."],
    [{ baseURL: "user:secret@host" }, "`baseURL` must be a URL such as https://api.openai.com/v1."],
    [{ apiKey: 4 }, "`apiKey` must be a string, got a number."],
    [{ apiKey: "secret\n" }, "The key in `apiKey` or OPENAI_API_KEY contains a line break"],
    [{ timeoutSeconds: 0 }, "`timeoutSeconds` must be a number > 0"],
    [{ timeoutSeconds: "3" }, "`timeoutSeconds` must be a number > 0"],
    [{ retries: -1 }, "`retries` must be an integer >= 0 and <= 10, got -1."],
    [{ maxParallel: 0.5 }, "`maxParallel` must be an integer >= 1, got 0.5."],
    [{ cacheFile: "" }, "`cacheFile` must be a non-empty string"],
    [{ failureReward: Number.NaN }, "`failureReward` must be from"],
    [{ min: 3, max: 3 }, "`min` and `max` must be integers"],
  ])("refuses %j", (options, message) => {
    const create = () => open("http://127.0.0.1:1", options as Partial<JudgeOptions>);
    expect(create).toThrow(expect.objectContaining({ code: "INVALID_ARGUMENT" }));
    expect(create).toThrow(message);
    expect(create).not.toThrow("secret");
  });

  it("sends no key where OPENAI_API_KEY is empty", async () => {
    vi.stubEnv("OPENAI_API_KEY", "");
    const { url, requests } = await serveReplies('{"score": 7}');
    await judge({ model: "m", rubric: "Is it polite?", baseURL: url }).score(conversation("a"));
    vi.unstubAllEnvs();
    expect(requests[0].authorization).toBeUndefined();
  });

  it("repeats failed requests", async () => {
    const { url } = await serveReplies(undefined, "{", '{"score": 4}');
    const polite = open(url, { retries: 2 });
    expect(await polite.score(conversation("a"))).toBe(4);
    expect(polite.takeMetrics()).toMatchObject({ "judge/calls": 3, "judge/cached": 0, "judge/failures": 0 });
  });

  it("gives up on a server that does not answer or sends too much", async () => {
    const silent = await listen((request) => void request.resume());
    expect(await open(silent, { timeoutSeconds: 0.1 }).score(conversation("a"))).toBe(0);
    const flooding = await listen((request, response) => {
      request.resume();
      response.end("x".repeat(2 ** 21));
    });
    const flooded = open(flooding);
    expect(await flooded.score(conversation("a"))).toBe(0);
    expect(flooded.takeMetrics()).toMatchObject({ "judge/failures": 1 });
  });

  it("keeps scores in a file and limits parallel requests", async () => {
    const folder = await mkdtemp(join(tmpdir(), "llamagym-judge-"));
    const cacheFile = join(folder, "scores.jsonl");
    const { url, requests, maxRunning } = await serveReplies('{"score": 3}');
    const texts = Array.from({ length: 12 }, (_, i) => `text ${i}`);
    const first = open(url, { cacheFile, maxParallel: 2 });
    await Promise.all(texts.map((text) => first.score(conversation(text))));
    expect(maxRunning()).toBeLessThanOrEqual(2);
    expect((await readFile(cacheFile, "utf8")).trim().split("\n")).toHaveLength(12);
    const second = open(url, { cacheFile });
    for (const text of texts) expect(await second.score(conversation(text))).toBe(3);
    expect(requests).toHaveLength(12);
    await rm(folder, { recursive: true });
  });

  it("is a reward function whose counts become metrics", async () => {
    const { url, requests } = await serveReplies('{"score": 6}');
    const scorer = new RewardScorer(open(url), { timeoutSeconds: 60, onWarning: () => {} });
    const { rewards, metrics } = await scorer.score([
      { row: { prompt: "Hello" }, completion: "Hi", completionIds: [1] },
    ]);
    expect([...rewards]).toEqual([6]);
    expect(metrics).toMatchObject({ "rewards/judge/mean": 6, "judge/calls": 1, "judge/failures": 0 });
    expect(requests[0].body).toContain(
      JSON.stringify(JSON.stringify({ role: "assistant", content: "Hi" })).slice(1, -1),
    );
  });
});

describe("a judge with our engine", () => {
  let model: LanguageModel;
  beforeAll(async () => {
    model = await AutoModelForCausalLM.fromPretrained("embedded");
  });
  afterAll(() => model.close());

  it("has the same score for a local model and for the same model served", async () => {
    const local = judge({ model, rubric: "Is it polite?", min: 1, max: 5 });
    const score = await local.score(conversation("Please."));
    expect([1, 2, 3, 4, 5]).toContain(score);
    const server = await startHttpServer({ port: 0 }, (app, metrics) =>
      serveModels(app, [new ModelChatEngine(model, "m")], { metrics }),
    );
    const served = judge({ model: "m", baseURL: `${server.url}/v1`, rubric: "Is it polite?", min: 1, max: 5 });
    expect(await served.score(conversation("Please."))).toBe(score);
    expect(served.takeMetrics()).toMatchObject({ "judge/calls": 1, "judge/failures": 0 });
    await server.close(0);
  });

  it("rejects options that contradict each other", () => {
    expect(() => judge({ model: "m", rubric: "r" })).toThrow(/needs a `baseURL`/);
    expect(() => judge({ model, rubric: "r", cacheFile: "x" })).toThrow(/`cacheFile`/);
    expect(() => judge({ model, rubric: "r", min: 5, max: 5 })).toThrow(/`min` and `max`/);
  });
});
