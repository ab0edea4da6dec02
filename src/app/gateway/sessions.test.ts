import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { AutoModelForCausalLMWithValueHead } from "../../generation/auto-model.js";
import { CompletionCache } from "../../generation/sampling/completion-cache.js";
import type { LanguageModel } from "../../generation/language-model.js";
import { LogProbScorer } from "../../rl/algorithms/update/log-prob-scorer.js";
import { decisionIndices } from "../../rl/algorithms/update/turn-batch.js";
import { startHttpServer, type RunningServer } from "../server/http-server.js";
import { ModelChatEngine } from "../server/model-chat-engine.js";
import type { SessionRecord } from "./session.js";
import { mountSessionRoutes } from "./session-routes.js";
import { SessionStore } from "./session-store.js";
import { UpdateGate } from "./update-gate.js";

interface Message {
  readonly role: string;
  readonly content?: string | null;
  readonly tool_calls?: readonly { readonly id: string; readonly function: { readonly name: string } }[];
}

const SYSTEM: Message = { role: "system", content: "You play blackjack." };
const user = (content: string): Message => ({ role: "user", content });
const TOOLS = ["hit", "stay"].map((name) => ({
  type: "function",
  function: { name, parameters: { type: "object", properties: {} } },
}));
const SCHEMA = {
  type: "json_schema",
  json_schema: { name: "move", schema: { type: "object", properties: { move: { enum: ["hit", "stay"] } } } },
};

let model: LanguageModel;
let store: SessionStore;
let server: RunningServer;
const gate = new UpdateGate();
const records = new Map<string, SessionRecord>();

beforeAll(async () => {
  model = await AutoModelForCausalLMWithValueHead.fromPretrained("embedded");
  store = new SessionStore({
    engine: new ModelChatEngine(model, "embedded"),
    gate,
    seed: 1,
    temperature: 1.2,
    maxCompletionLength: 60,
    cache: new CompletionCache(),
    updates: () => 3,
    sessionTimeoutMs: 1500,
    onEnd: ({ id }, record) => record !== undefined && records.set(id, record),
  });
  server = await startHttpServer({ port: 0 }, (app) => mountSessionRoutes(app, store));
});

afterAll(async () => {
  store.close();
  await server.close(0);
  await model.close();
});

async function post(path: string, body: object): Promise<{ status: number; body: Record<string, never> }> {
  const headers = { "content-type": "application/json" };
  const response = await fetch(`${server.url}${path}`, { method: "POST", headers, body: JSON.stringify(body) });
  const text = await response.text();
  return { status: response.status, body: (text.startsWith("{") ? JSON.parse(text) : { text }) as never };
}

const openSession = async (): Promise<string> => (await post("/sessions", {})).body.id;

/** Requests a completion and returns its message as a client would send it back. */
async function complete(id: string, messages: readonly Message[], options: object = {}): Promise<Message> {
  const { status, body } = await post(`/sessions/${id}/v1/chat/completions`, { model: "any", messages, ...options });
  if (status !== 200) throw new Error(JSON.stringify(body));
  if ("choices" in body) return (body.choices as { readonly message: Message }[])[0].message;
  const chunks = (body.text as string)
    .split("\n")
    .filter((line) => line.startsWith("data: {"))
    .map((line) => JSON.parse(line.slice(6)) as { choices: { delta: Partial<Message> }[] });
  const deltas = chunks.flatMap(({ choices }) => choices.map(({ delta }) => delta));
  const content = deltas.map((delta) => delta.content ?? "").join("");
  const calls = deltas.flatMap((delta) => delta.tool_calls ?? []);
  return { role: "assistant", content, ...(calls.length === 0 ? {} : { tool_calls: calls }) };
}

async function endSession(id: string): Promise<SessionRecord> {
  const { status } = await post(`/sessions/${id}/end`, {});
  expect(status).toBe(200);
  return records.get(id)!;
}

const answer = ({ tool_calls: calls = [] }: Message): Message =>
  calls.length === 0 ? user("Next hand: 12.") : ({ role: "tool", tool_call_id: calls[0].id, content: "17" } as Message);

it("continues its tokens whatever the messages contain", async () => {
  const texts = ["recorded-completion-7f3a", "\ufdd0\ufdd1 <|end|>", "{{ messages }}", "<|assistant|>"];
  const id = await openSession();
  const messages = [SYSTEM, user(texts[0])];
  for (const text of texts) {
    messages.push(await complete(id, messages), user(`Before ${text} after`));
  }
  await complete(id, messages);
  const { trajectory, segments } = await endSession(id);
  expect(segments).toBe(1);
  const last = model.tokenizer.decode(trajectory.turns.at(-1)!.prompt);
  for (const text of texts) expect(last).toContain(`Before ${text} after`);
  // Text of messages is never a control token.
  const assistant = model.tokenizer.tokenToId("<|assistant|>");
  expect(trajectory.turns.at(-1)!.prompt.filter((token) => token === assistant)).toHaveLength(texts.length + 1);
});

describe.each([
  ["text", {}],
  ["streamed text", { stream: true }],
  ["required tools", { tools: TOOLS, tool_choice: "required", parallel_tool_calls: false }],
  ["streamed tools", { tools: TOOLS, tool_choice: "required", stream: true }],
  ["optional tools", { tools: TOOLS }],
  ["a schema", { response_format: SCHEMA }],
  ["a streamed schema", { response_format: SCHEMA, stream: true }],
])("a session with %s", (_, options) => {
  it("continues its tokens, and is trained with the probabilities it was sampled with", async () => {
    const id = await openSession();
    const messages = [SYSTEM, user("Your total is 14. hit or stay?")];
    for (let turn = 0; turn < 3; turn++) {
      const message = await complete(id, messages, options);
      messages.push(message, answer(message));
    }
    const { trajectory, segments, updatesAtTurns } = await endSession(id);
    const { turns } = trajectory;
    expect([turns.length, segments, updatesAtTurns]).toEqual([3, 1, [3, 3, 3]]);
    for (const [i, { prompt, tokens }] of turns.slice(0, -1).entries())
      expect(turns[i + 1].prompt.slice(0, prompt.length + tokens.length)).toEqual([...prompt, ...tokens]);
    const scorer = new LogProbScorer(model.policy, { microBatchTokens: 2048 });
    const { logProbs } = await scorer.score(turns, { temperature: 1.2 });
    await scorer.release();
    const ratios = turns.flatMap((turn, t) =>
      decisionIndices(turn).map((token, i) => Math.exp(logProbs[t][i] - turn.logProbs[token])),
    );
    expect(Math.max(...ratios.map((ratio) => Math.abs(ratio - 1)))).toBeLessThanOrEqual(1e-5);
  });
});

describe("a session's tree", () => {
  it("starts a segment for an edited history and for a sub-agent, and continues each conversation", async () => {
    const id = await openSession();
    const messages = [SYSTEM, user("Total 14?")];
    const first = await complete(id, messages);
    const helper = await complete(id, [user("Count to 3.")]);
    const continued = [...messages, first, user("Total 15?")];
    const second = await complete(id, continued);
    await complete(id, [user("Count to 3."), helper, user("And on.")]);
    await complete(id, [SYSTEM, user("Total 13?"), first, user("Total 15?")]);
    // A branch continues the recorded tokens as well.
    await complete(id, [...messages, first, user("Total 16?")]);
    // Only the part before the edit is continued.
    await complete(id, [...continued, { ...second, content: `${second.content}!` }, user("Total 17?")]);
    const { trajectory, segments, summary } = await endSession(id);
    expect([segments, summary.turns]).toEqual([3, 7]);
    const [root, sub, next, subNext, , branch, edited] = trajectory.turns;
    for (const [parent, child] of [
      [root, next],
      [sub, subNext],
      [root, branch],
      [root, edited],
    ]) {
      const { length } = [...parent.prompt, ...parent.tokens];
      expect(child.prompt.slice(0, length)).toEqual([...parent.prompt, ...parent.tokens]);
    }
  });

  it("records every choice of a request", async () => {
    const id = await openSession();
    await complete(id, [user("Total 14?")], { n: 3 });
    expect((await endSession(id)).trajectory.turns).toHaveLength(3);
  });

  it("ignores the request's sampling options, which would change the trained distribution", async () => {
    const id = await openSession();
    const texts = new Set<string>();
    for (let i = 0; i < 12; i++) {
      const options = { temperature: 0, top_p: 0.01, seed: 4, response_format: SCHEMA };
      texts.add((await complete(id, [user("Total 14?")], options)).content!);
    }
    expect(texts.size).toBeGreaterThan(1);
  });
});

describe("rewards", () => {
  it("belong to the last turn, or to the one that is named", async () => {
    const id = await openSession();
    await post(`/sessions/${id}/reward`, { reward: 4 });
    for (let turn = 0; turn < 2; turn++) {
      await complete(id, [user(`Total ${turn}?`)]);
      await post(`/sessions/${id}/reward`, { reward: 1 });
    }
    await post(`/sessions/${id}/reward`, { reward: 0.5, turn: 0 });
    const end = await post(`/sessions/${id}/end`, { reward: 2 });
    expect(end.body).toEqual({ id, turns: 2, return: 8.5 });
    expect(records.get(id)!.trajectory.turns.map(({ reward }) => reward)).toEqual([5.5, 3]);
  });

  it.each([
    ["null, as NaN is written", { reward: null }, 400, /finite number/],
    ["text", { reward: "1" }, 400, /finite number/],
    [
      "a reward beyond the limit",
      { reward: -1e200 },
      400,
      /A reward is -1e\+200 in session .* from -1000000 to 1000000/,
    ],
    ["a turn that does not exist", { reward: 1, turn: 7 }, 400, /no turn 7/],
    ["an unknown field", { reward: 1, step: 0 }, 400, /Unknown field "step"/],
  ])("%s is refused", async (_, body, status, message) => {
    const id = await openSession();
    const result = await post(`/sessions/${id}/reward`, body);
    expect(result.status).toBe(status);
    expect((result.body.error as { message: string }).message).toMatch(message);
  });
});

describe("rewards of a session", () => {
  it("are refused where their sum is beyond the limit, and stay as they were", async () => {
    const id = await openSession();
    await complete(id, [user("Total 14?")]);
    await post(`/sessions/${id}/reward`, { reward: 1e6 });
    const result = await post(`/sessions/${id}/reward`, { reward: 1 });
    expect(result.status).toBe(400);
    expect((result.body.error as { message: string }).message).toMatch(/sum of a turn's rewards is 1000001/);
    expect((await post(`/sessions/${id}/end`, { reward: -1 })).body).toMatchObject({ return: 999_999 });
  });
});

it.each(["auto", "required"])("refuses a tool that can never be called if the choice is %s", async (choice) => {
  const id = await openSession();
  const parameters = { type: "object", properties: { a: { enum: [] } }, required: ["a"] };
  const tools = [...TOOLS, { type: "function", function: { name: "never", parameters } }];
  const request = { model: "any", messages: [user("Total 14?")], tools, tool_choice: choice };
  const { status, body } = await post(`/sessions/${id}/v1/chat/completions`, request);
  const message = expect.stringMatching(/^The tool "never" cannot be called: The JSON schema matches no/) as string;
  expect([status, body]).toMatchObject([400, { error: { message } }]);
});

describe("the end of a session", () => {
  it("is refused twice, and refuses rewards and completions", async () => {
    const id = await openSession();
    await complete(id, [user("Total 14?")]);
    await endSession(id);
    for (const [path, body] of [
      ["end", {}],
      ["reward", { reward: 1 }],
      ["v1/chat/completions", { model: "any", messages: [user("Total 14?")] }],
    ] as const) {
      const { status, body: error } = await post(`/sessions/${id}/${path}`, body);
      expect([status, error.error]).toMatchObject([409, { code: "session_ended" }]);
    }
    expect((await post("/sessions/unknown/end", {})).status).toBe(404);
  });

  it("comes by itself, as a truncation, after its timeout", async () => {
    const id = await openSession();
    await complete(id, [user("Total 14?")]);
    await expect.poll(() => records.get(id)?.summary.end, { timeout: 20_000 }).toBe("truncated");
    const { trajectory } = records.get(id)!;
    const [{ prompt, tokens }] = trajectory.turns;
    expect(trajectory.bootstrapPrompt).toEqual([...prompt, ...tokens]);
  });
});

it("holds completions back during an update", async () => {
  const id = await openSession();
  await gate.close();
  let isDone = false;
  const completion = complete(id, [user("Total 14?")]).then(() => (isDone = true));
  await post(`/sessions/${id}/reward`, { reward: 0 });
  expect(isDone).toBe(false);
  gate.open();
  await completion;
  await endSession(id);
});
