import { parseToolCalls } from "../../rl/tools/index.js";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { AutoModelForCausalLM } from "../../generation/auto-model.js";
import type { LanguageModel } from "../../generation/language-model.js";
import { startHttpServer, type RunningServer } from "./http-server.js";
import { ModelChatEngine } from "./model-chat-engine.js";
import { serveModels } from "./serve-models.js";

/** Arguments with numbers and keys that JavaScript would change. */
const ARGUMENTS = '{"10": 10.0, "2": 1234567890123456789, "x": {"1": 1e22, "0": [0.50, 2.0]}}';
/** The same as Python's json.dumps writes them, and without spaces. */
const IN_PYTHON = '{"10": 10.0, "2": 1234567890123456789, "x": {"1": 1e+22, "0": [0.5, 2.0]}}';
const AS_SAMPLED = '{"10": 10.0, "2": 1234567890123456789, "x": {"1": 1e22, "0": [0.5, 2.0]}}';
const COMPACT = '{"10":10.0,"2":1234567890123456789,"x":{"1":1e22,"0":[0.5,2.0]}}';
const PARAMETERS = `{"type": "object", "properties": {"10": {"type": "number", "maximum": 10.0}, "2": {"type": "integer"}}}`;

const LOOP = "{% for message in messages %}{{ message.content }}";
const TEMPLATES = {
  template: `{{ tools | tojson }}${LOOP}{% for call in message.tool_calls %}<tool_call>{{ call.function.arguments | tojson }}{% endfor %}{% endfor %}`,
  text: `${LOOP}{% endfor %}`,
};

const BODIES = {
  "/chat/completions": `{"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "",
    "tool_calls": [{"id": "1", "function": {"name": "f", "arguments": ${JSON.stringify(ARGUMENTS)}}}]}],
    "tools": [{"type": "function", "function": {"name": "f", "parameters": ${PARAMETERS}}}], "max_tokens": 1}`,
  "/responses": `{"input": [{"role": "user", "content": "a"},
    {"type": "function_call", "call_id": "1", "name": "f", "arguments": ${JSON.stringify(ARGUMENTS)}}],
    "tools": [{"type": "function", "name": "f", "parameters": ${PARAMETERS}}], "max_output_tokens": 1}`,
  "/messages": `{"messages": [{"role": "user", "content": "a"},
    {"role": "assistant", "content": [{"type": "tool_use", "id": "1", "name": "f", "input": ${ARGUMENTS}}]}],
    "tools": [{"name": "f", "input_schema": ${PARAMETERS}}], "max_tokens": 1}`,
};

let model: LanguageModel;
const prompts: string[] = [];

class RecordingEngine extends ModelChatEngine {
  override async generate(...args: Parameters<ModelChatEngine["generate"]>) {
    const result = await super.generate(...args);
    prompts.push(this.model.tokenizer.decode(result.promptTokens));
    return result;
  }
}

beforeAll(async () => {
  model = await AutoModelForCausalLM.fromPretrained("embedded");
});

afterAll(() => model.close());

describe.each(Object.keys(TEMPLATES) as (keyof typeof TEMPLATES)[])("tools in the %s", (name) => {
  let server: RunningServer;
  beforeAll(async () => {
    server = await startHttpServer({ port: 0 }, (app, metrics) =>
      serveModels(app, [new RecordingEngine(model, "embedded", TEMPLATES[name])], { metrics }),
    );
  });
  afterAll(() => server.close());

  it.each(Object.entries(BODIES))("keep the numbers and keys of a request to %s", async (path, body) => {
    prompts.length = 0;
    for (const text of [body, body.replaceAll("10.0", "10")]) {
      const headers = { "content-type": "application/json" };
      const response = await fetch(`${server.url}/v1${path}`, { method: "POST", headers, body: text });
      expect([response.status, await response.text()]).toEqual([200, expect.anything()]);
    }
    const [prompt, ofInteger] = prompts;
    expect(prompt).toContain(name === "text" ? AS_SAMPLED : IN_PYTHON);
    expect(prompt.replaceAll(" ", "")).toContain(
      `"properties":{"10":{"type":"number","maximum":10.0},"2":{"type":"integer"}}`,
    );
    expect(ofInteger).toBe(prompt.replaceAll("10.0", "10"));
  });
});

it("returns the arguments of a call as the model wrote them", () => {
  const tools = [{ name: "f", parameters: {} }];
  const format = { open: "", close: "", isList: false, argumentsKey: "arguments", tools: "template" } as const;
  expect(parseToolCalls(`{"name": "f", "arguments": ${ARGUMENTS}}`, tools, format)).toMatchObject([
    { arguments: COMPACT },
  ]);
});
