import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { AutoModelForCausalLM } from "../../generation/auto-model.js";
import type { LanguageModel } from "../../generation/language-model.js";
import { startHttpServer, type RunningServer } from "./http-server.js";
import { ModelChatEngine } from "./model-chat-engine.js";
import { serveModels } from "./serve-models.js";

const TEMPLATE =
  "{{ style }}{% for message in messages %}<|{{ message.role }}|>{{ message.content }}<|end|>{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}";

let model: LanguageModel;
let server: RunningServer;
let prompt: string;

class RecordingEngine extends ModelChatEngine {
  override async generate(...args: Parameters<ModelChatEngine["generate"]>) {
    const result = await super.generate(...args);
    prompt = this.model.tokenizer.decode(result.promptTokens);
    return result;
  }
}

beforeAll(async () => {
  model = await AutoModelForCausalLM.fromPretrained("embedded");
  server = await startHttpServer({ port: 0 }, (app, metrics) =>
    serveModels(app, [new RecordingEngine(model, "embedded", TEMPLATE)], { metrics }),
  );
});
afterAll(async () => {
  await server.close();
  await model.close();
});

async function send(path: string, body: object): Promise<{ readonly status: number; readonly text: string }> {
  const headers = { "content-type": "application/json" };
  const options = { method: "POST", headers, body: JSON.stringify({ max_tokens: 3, temperature: 0, ...body }) };
  const response = await fetch(`${server.url}/v1${path}`, options);
  return { status: response.status, text: await response.text() };
}

const MESSAGES = [
  { role: "user", content: "14 or 20?" },
  { role: "assistant", content: "I st" },
];
/** The answer that continues the text of the prompt. */
const continued = async () => {
  const result = await model.generate("<|user|>14 or 20?<|end|><|assistant|>I st", { maxNewTokens: 3, temperature: 0 });
  return result.text;
};

describe("a chat that ends with the assistant's message", () => {
  it("is continued if the request says so, as in vLLM", async () => {
    const body = { messages: MESSAGES, continue_final_message: true, add_generation_prompt: false };
    const { choices } = JSON.parse((await send("/chat/completions", body)).text) as {
      choices: [{ message: { content: string } }];
    };
    expect(prompt).toBe("<|user|>14 or 20?<|end|><|assistant|>I st");
    expect(choices[0].message.content).toBe(await continued());
    const echo = await send("/chat/completions", { ...body, echo: true });
    expect(JSON.parse(echo.text)).toMatchObject({ choices: [{ message: { content: `I st${await continued()}` } }] });
    const stream = await send("/chat/completions", { ...body, echo: true, stream: true });
    const deltas = Array.from(
      stream.text.matchAll(/"content":"((?:[^"\\]|\\.)*)"/g),
      ([, text]) => JSON.parse(`"${text}"`) as string,
    );
    expect(deltas.join("")).toBe(`I st${await continued()}`);
  });

  it("is continued by Anthropic's API", async () => {
    const { content } = JSON.parse((await send("/messages", { messages: MESSAGES })).text) as { content: object[] };
    expect(prompt).toBe("<|user|>14 or 20?<|end|><|assistant|>I st");
    expect(content).toEqual([{ type: "text", text: await continued() }]);
    const parts = [
      { type: "text", text: "I" },
      { type: "text", text: " st" },
    ];
    await send("/messages", { messages: [MESSAGES[0], { role: "assistant", content: parts }] });
    expect(prompt).toBe("<|user|>14 or 20?<|end|><|assistant|>I st");
    await send("/messages", { messages: [MESSAGES[0], { role: "assistant", content: "" }] });
    expect(prompt).toBe("<|user|>14 or 20?<|end|><|assistant|><|end|><|assistant|>");
  });

  it("is followed by a new answer otherwise, or by none", async () => {
    await send("/chat/completions", { messages: MESSAGES });
    expect(prompt).toBe("<|user|>14 or 20?<|end|><|assistant|>I st<|end|><|assistant|>");
    await send("/chat/completions", { messages: MESSAGES, add_generation_prompt: false });
    expect(prompt).toBe("<|user|>14 or 20?<|end|><|assistant|>I st<|end|>");
  });

  it("takes variables of the chat template", async () => {
    await send("/chat/completions", { messages: MESSAGES.slice(0, 1), chat_template_kwargs: { style: "x" } });
    expect(prompt).toBe("x<|user|>14 or 20?<|end|><|assistant|>");
  });

  it.each([
    [
      { continue_final_message: true, add_generation_prompt: true },
      /must not be true if add_generation_prompt is true/,
    ],
    [{ chat_template_kwargs: { chat_template: "x" } }, /must not have \\"chat_template\\"/],
    [{ continue_final_message: "yes" }, /Invalid `continue_final_message`/],
  ])("refuses %j", async (fields, message) => {
    const { status, text } = await send("/chat/completions", { messages: MESSAGES, ...fields });
    expect([status, text]).toEqual([400, expect.stringMatching(message)]);
  });
});
