import { cp, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { writeRandomModel } from "../../../../test/support/random-model.js";
import { stream } from "../../../core/random/streams.js";
import { AutoModelForCausalLM, UNFILTERED_SAMPLING, type LanguageModel } from "../../../generation/index.js";
import { makeTrainable } from "../../../models/adapters/get-peft-model.js";
import { AutoTokenizer, type ChatMessage } from "../../../models/text/index.js";
import { LogProbScorer } from "../../algorithms/update/log-prob-scorer.js";
import { decisionIndices } from "../../algorithms/update/turn-batch.js";
import { CompletionSampler } from "../../rollout/completion-sampler.js";
import { checkTools, readToolCallFormat, ToolChat, toTemplateInput, type Tool } from "../../tools/index.js";
import { SftTrainer } from "../sft-trainer.js";
import { GrpoTrainer } from "./grpo-trainer.js";
import { ToolRollout, type ToolRolloutOptions } from "./tool-rollout.js";

const add: Tool = {
  name: "add",
  description: "Adds two numbers.",
  parameters: {
    type: "object",
    properties: { a: { type: "integer" }, b: { type: "integer" } },
    required: ["a", "b"],
  },
  execute: ({ a, b }: { a: number; b: number }) => a + b,
};

const question = (a: number, b: number): ChatMessage => ({ role: "user", content: `${a} + ${b}` });

/** A call as a message has it. */
const callOf = (a: number, b: number) => ({
  id: "call00000",
  type: "function",
  function: { name: "add", arguments: { a, b } },
});

/** Transcripts with a call and its result, in the format of the model's chat template. */
const transcripts = [
  [2, 3],
  [4, 1],
].map(([a, b]) => {
  const messages = [
    question(a, b),
    { role: "assistant", content: "", tool_calls: [callOf(a, b)] },
    { role: "tool", tool_call_id: "call00000", name: "add", content: String(a + b) },
    { role: "assistant", content: `It is ${a + b}.` },
  ];
  return { messages: toTemplateInput(messages, [add], readToolCallFormat(undefined, false)).messages };
});

let files: Awaited<ReturnType<typeof writeRandomModel>>;
let base: LanguageModel;
let model: LanguageModel;
beforeAll(async () => {
  files = await writeRandomModel({ scale: 0.2, maxPositions: 768 });
  base = await AutoModelForCausalLM.fromPretrained(files.folder, { device: "cpu", threads: 1 });
  model = base.withCausalLM(await makeTrainable(base.causalLM));
  const trainer = await SftTrainer.create(model, {
    train: transcripts,
    maxSteps: 80,
    learningRate: 0.01,
    batchSize: 2,
    lrSchedulerType: "constant",
  });
  await trainer.train();
  await trainer.release();
});
afterAll(async () => {
  await base.close();
  await files.remove();
});

async function complete(
  count: number,
  {
    execute = add.execute,
    timeoutSeconds = 60,
    ...options
  }: Partial<ToolRolloutOptions> & { execute?: Tool["execute"]; timeoutSeconds?: number } = {},
) {
  const tools = [{ ...add, execute }];
  const chat = new ToolChat(model, tools);
  const rollout = new ToolRollout({
    chat,
    caller: checkTools(tools, timeoutSeconds),
    maxCompletionLength: 200,
    maxToolCallingIterations: Infinity,
    ...options,
  });
  const messages = [question(2, 3)];
  const prompt = { messages, tokens: chat.encodePrompt(messages) };
  const sampler = new CompletionSampler(model, {
    sampling: { ...UNFILTERED_SAMPLING, temperature: 1 },
    trainedDistribution: "full",
    actionScoring: undefined,
    maxNewTokens: 200,
    stop: [],
    ignoreEos: false,
  });
  const sample = Array.from({ length: count }, (_, i) => {
    const random = stream(3, "promptCompletions", i);
    return async (tokens: readonly number[], { maxNewTokens }: { maxNewTokens?: number } = {}) =>
      sampler.sample({ prompt: tokens, random, maxNewTokens });
  });
  const { completions, metrics } = await rollout.complete(
    sample.map(() => prompt),
    sample,
  );
  return { prompt, completions, metrics };
}

describe("ToolRollout", () => {
  it("trains exactly the tokens that the policy sampled", async () => {
    const { prompt, completions } = await complete(4);
    const scorer = new LogProbScorer(model.policy, { microBatchTokens: 4096 });
    const turns = completions.map((completion) => ({ ...completion, prompt: prompt.tokens }));
    const { logProbs } = await scorer.score(turns);
    await scorer.release();
    for (const [i, turn] of turns.entries()) {
      const decisions = decisionIndices(turn);
      const sampled = decisions.map((token) => turn.logProbs[token]);
      sampled.forEach((logProb, d) => expect(logProbs[i][d]).toBeCloseTo(logProb, 4));
      expect(turn.numToolTokens).toBeGreaterThan(10);
      expect(decisions.length).toBe(turn.tokens.length - turn.numToolTokens!);
    }
  });

  it("continues the sampled tokens as the chat template renders the conversation", async () => {
    const { prompt, completions } = await complete(8);
    const chat = new ToolChat(model, [add]);
    const called = completions.find(({ messages }) => messages![0].tool_calls !== undefined)!;
    expect(called.messages).toEqual([
      { role: "assistant", content: "", tool_calls: [callOf(2, 3)] },
      { role: "tool", tool_call_id: "call00000", name: "add", content: "5" },
      { role: "assistant", content: "It is 5." },
    ]);
    // The call is written by the model, so that only what the template prints is compared.
    const rendered = chat.decode(chat.encodePrompt([...prompt.messages, ...called.messages!.slice(0, 2)]));
    const upToAnswer = chat.decode([...prompt.tokens, ...called.tokens]).split("It is 5.")[0];
    const afterCall = (text: string) => text.slice(text.lastIndexOf("</tool_call>"));
    expect(afterCall(upToAnswer)).toBe(afterCall(rendered));
  });

  it("counts calls and failures, and returns errors as results", async () => {
    const succeeded = await complete(4);
    expect(succeeded.metrics["tools/call_frequency"]).toBeGreaterThan(0.5);
    const failed = await complete(4, {
      execute: () => {
        throw new Error("no database");
      },
    });
    expect(failed.metrics["tools/failure_frequency"]).toBe(1);
    const contents = failed.completions.flatMap(({ messages }) => messages!.filter(({ role }) => role === "tool"));
    expect(contents.map(({ content }) => content)).toContain('{"error":"no database"}');
    const slow = await complete(2, { execute: async () => new Promise(() => {}), timeoutSeconds: 0.01 });
    expect(JSON.stringify(slow.completions)).toContain("add took longer than 0.01 s.");
  });

  it("ends a completion whose results leave no room, or after the maximum number of iterations", async () => {
    const long = await complete(4, { execute: () => "x".repeat(300) });
    expect(long.metrics["tools/call_frequency"]).toBeGreaterThan(0);
    const called = long.completions.filter(({ messages }) => messages![0].tool_calls !== undefined);
    expect(called.length).toBeGreaterThan(0);
    for (const { messages, numToolTokens, finishReason } of called)
      expect([messages!.length, numToolTokens, finishReason]).toEqual([1, 0, "stop"]);
    const none = await complete(4, { maxToolCallingIterations: 0 });
    expect(none.metrics).toEqual({ "tools/call_frequency": 0, "tools/failure_frequency": 0 });
    const short = await complete(4, { maxCompletionLength: 100 });
    for (const { tokens } of short.completions) expect(tokens.length).toBeLessThanOrEqual(100);
  });
});

describe("GrpoTrainer with tools", () => {
  const args = { batchSize: 8, numGenerations: 8, maxSteps: 6, maxCompletionLength: 200, learningRate: 3e-3 } as const;

  it("passes messages to reward functions, and learns to call tools less", async () => {
    const before = await model.causalLM.runtime.read(model.causalLM.parameters.values);
    const frequencies: number[] = [];
    const trainer = new GrpoTrainer({
      model,
      tools: [add],
      trainDataset: [{ prompt: [question(2, 3)] }],
      rewardFuncs: ({ completions }) =>
        completions.map((messages) => -messages.filter(({ role }) => role === "tool").length),
      args: { ...args, maxSteps: 12, maxResamples: 0, temperature: 1.5 },
    });
    await trainer.train({
      onStep: (_, metrics) => {
        frequencies.push(metrics["tools/call_frequency"]);
        expect(metrics["completions/max_length"]).toBeLessThan(metrics.num_tokens);
      },
    });
    expect(frequencies.at(-1)!).toBeLessThan(frequencies[0]);
    await model.causalLM.runtime.write(model.causalLM.parameters.values, before.data);
    model.causalLM.markParametersChanged();
  });

  it.each([
    [{ tools: [{ type: "function", function: add, execute: add.execute }] }, "has the form of OpenAI's API"],
    [{ tools: [{ ...add, name: "a b" }] }, "tools[0] must have a name of 1 to 128 letters"],
    [{ tools: [{ ...add, execute: undefined }] }, 'The tool "add" must have a function `execute`, got undefined.'],
    [{ tools: [{ ...add, parameters: { type: "string" } }] }, 'The parameters of the tool "add" must be a JSON schema'],
    [{ tools: [add, add] }, 'Two tools have the name "add"; names must differ.'],
    [{ tools: add }, "`tools` must be a list of { name, description, parameters, execute }."],
    [{ tools: [add], trainDataset: [{ prompt: "2 + 3" }] }, "row 0 of trainDataset: `tools` need prompts of messages"],
    [{ tools: [add], args: { ignoreEos: true } }, "`ignoreEos` continues completions after a tool call"],
    [{ args: { maxToolCallingIterations: 2 } }, "`maxToolCallingIterations` needs `tools`"],
  ])("refuses %o", async (options, message) => {
    const given = { model, rewardFuncs: () => [], trainDataset: [{ prompt: [question(2, 3)] }], ...options };
    const start = async () => new GrpoTrainer(given as never).train();
    await expect(start()).rejects.toMatchObject({
      code: "INVALID_ARGUMENT",
      message: expect.stringContaining(message) as string,
    });
  });
});

describe("ToolChat", () => {
  it.each([
    ["an unknown tool", { name: "subtract", args: { a: 1 } }, "Tool subtract not found."],
    ["missing arguments", { name: "add", args: { a: 1 } }, "Invalid arguments of add: "],
    ["a malformed call", { name: "unknown", args: undefined }, "The tool call is malformed"],
  ])("answers %s with its error", async (_, call, message) => {
    const { content, isFailure } = await checkTools([add], 1).call(call);
    expect(isFailure).toBe(true);
    expect((JSON.parse(content) as { error: string }).error).toContain(message);
  });

  it.each([
    ["no call", "It is 5.", "It is 5.", []],
    [
      "text before a call",
      'Let me add. <tool_call>\n{"name": "add", "arguments": {"a": 1}}\n</tool_call>',
      "Let me add.",
      [{ a: 1 }],
    ],
    [
      "two calls",
      '<tool_call>{"name": "add", "arguments": {}}</tool_call>\n<tool_call>{"name": "add", "arguments": {"b": 2}}</tool_call>',
      "",
      [{}, { b: 2 }],
    ],
    ["a call that is not closed", '<tool_call>{"name": "add", "arguments": {}}', "", [{}]],
    ["malformed JSON", '<tool_call>{"name": "add", "arg', '<tool_call>{"name": "add", "arg', [undefined]],
    [
      "arguments that are no object",
      '<tool_call>{"name": "add", "arguments": 1}</tool_call>',
      '<tool_call>{"name": "add", "arguments": 1}</tool_call>',
      [undefined],
    ],
  ])("reads %s", (_, text, content, args) => {
    const chat = new ToolChat(model, [add]);
    const { message, calls } = chat.parse(model.tokenizer.encodeContinuation(text, 5), 0);
    expect(message.content).toBe(content);
    expect(calls.map((call) => call.args)).toEqual(args);
  });

  it("continues after calls where the template rejects results without them", async () => {
    const folder = await mkdtemp(join(tmpdir(), "template-"));
    await cp(files.folder, folder, { recursive: true });
    const template =
      "{% for message in messages %}{% if message.role == 'tool' %}{% if not messages[0].role == 'tool' and not messages[loop.index0 - 1].tool_calls and messages[loop.index0 - 1].role != 'tool' %}" +
      "{{ raise_exception('There is no call for this result.') }}{% endif %}[TOOL_RESULTS]{{ message.content }}[/TOOL_RESULTS]" +
      "{% elif message.tool_calls %}[TOOL_CALLS]{{ message.tool_calls | tojson }}<|im_end|>{% else %}{{ message.role }}: {{ message.content }}<|im_end|>{% endif %}" +
      "{% endfor %}{{ tools | tojson if tools else '' }}";
    const config = join(folder, "tokenizer_config.json");
    const fields = JSON.parse(await readFile(config, "utf8")) as object;
    await writeFile(config, JSON.stringify({ ...fields, chat_template: template }));
    await rm(join(folder, "chat_template.jinja"), { force: true });
    const tokenizer = await AutoTokenizer.fromPretrained(folder);
    await rm(folder, { recursive: true });
    const endToken = tokenizer.tokenToId("<|im_end|>")!;
    const chat = new ToolChat({ tokenizer, endTokenIds: [endToken] }, [add]);
    const results = ["5", "6"].map((content, i) => ({
      role: "tool",
      name: "add",
      tool_call_id: `call0000${i}`,
      content,
    }));
    const added = chat.encodeResults([question(2, 3)], results, endToken);
    expect(tokenizer.decodeContinuation(added)).toMatch(
      /^\[TOOL_RESULTS\]5\[\/TOOL_RESULTS\]\[TOOL_RESULTS\]6\[\/TOOL_RESULTS\]/,
    );
  });
});
