import { type FunctionTool, parseToolCalls, readToolCallFormat } from "../../rl/tools/index.js";
import { encodeCompletion, encodeExample, type SftExample, type TokenExample } from "../../rl/data/sft-example.js";
import { SftTrainer } from "../../rl/train/sft-trainer.js";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { AutoModelForCausalLM, getPeftModel } from "../../generation/auto-model.js";
import type { LanguageModel } from "../../generation/language-model.js";
import type { ChatMessage } from "../../models/text/index.js";
import { ModelChatEngine } from "./model-chat-engine.js";

const TOOLS: readonly FunctionTool[] = ["bet", "bet_more"].map((name) => ({
  name,
  description: `Bets (${name}).`,
  parameters: { type: "object", properties: { amount: { enum: [1, 5] } }, required: ["amount"] },
}));
const QUESTION = { role: "user", content: "Place a bet." };

const HEADER = "{% for message in messages %}<|{{ message.role }}|>{{ message.content }}";
const FOOTER = "<|end|>{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}";
const TOOL_LIST = "{% if tools %}TOOLS {{ tools | tojson }}{% endif %}";

/**
 * Templates that write calls as published ones do, with a call and the pattern of required calls.
 */
const FORMATS = {
  Hermes: {
    template:
      TOOL_LIST +
      HEADER +
      "{% for call in message.tool_calls %}<tool_call>\n{{ call.function | tojson }}\n</tool_call>{% endfor %}" +
      FOOTER,
    written: '<tool_call>\n{"name": "bet", "arguments": {"amount": 5}}\n</tool_call>',
    required: /^<tool_call>\n\{"name": "bet(_more)?", "arguments": \{"amount": [15]\}\}\n<\/tool_call>$/,
  },
  "Llama 3.1": {
    template:
      `${TOOL_LIST}{# <|python_tag|> #}${HEADER}` +
      `{% for call in message.tool_calls %}{"name": "{{ call.function.name }}", "parameters": {{ call.function.arguments | tojson }}}{% endfor %}` +
      FOOTER,
    written: '{"name": "bet", "parameters": {"amount": 5}}',
    required: /^\{"name": "bet(_more)?", "parameters": \{"amount": [15]\}\}$/,
  },
  "Llama 3.2": {
    template:
      `{% if tools %}Respond in the format {"name": function name, "parameters": dictionary of argument name and its value}. {{ tools | tojson }}{% endif %}${HEADER}` +
      `{% for call in message.tool_calls %}{"name": "{{ call.function.name }}", "parameters": {{ call.function.arguments | tojson }}}{% endfor %}` +
      FOOTER,
    written: '{"name": "bet", "parameters": {"amount": 5}}',
    required: /^\{"name": "bet(_more)?", "parameters": \{"amount": [15]\}\}$/,
  },
  "Mistral's older": {
    template: `${TOOL_LIST}${HEADER}{% if message.tool_calls %}[TOOL_CALLS][{{ message.tool_calls[0].function | tojson }}]{% endif %}${FOOTER}`,
    written: '[TOOL_CALLS][{"name": "bet", "arguments": {"amount": 5}}]',
    required: /^\[TOOL_CALLS\]\[\{"name": "bet(_more)?", "arguments": \{"amount": [15]\}\}(, .*)?\]$/,
  },
  "Mistral's newer": {
    template:
      `${TOOL_LIST}${HEADER}` +
      "{% for call in message.tool_calls %}[TOOL_CALLS]{{ call.function.name }}[ARGS]{{ call.function.arguments | tojson }}{% endfor %}" +
      FOOTER,
    written: '[TOOL_CALLS]bet[ARGS]{"amount": 5}',
    required: /^\[TOOL_CALLS\]bet(_more)?\[ARGS\]\{"amount": [15]\}$/,
  },
  "Phi-4-mini's": {
    template:
      "{% for message in messages %}<|{{ message['role'] }}|>{{ message['content'] }}" +
      `{% if 'tools' in message %}<|tool|>TOOLS {{ message['tools'] }}<|/tool|>{% endif %}${FOOTER}`,
    written: '<|tool_call|>[{"name": "bet", "arguments": {"amount": 5}}]<|/tool_call|>',
    required: /^<\|tool_call\|>\[\{"name": "bet(_more)?", "arguments": \{"amount": [15]\}\}(, .*)?\]<\|\/tool_call\|>$/,
  },
  "no template's": {
    template: HEADER + FOOTER,
    written: 'bet {"amount": 5}',
    required: /^bet(_more)? \{"amount": [15]\}$/,
  },
};

let model: LanguageModel;

beforeAll(async () => {
  model = await AutoModelForCausalLM.fromPretrained("embedded");
});

afterAll(async () => {
  await model.close();
});

const renderText = async (engine: ModelChatEngine, request: Parameters<ModelChatEngine["renderPrompt"]>[0]) =>
  model.tokenizer.decode(await engine.renderPrompt(request));

describe.each(Object.entries(FORMATS))("%s format", (_, { template, written, required }) => {
  it("describes tools, and writes and parses calls", async () => {
    const engine = new ModelChatEngine(model, "embedded", template);
    const request = { input: [QUESTION], tools: TOOLS, toolChoice: "required", seed: 1 } as const;
    expect(await renderText(engine, request)).toContain("Bets (bet_more).");
    const { choices } = await engine.generate({ ...request, n: 2, parallelToolCalls: false });
    for (const { tokens, toolCalls, finishReason } of choices) {
      const text = model.tokenizer.decode(tokens).replace("<|end|>", "");
      expect(text).toMatch(required);
      expect(finishReason).toBe("tool_calls");
      const format = readToolCallFormat(template, true)!;
      const content = text.slice(format.open.length, text.length - format.close.length);
      expect(parseToolCalls(content, TOOLS, format)).toMatchObject(
        toolCalls.map(({ name, arguments: args }) => ({ name, arguments: args })),
      );
    }
  });

  it("refuses a tool that can never be called", async () => {
    const engine = new ModelChatEngine(model, "embedded", template);
    for (const never of [{ type: "object", properties: { a: { enum: [] } }, required: ["a"] }, false as never]) {
      const tools = [...TOOLS, { name: "never", parameters: never }];
      for (const toolChoice of ["auto", "required"] as const)
        await expect(engine.generate({ input: [QUESTION], tools, toolChoice })).rejects.toMatchObject({
          code: "INVALID_ARGUMENT",
          message: expect.stringMatching(
            /^The tool "never" cannot be called: The JSON schema matches no text/,
          ) as string,
        });
    }
  });

  it("renders earlier calls", async () => {
    const engine = new ModelChatEngine(model, "embedded", template);
    const call = { id: "abcdefghi", type: "function", function: { name: "bet", arguments: { amount: 5 } } };
    const input = [QUESTION, { role: "assistant", content: "", tool_calls: [call] }, QUESTION];
    expect(await renderText(engine, { input, tools: TOOLS, toolChoice: "required" })).toContain(written);
  });
});

it("writes earlier calls as it samples them, whatever the template", async () => {
  for (const { template } of Object.values(FORMATS)) {
    const engine = new ModelChatEngine(model, "embedded", template);
    const request = { input: [QUESTION], tools: TOOLS, toolChoice: "required", seed: 1 } as const;
    const { choices } = await engine.generate({ ...request, parallelToolCalls: false });
    const [{ tokens, toolCalls }] = choices;
    const calls = toolCalls.map(({ id, name, arguments: args }) => ({
      id,
      type: "function",
      function: { name, arguments: JSON.parse(args) as unknown },
    }));
    const input = [QUESTION, { role: "assistant", content: "", tool_calls: calls }, QUESTION];
    const sampled = model.tokenizer.decode(tokens).replace("<|end|>", "");
    expect(await renderText(engine, { input, tools: TOOLS, toolChoice: "required" })).toContain(sampled);
  }
});

it("describes required calls by signatures where the template renders no tools", async () => {
  const engine = new ModelChatEngine(model, "embedded", HEADER + FOOTER);
  const call = { id: "a", type: "function", function: { name: "bet", arguments: { amount: 5 } } };
  const input = [
    { role: "system", content: "You play." },
    QUESTION,
    { role: "assistant", content: "", tool_calls: [call] },
    { role: "tool", tool_call_id: "a", content: "won" },
  ];
  expect(await renderText(engine, { input, tools: TOOLS, toolChoice: "required" })).toBe(
    '<|system|>You play.\n\nReply with a function and its arguments:\nbet {"amount": 1 or 5}: Bets (bet).\n' +
      'bet_more {"amount": 1 or 5}: Bets (bet_more).<|end|><|user|>Place a bet.<|end|>' +
      '<|assistant|>bet {"amount": 5}<|end|><|user|>Result: won<|end|><|assistant|>',
  );
});

describe("examples with tools as text", () => {
  const call = { id: "a", type: "function", function: { name: "bet", arguments: '{"amount": 5}' } };
  const asked: ChatMessage[] = [{ role: "system", content: "You play." }, QUESTION];
  const answer = { role: "assistant", content: "", tool_calls: [call] };
  const result = { role: "tool", tool_call_id: "a", content: "won" };
  const closing = { role: "assistant", content: "You won." };
  const tools = TOOLS.map((tool) => ({ type: "function", function: tool }));
  const encode = (example: SftExample) => encodeExample(example, () => model.tokenizer, { toolCalls: "text" });
  const trainedTexts = ({ tokens, lossMask }: TokenExample) =>
    model.tokenizer.decode(tokens.map((token, i) => (lossMask[i] === 0 ? 0 : token)).filter((token) => token !== 0));

  it.each(["auto", "required"] as const)("have the prompt that the server gives (%s)", async (toolChoice) => {
    const engine = new ModelChatEngine(model, "embedded");
    const { tokens, lossMask } = encode({ prompt: asked, completion: [answer], tools, toolChoice });
    const prompt = await engine.renderPrompt({ input: asked, tools: TOOLS, toolChoice });
    expect(tokens.slice(0, prompt.length)).toEqual(prompt);
    expect(Array.from(lossMask).indexOf(1)).toBe(prompt.length);
    const written =
      toolChoice === "required"
        ? 'bet {"amount": 5}<|end|>'
        : '<tool_call>\n{"name": "bet", "arguments": {"amount": 5}}\n</tool_call><|end|>';
    expect(model.tokenizer.decode(tokens.slice(prompt.length))).toBe(written);
  });

  it("train all answers of a conversation, but those of weight 0", () => {
    const messages: ChatMessage[] = [...asked, answer, result, closing];
    const example = { messages, tools, toolChoice: "required" } as const;
    expect(trainedTexts(encode(example))).toBe('bet {"amount": 5}<|end|>You won.<|end|>');
    const weighted = messages.with(2, { ...answer, weight: 0 });
    expect(trainedTexts(encode({ ...example, messages: weighted }))).toBe("You won.<|end|>");
    const withoutSystem = { ...example, messages: weighted.slice(1) };
    expect(trainedTexts(encode(withoutSystem))).toBe("You won.<|end|>");
    expect(model.tokenizer.decode(encode(withoutSystem).tokens)).toContain('bet {"amount": 1 or 5}');
  });

  it("are preferences in the same text", () => {
    const example = { prompt: asked, completion: [answer], tools, toolChoice: "required" } as const;
    const { tokens } = encodeCompletion(example, () => model.tokenizer, { toolCalls: "text" });
    expect(tokens).toEqual(encode(example).tokens);
  });

  it("are advised where the template leaves a call out", () => {
    expect(() => encodeExample({ messages: [QUESTION, answer] }, () => model.tokenizer)).toThrow(/--tool-calls text/);
  });

  it("are learned: the server's calls are then the examples'", async () => {
    const student = await getPeftModel(model, { r: 16 });
    const orders = [17, 42, 93];
    const lookup = {
      name: "lookup",
      description: "Returns an order.",
      parameters: { type: "object", properties: { order: { type: "integer" } }, required: ["order"] },
    };
    const train = orders.map((order) => ({
      prompt: [{ role: "user", content: `Where is order ${order}?` }],
      completion: [
        {
          role: "assistant",
          content: "",
          tool_calls: [{ id: "a", type: "function", function: { name: "lookup", arguments: { order } } }],
        },
      ],
      tools: [{ type: "function", function: lookup }],
      toolChoice: "required" as const,
    }));
    const options = { learningRate: 3e-3, batchSize: 3, maxSteps: 60, toolCalls: "text" } as const;
    const trainer = await SftTrainer.create(student, { train, ...options });
    await trainer.train();
    const engine = new ModelChatEngine(student, "student");
    for (const order of orders) {
      const input = [{ role: "user", content: `Where is order ${order}?` }];
      const { choices } = await engine.generate({
        input,
        tools: [lookup],
        toolChoice: "required",
        sampling: { temperature: 0 },
      });
      expect(choices[0].toolCalls).toMatchObject([{ name: "lookup", arguments: `{"order":${order}}` }]);
    }
  });
});

it("rejects tools where the template's format is not supported, and answers without them", async () => {
  for (const marker of ["<tool_call>\n<function=", "<tool_call><arg_key>", "[TOOL_CALLS][CALL_ID][ARGS]", "<other>"]) {
    const engine = new ModelChatEngine(model, "embedded", `${TOOL_LIST}{# ${marker} #}${HEADER}${FOOTER}`);
    await expect(engine.generate({ input: [QUESTION], tools: TOOLS })).rejects.toMatchObject({
      code: "INVALID_ARGUMENT",
      message: expect.stringContaining("The formats of these families are supported: Hermes") as string,
    });
    expect((await engine.generate({ input: [QUESTION], maxNewTokens: 1 })).choices).toHaveLength(1);
  }
});

it("reads no call of another tool, and no text", () => {
  const format = readToolCallFormat(FORMATS["Mistral's newer"].template, false)!;
  expect(parseToolCalls('raise[ARGS]{"amount": 5}', TOOLS, format)).toBeUndefined();
  expect(parseToolCalls("bet[ARGS]5", TOOLS, format)).toBeUndefined();
  expect(parseToolCalls("I would bet.", TOOLS, format)).toBeUndefined();
});
