import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { LanguageModel } from "../src/generation/index.js";
import type { TeacherServer } from "../src/rl/algorithms/learner.js";
import { createDistillation } from "../src/rl/algorithms/teacher.js";
import type { Turn } from "../src/rl/rollout/trajectory.js";
import { TrainableModels } from "./support/trainable.js";
import { closeHost, runInHost, startCommand } from "./support/command.js";

const folder = mkdtempSync(join(tmpdir(), "teacher-server-"));
const KEY = "key-of-this-test";

const servers: { readonly close: () => void }[] = [];
let student: LanguageModel;
let teacher: LanguageModel;
let baseURL: string;
let embeddedURL: string;

async function serve(...args: string[]): Promise<string> {
  const child = startCommand(["serve", "--port", "0", "--threads", "1", ...args]);
  servers.push({ close: () => child.kill("SIGKILL") });
  return new Promise<string>((resolve, reject) => {
    let out = "";
    child.stdout.on("data", (data: Buffer) => {
      out += data.toString();
      const found = /(http:\/\/[\w.]+:\d+)/u.exec(out)?.[1];
      if (found !== undefined) resolve(`${found}/v1`);
    });
    child.once("exit", (status) => reject(new Error(`The server exited with status ${status}.`)));
  });
}

/** Starts a server that answers /models, and completions by a function of the request. */
async function answer(respond: (body: { prompt: number[][] }, request: number) => [number, object]): Promise<string> {
  let count = 0;
  const server = createServer((request, response) => {
    let text = "";
    request.on("data", (data: Buffer) => (text += data.toString()));
    request.on("end", () => {
      const [status, body] =
        request.url === "/v1/models" ? [200, { data: [{ id: "a" }] }] : respond(JSON.parse(text), count++);
      response.writeHead(status, { "content-type": "application/json", "retry-after": "0" }).end(JSON.stringify(body));
    });
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  servers.push({ close: () => server.close() });
  return `http://127.0.0.1:${(server.address() as { port: number }).port}/v1`;
}

const models = new TrainableModels();
beforeAll(async () => {
  student = await models.open();
  const reference = await models.open({ scale: 0.6 });
  teacher = reference;
  baseURL = await serve("--model", reference.folder, "--api-key", KEY);
  embeddedURL = await serve("--model", "embedded");
});
afterAll(async () => {
  for (const server of servers) server.close();
  await models.close();
  closeHost();
  rmSync(folder, { recursive: true });
});

const create = async (model: TeacherServer | LanguageModel, options: object = {}) =>
  createDistillation({ model, ...options }, { student, microBatchTokens: 64, toTeacherPrompt: ({ prompt }) => prompt });

const turn = (prompt: number[], tokens: number[], others: Partial<Turn> = {}) =>
  ({ prompt, tokens, logProbs: tokens.map(() => -1), allowedTokens: undefined, ...others }) as Turn;

const allowed = (...sets: number[][]) => sets.map((tokens) => Int32Array.from(tokens));
const free = [turn([5, 6, 7], [8, 9, 10, 2]), turn([5, 6, 7, 11], [12, 300]), turn([5, 6, 7], [8, 9, 10, 2])];
const constrained = [
  turn([5, 6, 7], [20, 21], { allowedTokens: allowed([20, 30, 31], [21, 22]) }),
  turn([9, 9], [40], { allowedTokens: allowed(Array.from({ length: 24 }, (_, i) => 30 + i)) }),
  turn([9, 9], [41, 50], { allowedTokens: allowed([41], [50, 60]) }),
];
const scored = turn([5, 6, 7], [20, 21], {
  actionCandidates: { sequences: [[20, 21], [30], [31, 32, 33]], weights: [0.5, 1, 0.3], chosen: 0 },
});

describe("a teacher at a URL", () => {
  it.each([
    ["free completions", free, 1],
    ["constrained completions", constrained, 1],
    ["constrained completions at another temperature", constrained, 0.7],
    ["actions sampled by their score", [scored], 0.7],
  ])("gives the log-probabilities of the model in this process (%s)", async (_name, turns, temperature) => {
    const local = await create(teacher);
    const remote = await create({ baseURL, apiKey: KEY });
    const expected = await local.teacher.score(turns, temperature);
    // The second time from what is kept.
    for (const scores of [
      await remote.teacher.score(turns, temperature),
      await remote.teacher.score(turns, temperature),
    ]) {
      const { logProbs, alternatives } = scores;
      expect(logProbs.map(({ length }) => length)).toEqual(expected.logProbs.map(({ length }) => length));
      logProbs.forEach((ofTurn, i) =>
        ofTurn.forEach((value, t) => expect(value).toBeCloseTo(expected.logProbs[i][t], 4)),
      );
      // The model in this process scores the alternatives of few tokens only.
      expected.alternatives!.forEach((ofTurn, i) =>
        ofTurn.forEach((all, t) => all?.forEach((value, a) => expect(alternatives![i][t]![a]).toBeCloseTo(value, 4))),
      );
    }
    await local.teacher.release();
    await remote.teacher.release();
  });

  it("refuses what a server cannot score, by name", async () => {
    const { teacher: remote } = await create({ baseURL, apiKey: KEY });
    await expect(remote.score(free, 0.7)).rejects.toThrow(/at temperature 1, and the student samples at 0\.7/);
    const kept = turn([5, 6], [7], { allowedTokens: allowed([7, 8]), hasKeptTokens: true });
    await expect(remote.score([kept], 1)).rejects.toThrow(/Set topK, topP and minP/);
    await remote.release();
  });

  it("refuses a server of another model, with another key, and without scores of prompts", async () => {
    await expect(create({ baseURL: embeddedURL })).rejects.toThrow(
      /tokenizer differs from the student's: token \d+ is/,
    );
    await expect(create({ baseURL, apiKey: "other" })).rejects.toThrow(/Set OPENAI_API_KEY to a key of this service/);
    await expect(create({ baseURL, apiKey: KEY, model: "gpt" })).rejects.toThrow(/gpt/);
    await expect(create({ baseURL: "127.0.0.1:8000" })).rejects.toThrow(
      /`baseURL` must be a URL such as http:\/\/127\.0\.0\.1:8000\/v1, got/,
    );
    const silent = await answer(() => [
      200,
      { choices: [{ index: 0, logprobs: { tokens: ["a"], token_logprobs: [-1] } }] },
    ]);
    await expect(create({ baseURL: silent })).rejects.toThrow(/does not return the log-probabilities of prompts/);
    const strict = await answer(() => [400, { error: { message: "echo is not supported" } }]);
    await expect(create({ baseURL: strict })).rejects.toThrow(/HTTP 400 echo is not supported/);
  });

  it("asks again while a server is busy, and takes results in their order", async () => {
    const url = await answer(({ prompt }, request) => {
      if (request % 2 === 1) return [503, { error: { message: "busy" } }];
      const texts = (tokens: number[]) =>
        [...tokens, 0].map((token) => student.tokenizer.decode([token], { skipSpecialTokens: false }));
      const choices = prompt.map((tokens, index) => ({
        index,
        logprobs: { tokens: texts(tokens), token_logprobs: [null, ...tokens.map((token) => -token)] },
      }));
      return [200, { choices: choices.reverse() }];
    });
    const { teacher: remote } = await create({ baseURL: url });
    const [first, second] = (await remote.score(free, 1)).logProbs;
    // This server says of each token how probable the one before it is.
    expect([Array.from(first), Array.from(second)]).toEqual([
      [-7, -8, -9, -10],
      [-11, -12],
    ]);
    await remote.release();
  });
});

describe("llamagym train --teacher URL", () => {
  const short = ["--turns", "256", "--sft-warm-start", "none", "--threads", "1", "--seed", "3", "--no-tensorboard"];

  it("trains as with the teacher in this process", async () => {
    const teach = async (teacherName: string, name: string) => {
      const output = join(folder, name);
      const given = ["--teacher", teacherName, "--teacher-hint", "Stay from 17 on.", "--teacher-reward-coef", "0"];
      const result = await runInHost(["train", "blackjack", ...short, ...given, "--output", output]);
      expect([result.status, result.err]).toEqual([0, expect.not.stringMatching(/Error/)]);
      const line = readFileSync(join(output, "metrics.jsonl"), "utf8").trim().split("\n")[0];
      return JSON.parse(line) as Record<string, number>;
    };
    const [local, remote] = [await teach("embedded", "local"), await teach(embeddedURL, "remote")];
    expect(remote["teacher/kl"]).toBeCloseTo(local["teacher/kl"], 5);
    expect(Math.abs(local["teacher/kl"])).toBeGreaterThan(0.0001);
    const loss = Object.keys(local).find((name) => /policy_loss|loss\/policy/u.test(name))!;
    expect(remote[loss]).toBeCloseTo(local[loss], 4);
  });

  it("has hints of the environment in its prompts", async () => {
    const output = join(folder, "hints");
    const given = ["--teacher", "self", "-o", "hints=true", "--turns", "32", "--batch-size", "32", "--output", output];
    const { status, err } = await runInHost(["train", "text-world", ...short.slice(2), ...given]);
    expect([status, err]).toEqual([0, expect.not.stringMatching(/Error/)]);
    const line = readFileSync(join(output, "metrics.jsonl"), "utf8").trim().split("\n")[0];
    expect(Math.abs((JSON.parse(line) as Record<string, number>)["teacher/kl"])).toBeGreaterThan(0.0001);
  });

  it.each([
    [["--teacher", "self"], /teacher. is self, which needs hints.*Blackjack-v1 has no `info\.hint`/],
    [["--teacher-model", "a"], /has no effect without `teacher`|--teacher-model has no effect without --teacher/],
    [["--teacher", "embedded", "--teacher-model", "a"], /names a model of a server/],
    [
      ["--teacher", "http://127.0.0.1:2/v1", "--action-mode", "free", "--temperature", "0.7"],
      /scores free completions/,
    ],
    [["--teacher", "http://127.0.0.1:2/v1", "--top-p", "0.9"], /leave out tokens/],
    [["--teacher", "http://127.0.0.1:2/v1"], /127\.0\.0\.1:2\/v1 failed at .*: ECONNREFUSED/],
  ])("refuses %j in one line, and leaves no folder", async (args, message) => {
    const result = await runInHost(["train", "blackjack", ...short, ...args, "--output", join(folder, "refused")]);
    expect(result.status).not.toBe(0);
    expect(result.err).toMatch(message);
    expect(() => readFileSync(join(folder, "refused", "config.json"))).toThrow(/ENOENT/);
  });
});

describe("llamagym sft --teacher", () => {
  const prompts = [4, 12, 18].map((sum) => ({ prompt: `You have ${sum}. hit or stay?` }));
  const small = ["--threads", "1", "--max-steps", "2", "--no-tensorboard"];
  const teach = (...args: string[]) => runInHost(["sft", ...small, ...args], { cwd: folder });
  const readRows = (name: string) =>
    readFileSync(join(folder, name, "completions.jsonl"), "utf8")
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as Record<string, unknown>);

  beforeAll(() => {
    const messages = {
      messages: [
        { role: "user", content: "14 or 20?" },
        { role: "assistant", content: "old" },
      ],
    };
    const write = (name: string, rows: object[]) =>
      writeFileSync(join(folder, name), rows.map((row) => JSON.stringify(row)).join("\n"));
    write("prompts.jsonl", [...prompts, messages]);
    write("broken.jsonl", [{ question: "" }]);
  });

  it("trains on completions that another model samples, here and at a URL, and resumes", async () => {
    const given = ["--data", "prompts.jsonl", "--teacher-generations", "2", "--teacher-temperature", "0"];
    const long = [...given, "--teacher-max-tokens", "32"];
    const local = await teach(...long, "--teacher", "embedded", "--output", "sft-local");
    expect([local.status, local.err]).toEqual([0, expect.not.stringMatching(/Error/)]);
    const rows = readRows("sft-local");
    expect(rows.length).toBeGreaterThan(0);
    expect(rows[0]).toEqual({ ...prompts[0], completion: expect.any(String) as string });
    expect(rows.at(-1)!.messages).toEqual([
      { role: "user", content: "14 or 20?" },
      { role: "assistant", content: expect.not.stringMatching(/^old$/) as string },
    ]);
    const remote = await teach(...long, "--teacher", embeddedURL, "--output", "sft-remote");
    expect([remote.status, remote.err]).toEqual([0, expect.not.stringMatching(/Error/)]);
    expect(readRows("sft-remote")).toEqual(rows);
    const resume = () => runInHost(["sft", "--resume", "sft-local"], { cwd: folder });
    expect((await resume()).status).toBe(0);
    rmSync(join(folder, "sft-local", "completions.jsonl"));
    expect((await resume()).err).toMatch(/completions is missing/);
  });

  it("gives the teacher a hint that the examples do not have", async () => {
    const requests: { messages: unknown }[] = [];
    const url = await answer((body) => {
      requests.push(body as unknown as { messages: unknown });
      return [200, { choices: [{ message: { content: "stay" }, finish_reason: "stop" }] }];
    });
    const given = ["--data", "prompts.jsonl", "--teacher", url, "--teacher-hint", "Stay from 17 on."];
    expect((await teach(...given, "--output", "hinted")).status).toBe(0);
    expect(requests.map(({ messages }) => messages)).toContainEqual([
      { role: "system", content: "Stay from 17 on." },
      { role: "user", content: prompts[0].prompt },
    ]);
    expect(readRows("hinted")[0]).toEqual({ ...prompts[0], completion: "stay" });
  });

  it.each([
    [
      ["--data", "prompts.jsonl", "--teacher", "embedded", "--teacher-max-tokens", "1"],
      /All 4 completions .* are empty, or/,
    ],
    [
      ["--data", "broken.jsonl", "--teacher", "embedded"],
      /broken\.jsonl, line 1: it must have a prompt for the teacher/,
    ],
    [["--data", "prompts.jsonl", "--teacher-hint", "a"], /has no effect without/],
    [["--data", "prompts.jsonl", "--teacher", "self"], /is for llamagym train/],
    [
      ["--data", "prompts.jsonl", "--teacher", "embedded", "--teacher-hint", "a", "--prompts", "text"],
      /needs messages/,
    ],
  ])("refuses %j in one line, and leaves no folder", async (args, message) => {
    const result = await teach(...args, "--output", "refused-sft");
    expect(result.status).not.toBe(0);
    expect(result.err).toMatch(message);
    expect(readdirSync(folder)).not.toContain("refused-sft");
  });
});
