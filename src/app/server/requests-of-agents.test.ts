import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { AutoModelForCausalLM } from "../../generation/auto-model.js";
import type { LanguageModel } from "../../generation/language-model.js";
import { anthropicMessages, messagesBody } from "./anthropic-messages.js";
import { chatBody, openAiChat } from "./openai-chat.js";
import { completionBody, openAiCompletions } from "./openai-completions.js";
import { openAiResponses, responseBody } from "./openai-responses.js";
import { startHttpServer, type RunningServer } from "./http-server.js";
import { ModelChatEngine } from "./model-chat-engine.js";
import { serveModels } from "./serve-models.js";

let model: LanguageModel;
let server: RunningServer;
const warn = vi.spyOn(console, "warn").mockReturnValue();

beforeAll(async () => {
  model = await AutoModelForCausalLM.fromPretrained("embedded");
  server = await startHttpServer({ port: 0 }, (app, metrics) =>
    serveModels(app, [new ModelChatEngine(model, "embedded")], { metrics }),
  );
});

afterAll(async () => {
  await server.close();
  await model.close();
});

async function send(path: string, body: object, headers: Readonly<Record<string, string>> = {}) {
  return fetch(`${server.url}/v1${path}`, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify(body),
  });
}

const tool = {
  name: "Read",
  description: "Reads a file.",
  input_schema: {
    type: "object",
    properties: { file_path: { type: "string", maxLength: 20 } },
    required: ["file_path"],
  },
};
/** A turn of Claude Code in its public form. */
const CLAUDE_CODE = {
  model: "embedded",
  max_tokens: 8,
  stream: true,
  system: [{ type: "text", text: "You are an agent.", cache_control: { type: "ephemeral" } }],
  messages: [
    { role: "user", content: [{ type: "text", text: "hit or stay?", cache_control: { type: "ephemeral" } }] },
    { role: "system", content: "The folder has changed." },
    {
      role: "assistant",
      content: [
        { type: "thinking", thinking: "Let me look.", signature: "x" },
        { type: "text", text: "I look." },
        { type: "tool_use", id: "toolu_1", name: "Read", input: { file_path: "a.ts" } },
      ],
    },
    { role: "user", content: [{ type: "tool_result", tool_use_id: "toolu_1", content: "14", is_error: false }] },
  ],
  tools: [tool],
  metadata: { user_id: "u" },
  thinking: { type: "enabled", budget_tokens: 1024 },
  context_management: { edits: [{ type: "clear_tool_uses_20250919" }] },
  container: null,
};

/** The second turn of opencode, a client of the AI SDK, after a call that it could not parse. */
const OPENCODE = {
  model: "embedded",
  max_tokens: 8,
  messages: [
    { role: "system", content: "You are an agent." },
    { role: "user", content: "hit or stay?" },
    {
      role: "assistant",
      content: "I read.",
      reasoning_content: "Let me look.",
      tool_calls: [
        { id: "call_1", type: "function", function: { name: "read", arguments: '{"filePath":"a.ts"}' } },
        { id: "call_2", type: "function", function: { name: "invalid", arguments: '{"tool":"read","error":"{ a"}' } },
      ],
    },
    { role: "tool", tool_call_id: "call_1", content: "14" },
    { role: "tool", tool_call_id: "call_2", content: "The arguments provided to the tool are invalid" },
  ],
  tools: [
    {
      type: "function",
      function: {
        name: "read",
        description: "Reads a file.",
        parameters: {
          $schema: "https://json-schema.org/draft/2020-12/schema",
          type: "object",
          properties: {
            filePath: { type: "string", maxLength: 9, description: "The path" },
            offset: { minimum: 0, type: "integer", maximum: 9007199254740991 },
            timeout: { minimum: -9007199254740991, exclusiveMinimum: 0, type: "integer", maximum: 9007199254740991 },
            format: { type: "string", enum: ["text", "html"], default: "text" },
          },
          required: ["filePath"],
        },
      },
    },
  ],
  tool_choice: "auto",
  stream: true,
  stream_options: { include_usage: true },
};

/** The second turn of Codex in its public form. */
const CODEX = {
  model: "embedded",
  stream: true,
  max_output_tokens: 8,
  input: [
    {
      type: "message",
      id: "msg_1",
      role: "developer",
      content: [
        { type: "input_text", text: "You are an agent." },
        { type: "input_text", text: "<permissions instructions>" },
      ],
    },
    { type: "message", id: "msg_2", role: "user", content: [{ type: "input_text", text: "hit or stay?" }] },
    { type: "function_call", id: "fc_1", name: "exec_command", arguments: '{"cmd":"ls"}', call_id: "call_1" },
    { type: "function_call_output", id: "fco_1", call_id: "call_1", output: "Process exited with code 0" },
  ],
  tools: [
    {
      type: "function",
      name: "exec_command",
      description: "Runs a command.",
      strict: false,
      parameters: {
        type: "object",
        properties: { cmd: { type: "string", maxLength: 9 }, yield_time_ms: { type: "number" } },
        required: ["cmd"],
        additionalProperties: false,
      },
    },
    { type: "web_search", external_web_access: false },
  ],
  tool_choice: "auto",
  parallel_tool_calls: true,
  reasoning: { summary: "auto" },
  store: false,
  include: ["reasoning.encrypted_content"],
  prompt_cache_key: "1",
  client_metadata: { session_id: "1" },
};

const eventsOf = (text: string) =>
  Array.from(text.matchAll(/^data: (\{.*)$/gm), ([, json]) => JSON.parse(json) as Record<string, unknown>);

describe("the requests of agents", () => {
  it("are answered with the fields that Claude Code sends, and the response names what changed nothing", async () => {
    const response = await send("/messages", CLAUDE_CODE, { "anthropic-version": "2023-06-01" });
    expect(response.status).toBe(200);
    expect(response.headers.get("x-llamagym-ignored-fields")).toBe("context_management, thinking");
    const events = eventsOf(await response.text());
    const usage = { input_tokens: expect.any(Number) as number, output_tokens: 0 };
    expect(events[0]).toMatchObject({ type: "message_start", message: { usage } });
    const { input_tokens: input } = (events[0].message as { usage: { input_tokens: number } }).usage;
    expect(input).toBeGreaterThan(20);
    const counted = await send("/messages/count_tokens", { ...CLAUDE_CODE, max_tokens: undefined, stream: undefined });
    expect(await counted.json()).toEqual({ input_tokens: input });
  });

  it("are answered in the form of opencode, whose calls a model may be made to write", async () => {
    const headers = { "user-agent": "opencode/1.18.33 ai-sdk/provider-utils/4.0.23", "x-session-id": "ses_1" };
    const response = await send("/chat/completions", OPENCODE, headers);
    expect([response.status, response.headers.get("x-llamagym-ignored-fields")]).toEqual([200, null]);
    const usage = { prompt_tokens: expect.any(Number) as number, completion_tokens: expect.any(Number) as number };
    expect(eventsOf(await response.text()).at(-1)).toMatchObject({ choices: [], usage });
    const call = await send("/chat/completions", { ...OPENCODE, max_tokens: 200, tool_choice: "required" }, headers);
    const deltas = eventsOf(await call.text()).flatMap(({ choices }) => choices as { delta: Delta }[]);
    const [{ name, arguments: args }] = deltas
      .flatMap(({ delta }) => delta.tool_calls ?? [])
      .map((each) => each.function);
    expect(name).toBe("read");
    expect((JSON.parse(args) as { filePath: string }).filePath.length).toBeLessThanOrEqual(9);
    const { requests } = openAiChat.parse(OPENCODE);
    expect(requests[0].input[2]).toMatchObject({
      reasoning_content: "Let me look.",
      tool_calls: [
        { function: { arguments: { filePath: "a.ts" } } },
        { function: { arguments: { tool: "read", error: "{ a" } } },
      ],
    });
    expect(requests[0].input.slice(3)).toMatchObject([{ name: "read" }, { name: "invalid" }]);
  });

  it("are answered in the form of Codex", async () => {
    const response = await send("/responses", CODEX);
    expect(response.status).toBe(200);
    expect(response.headers.get("x-llamagym-ignored-fields")).toBe("client_metadata, tools.web_search");
    expect(eventsOf(await response.text()).at(-1)).toMatchObject({
      response: { tools: [{ name: "exec_command" }], usage: { input_tokens: expect.any(Number) as number } },
    });
  });

  it("are answered without the tools that only the vendor runs, which the response names", async () => {
    const messages = [{ role: "user", content: "hit or stay?" }];
    const search = { type: "web_search_20250305", name: "web_search", max_uses: 8 };
    const own = { type: "function", name: "shell", parameters: tool.input_schema, strict: false };
    for (const [path, body, ignored] of [
      ["/messages", { messages, max_tokens: 2, tools: [search, tool] }, "tools.web_search_20250305"],
      ["/messages", { messages, max_tokens: 2, tools: [search] }, "tools.web_search_20250305"],
      [
        "/responses",
        {
          input: messages,
          max_output_tokens: 2,
          tools: [own, { type: "custom", name: "apply_patch" }, { type: "web_search" }],
        },
        "tools.custom, tools.web_search",
      ],
      ["/chat/completions", { messages, max_tokens: 2, tools: [{ type: "custom", custom: {} }] }, "tools.custom"],
    ] as const) {
      const response = await send(path, body);
      expect([response.status, response.headers.get("x-llamagym-ignored-fields")]).toEqual([200, ignored]);
    }
  });

  it("may have calls of Codex's tools and reasoning in their history", async () => {
    const input = [
      { type: "message", role: "user", content: [{ type: "input_text", text: "hit or stay?" }] },
      { type: "reasoning", id: "r", summary: [], encrypted_content: "x" },
      { type: "custom_tool_call", call_id: "1", name: "apply_patch", input: "*** Begin Patch" },
      { type: "custom_tool_call_output", call_id: "1", output: "Done" },
      { type: "local_shell_call", call_id: "2", status: "completed", action: { type: "exec", command: ["ls"] } },
      { type: "local_shell_call_output", call_id: "2", output: "a.ts" },
      { type: "web_search_call", status: "completed", action: { type: "search", query: "q" } },
    ];
    const { requests } = openAiResponses.parse({ input });
    const call = (id: string, name: string, args: object) => ({
      tool_calls: [{ id, type: "function", function: { name, arguments: args } }],
    });
    expect(requests[0].input).toMatchObject([
      { role: "user", content: "hit or stay?" },
      call("1", "apply_patch", { input: "*** Begin Patch" }),
      { role: "tool", content: "Done", name: "apply_patch" },
      call("2", "local_shell", { command: ["ls"] }),
      { role: "tool", content: "a.ts", name: "local_shell" },
    ]);
  });

  it("may allow some of their tools, of which a completion calls one", async () => {
    const messages = [{ role: "user", content: "hit or stay?" }];
    const parameters = { type: "object", properties: { n: { enum: [1, 2] } }, required: ["n"] };
    const names = ["first", "second", "third"];
    const allowed = (mode: string, ...tools: object[]) => ({
      tools: names.map((name) => ({ type: "function", function: { name, parameters } })),
      tool_choice: { type: "allowed_tools", allowed_tools: { mode, tools } },
    });
    const choose = (name: string) => ({ type: "function", function: { name } });
    const call = async (...tools: object[]) => {
      const body = { messages, max_tokens: 60, seed: 1, n: 4, temperature: 2, ...allowed("required", ...tools) };
      const { choices } = (await (await send("/chat/completions", body)).json()) as {
        choices: { message: { tool_calls: { function: { name: string } }[] } }[];
      };
      return new Set(choices.flatMap((choice) => choice.message.tool_calls.map((each) => each.function.name)));
    };
    expect(await call(choose("second"))).toEqual(new Set(["second"]));
    expect(names.slice(1)).toEqual(expect.arrayContaining([...(await call(choose("second"), choose("third")))]));
    const body = {
      input: messages,
      max_output_tokens: 60,
      tools: names.map((name) => ({ type: "function", name, parameters, strict: name === "first" ? null : false })),
      tool_choice: { type: "allowed_tools", mode: "required", tools: [{ type: "function", name: "third" }] },
    };
    const answer = await (await send("/responses", body)).json();
    expect(answer).toMatchObject({ output: [{ name: "third" }], tool_choice: body.tool_choice });
    expect((answer as { tools: object[] }).tools).toMatchObject([
      { strict: null },
      { strict: false },
      { strict: false },
    ]);
    const parse = (fields: object) => openAiChat.parse({ messages, ...fields }).requests[0];
    // The prompt has all tools, so that its beginning stays the same.
    expect(parse(allowed("auto", choose("third"))).tools).toHaveLength(3);
    const custom = { type: "custom", custom: { name: "patch" } };
    expect(parse(allowed("auto", custom)).toolChoice).toBe("none");
    for (const [fields, problem] of [
      [allowed("required", custom), /requires a call, but names no function/],
      [allowed("auto", choose("fourth")), /"fourth" is not one of the request's tools/],
      [allowed("auto", { type: "function" }), /tools\[0\]\.type`: a function needs a name/],
      [allowed("any", choose("third")), /expected one of "auto"\|"required"/],
      [{ tool_choice: custom }, /tool_choice\.type`: must be "function" or "allowed_tools"/],
    ] as const)
      expect(() => parse(fields)).toThrow(problem);
  });

  it.each(["auto", "required", { type: "function", function: { name: "search" } }])(
    "are refused with the tool whose schema is not supported if the choice is %j",
    async (choice) => {
      const named = { name: "search", parameters: { type: "object", properties: { query: { type: "text" } } } };
      const body = {
        messages: [{ role: "user", content: "hit or stay?" }],
        tools: [{ name: "look", parameters: tool.input_schema }, named].map((each) => ({
          type: "function",
          function: each,
        })),
        tool_choice: choice,
      };
      const response = await send("/chat/completions", body);
      expect([response.status, await response.json()]).toMatchObject([
        400,
        {
          error: {
            message: expect.stringMatching(
              /^The tool "search" cannot be called: Invalid JSON schema: at #\/properties\/query, "type" must be/,
            ) as string,
          },
        },
      ]);
    },
  );

  it.each([
    ["auto", { type: "object", properties: { a: { enum: [] } }, required: ["a"] }],
    ["required", { type: "object", properties: { a: { enum: [] } }, required: ["a"] }],
    ["auto", { type: "object", properties: { a: false }, required: ["a"] }],
    ["auto", { anyOf: [{ type: "string", minLength: 2, maxLength: 1 }, false] }],
    ["auto", { $ref: "#/$defs/a", $defs: { a: { properties: { a: { $ref: "#/$defs/a" } }, required: ["a"] } } }],
    [
      { type: "function", function: { name: "search" } },
      { properties: { a: { type: "integer", enum: ["b"] } }, required: ["a"] },
    ],
  ])("are refused with the tool whose schema allows no value if the choice is %j: %j", async (choice, parameters) => {
    for (const names of [["look", "search", "list"], ["search"]]) {
      const tools = names.map((name) => ({ name, parameters: name === "search" ? parameters : tool.input_schema }));
      const response = await send("/chat/completions", {
        messages: [{ role: "user", content: "hit or stay?" }],
        tools: tools.map((each) => ({ type: "function", function: each })),
        tool_choice: choice,
        max_completion_tokens: 1,
      });
      const message = expect.stringMatching(
        /^The tool "search" cannot be called: The JSON schema matches no text/,
      ) as string;
      expect([response.status, await response.json()]).toMatchObject([400, { error: { message } }]);
    }
  });

  it("may be called where another one allows no value, if they are not allowed to call it", async () => {
    const never = { type: "object", properties: { a: { enum: [] } }, required: ["a"] };
    const tools = [
      { name: "search", parameters: never },
      { name: "look", parameters: tool.input_schema },
    ];
    const response = await send("/chat/completions", {
      messages: [{ role: "user", content: "hit or stay?" }],
      tools: tools.map((each) => ({ type: "function", function: each })),
      tool_choice: { type: "function", function: { name: "look" } },
      max_completion_tokens: 80,
    });
    expect(await response.json()).toMatchObject({
      choices: [{ message: { tool_calls: [{ function: { name: "look" } }] } }],
    });
  });

  it("may have arguments that are described by the names alone", async () => {
    for (const [schema, args] of [
      [
        { type: "object", minProperties: 1, propertyNames: { enum: ["a"] }, additionalProperties: { enum: [1] } },
        { a: 1 },
      ],
      [{ type: "object", minProperties: 1, propertyNames: { enum: ["a"] } }, { a: expect.anything() as unknown }],
    ] as const) {
      const response = await send("/chat/completions", {
        messages: [{ role: "user", content: "hit or stay?" }],
        tools: [{ type: "function", function: { name: "look", parameters: schema } }],
        tool_choice: "required",
        max_completion_tokens: 80,
      });
      const { choices } = (await response.json()) as {
        choices: { message: { tool_calls: { function: { arguments: string } }[] } }[];
      };
      expect(JSON.parse(choices[0].message.tool_calls[0].function.arguments)).toEqual(args);
    }
  });

  it("may have Codex's namespaces of tools, whose names calls have", async () => {
    const parameters = { type: "object", properties: { n: { enum: [1, 2] } }, required: ["n"] };
    const space = (name: string) => ({
      type: "namespace",
      name,
      description: `Tools of ${name}.`,
      tools: [
        { type: "function", name: "look", description: "Looks.", parameters, strict: false, defer_loading: true },
        { type: "custom", name: "patch" },
      ],
    });
    const body = {
      input: [
        { role: "user", content: "hit or stay?" },
        { type: "function_call", call_id: "1", namespace: "crm", name: "look", arguments: '{"n":1}' },
        { type: "function_call_output", call_id: "1", output: "14" },
      ],
      max_output_tokens: 60,
      tools: [space("shop"), space("crm")],
      tool_choice: { type: "function", namespace: "crm", name: "look" },
    };
    const { requests, ignoredFields } = openAiResponses.parse(body);
    expect(requests[0]).toMatchObject({
      input: [{}, { tool_calls: [{ function: { name: "crm.look", arguments: { n: 1 } } }] }, { name: "crm.look" }],
      tools: [
        { name: "shop.look", description: "Tools of shop.\nLooks." },
        { name: "crm.look", parameters },
      ],
      toolChoice: { name: "crm.look" },
    });
    expect(ignoredFields).toEqual(["tools.tools.defer_loading", "tools.tools.custom"]);
    const called = { type: "function_call", name: "look", namespace: "crm" };
    const answer = await (await send("/responses", body)).json();
    const { tools } = space("shop");
    expect(answer).toMatchObject({
      output: [called],
      tools: [{ name: "shop", tools: [{ name: "look", parameters, strict: false }] }, { name: "crm" }],
    });
    const events = eventsOf(await (await send("/responses", { ...body, stream: true })).text());
    expect(events.filter(({ type }) => type === "response.output_item.done")).toMatchObject([{ item: called }]);
    const broken = { ...space("crm"), tools: [{ ...tools[0], name: "look it up" }] };
    expect(() => openAiResponses.parse({ ...body, tools: [broken] })).toThrow(
      /`tools\[0\]\.tools\[0\]\.name`: must be/,
    );
  });

  it("are refused for items that no model here can read", () => {
    const parse = (item: object) => openAiResponses.parse({ input: [{ role: "user", content: "hit" }, item] });
    for (const [item, problem] of [
      [{ type: "compaction", encrypted_content: "x" }, /`input\[1\]`: "compaction" has a conversation that only/],
      [
        { type: "tool_search_call", call_id: "1", arguments: {} },
        /"tool_search_call" is not supported: list the tools/,
      ],
      [
        { type: "tool_search_output", call_id: "1", tools: [] },
        /"tool_search_output" is not supported: list the tools/,
      ],
      [{ type: "item_reference", id: "msg_1" }, /"item_reference" refers to a response, but none is stored here/],
      [{ id: "msg_1" }, /"item_reference" refers to a response/],
      [{ type: "mcp_call", id: "1" }, /"mcp_call" is not supported/],
    ] as const)
      expect(() => parse(item)).toThrow(problem);
  });

  it("keep the reasoning of earlier items, and name what is encrypted", () => {
    const reasoning = (...texts: string[]) => ({
      type: "reasoning",
      summary: [],
      content: texts.map((text) => ({ type: "reasoning_text", text })),
    });
    const question = { role: "user", content: "hit or stay?" };
    const { requests, ignoredFields } = openAiResponses.parse({
      input: [
        question,
        reasoning("Let me ", "look."),
        { role: "assistant", content: "I look." },
        reasoning("It is a file."),
        { type: "function_call", call_id: "1", name: "read", arguments: "{}" },
        { type: "function_call_output", call_id: "1", output: "14" },
        { type: "reasoning", summary: [], content: null, encrypted_content: "x" },
        { role: "assistant", content: "14" },
        reasoning("No answer."),
        question,
        { role: "assistant", content: "hit" },
      ],
    });
    expect(requests[0].input).toMatchObject([
      question,
      { content: "I look.", reasoning_content: "Let me look.\nIt is a file.", tool_calls: [{}] },
      { role: "tool" },
      { content: "14" },
      question,
      { content: "hit" },
    ]);
    expect(JSON.stringify(requests[0].input)).not.toContain("No answer.");
    expect(ignoredFields).toEqual(["input.reasoning"]);
  });

  it("keep the thinking of earlier answers", () => {
    const { requests } = anthropicMessages.parse(CLAUDE_CODE);
    expect(requests[0].input).toContainEqual(
      expect.objectContaining({ content: "I look.", reasoning_content: "Let me look." }),
    );
  });

  it("are warned about once for a field", async () => {
    for (let i = 0; i < 3; i++)
      await send("/chat/completions", { messages: CLAUDE_CODE.messages.slice(1, 2), web: true });
    expect(warn.mock.calls.filter(([text]) => String(text).includes("the field web,"))).toHaveLength(1);
  });

  it("are refused for a misspelled field, and for one that has an effect in another API", async () => {
    const body = { messages: [{ role: "user", content: "hit" }], max_tokens: 1 };
    expect(await (await send("/chat/completions", { ...body, max_token: 3 })).json()).toMatchObject({
      error: { message: 'Unknown field "max_token". Did you mean max_tokens?' },
    });
    expect((await send("/messages", { ...body, seed: 3 })).status).toBe(400);
    expect((await send("/chat/completions", { ...body, guided_json: {} })).status).toBe(400);
  });

  it.each([
    [openAiChat, chatBody, { messages: [{ role: "user", content: "hit" }] }],
    [openAiCompletions, completionBody, { prompt: "hit" }],
    [openAiResponses, responseBody, { input: "hit" }],
    [anthropicMessages, messagesBody, { messages: [{ role: "user", content: "hit" }], max_tokens: 1 }],
  ] as const)("may have null for every optional field of $path", (format, { shape }, body) => {
    const nulls = Object.fromEntries([...Object.keys(shape), "functions", "function_call"].map((name) => [name, null]));
    expect(format.parse({ ...nulls, ...body })).toMatchObject({ model: undefined, isStream: false, ignoredFields: [] });
  });

  it("may have the message of an answer in their history, as the OpenAI SDKs return it", () => {
    const nulls = { name: null, refusal: null, annotations: [], audio: null, function_call: null, tool_calls: null };
    const messages = [
      { role: "user", content: "hit or stay?", name: null, tool_call_id: null },
      { role: "assistant", content: "hit", reasoning_content: null, ...nulls },
      { role: "assistant", content: "stay", id: "1", reasoning: "Let me look.", reasoning_details: [{}] },
    ];
    const { requests, ignoredFields } = openAiChat.parse({ messages });
    expect(requests[0].input).toEqual([
      { role: "user", content: "hit or stay?" },
      { role: "assistant", content: "hit" },
      { role: "assistant", content: "stay", reasoning_content: "Let me look." },
    ]);
    expect(ignoredFields).toEqual(["messages.reasoning_details"]);
  });

  it("keep refusals, function calls and calls of custom tools of earlier messages", () => {
    const question = { role: "user", content: "hit or stay?" };
    const messages = [
      question,
      { role: "assistant", content: null, refusal: "I can't." },
      { role: "assistant", content: [{ type: "refusal", refusal: "I won't." }] },
      { role: "assistant", content: null, function_call: { name: "sum", arguments: '{"a":1.0}' } },
      { role: "function", name: "sum", content: "14" },
      {
        role: "assistant",
        tool_calls: [
          { id: "1", type: "custom", custom: { name: "patch", input: "*** Begin" } },
          { id: "2", type: null, function: { name: "look", arguments: null } },
        ],
      },
      { role: "tool", tool_call_id: "1", content: "Done" },
    ];
    const call = (id: string, name: string, args: object) => ({
      id,
      type: "function",
      function: { name, arguments: args },
    });
    expect(openAiChat.parse({ messages }).requests[0].input).toEqual([
      question,
      { role: "assistant", content: "I can't." },
      { role: "assistant", content: "I won't." },
      { role: "assistant", content: "", tool_calls: [call("000000003", "sum", { a: 1 })] },
      { role: "tool", content: "14", name: "sum", tool_call_id: "000000003" },
      {
        role: "assistant",
        content: "",
        tool_calls: [call("1", "patch", { input: "*** Begin" }), call("2", "look", {})],
      },
      { role: "tool", content: "Done", name: "patch", tool_call_id: "1" },
    ]);
    expect(openAiResponses.parse({ input: [question, messages[2]] }).requests[0].input).toEqual([
      question,
      { role: "assistant", content: "I won't." },
    ]);
    for (const [message, problem] of [
      [{ role: "assistant", audio: { id: "audio_1" } }, /messages\[1\]\.audio`: is not supported/],
      [{ role: "assistant", content: "I", prefix: true }, /messages\[1\]\.prefix`: is not supported; use continue/],
      [{ role: "function", name: "sum", content: "14" }, /needs an earlier function_call/],
      [{ role: "tool", tool_call_id: null, content: "14" }, /messages\[1\]\.tool_call_id`: is missing/],
    ] as const)
      expect(() => openAiChat.parse({ messages: [question, message] })).toThrow(problem);
  });

  it("are refused for a misspelled field, of their parts as well, but not for one with a longer name", () => {
    const messages = [{ role: "user", content: "hit" }];
    const { input_schema: schema } = tool;
    const withFunction = (fields: object) => ({ tools: [{ type: "function", function: { name: "f", ...fields } }] });
    for (const [field, meant] of [
      [{ max_token: 3 }, "max_tokens"],
      [{ temperatur: 1 }, "temperature"],
      [{ maxCompletionTokens: 3 }, "max_completion_tokens"],
      [{ n_predict: 3 }, "max_tokens"],
      [{ functions: [] }, "tools"],
      [{ system: "You are an agent." }, "messages"],
      [{ stream_options: { include_usag: true } }, "include_usage"],
      [withFunction({ parameter: schema }), "parameters"],
      [withFunction({ input_schema: schema }), "parameters"],
      [{ messages: [...messages, { role: "assistant", tool_call: [] }] }, "tool_calls"],
    ] as const)
      expect(() => openAiChat.parse({ messages, ...field })).toThrow(new RegExp(`Did you mean ${meant}\\?$`));
    const body = { messages, max_tokens: 1, tools: [{ name: "f", input_schem: schema }] };
    expect(() => anthropicMessages.parse(body)).toThrow(
      'Unknown field "tools[0].input_schem". Did you mean input_schema?',
    );
    const options = { prompt_cache_options: {}, ...withFunction({ parameters: schema, strict: null, example: 1 }) };
    expect(openAiChat.parse({ messages, ...options }).ignoredFields).toEqual([
      "prompt_cache_options",
      "tools.function.example",
    ]);
  });

  it("may have the schema of an object in llama.cpp's form", () => {
    const messages = [{ role: "user", content: "hit" }];
    const { input_schema: schema } = tool;
    const { requests } = openAiChat.parse({ messages, response_format: { type: "json_object", schema } });
    expect(requests[0].jsonSchema).toEqual(schema);
  });

  it("are refused without options of the library if they are too long", async () => {
    const messages = [{ role: "user", content: "hit ".repeat(5000) }];
    for (const [path, body] of [
      ["/chat/completions", { messages }],
      ["/completions", { prompt: messages[0].content }],
      ["/responses", { input: messages }],
      ["/messages", { messages, max_tokens: 1 }],
    ] as const) {
      const response = await send(path, body);
      expect([response.status, await response.text()]).toEqual([400, expect.stringMatching(/Shorten the prompt\."/)]);
    }
  });

  it("may have a broken tool call in their history", async () => {
    const call = { id: "1", type: "function", function: { name: "f", arguments: '{"a": ' } };
    const messages = [
      { role: "user", content: "hit or stay?" },
      { role: "assistant", content: null, tool_calls: [call] },
      { role: "tool", tool_call_id: "1", content: "Unexpected end of JSON input" },
    ];
    expect((await send("/chat/completions", { messages, max_tokens: 2 })).status).toBe(200);
    const input = [
      { role: "user", content: "hit or stay?" },
      { type: "function_call", call_id: "1", name: "f", arguments: "{" },
      { type: "function_call_output", call_id: "1", output: "Unexpected end" },
    ];
    expect((await send("/responses", { input, max_output_tokens: 2 })).status).toBe(200);
  });

  it("are charged at most the prompt as cached tokens", async () => {
    const body = { messages: [{ role: "user", content: "hit or stay?" }], max_tokens: 30 };
    const tools = [{ type: "function", function: { name: "Read", parameters: tool.input_schema } }];
    for (let i = 0; i < 3; i++) {
      const response = await send("/chat/completions", { ...body, tools, tool_choice: "required" });
      const { usage } = (await response.json()) as {
        usage: { prompt_tokens: number; prompt_tokens_details: { cached_tokens: number } };
      };
      expect(usage.prompt_tokens_details.cached_tokens).toBeLessThanOrEqual(usage.prompt_tokens);
    }
  });

  it("get errors in the form of their API on all of its paths", async () => {
    const anthropic = {
      type: "error",
      error: { type: expect.any(String) as string, message: expect.any(String) as string },
    };
    for (const path of ["/messages", "/messages/count_tokens", "/messages/batches"]) {
      expect(await (await send(path, {})).json()).toMatchObject(anthropic);
      expect(await (await send(path, {}, { "content-type": "text/plain" })).json()).toMatchObject(anthropic);
    }
    expect(await (await send("/chat/completions", {}, { "content-type": "text/plain" })).json()).toMatchObject({
      error: { code: "unsupported_media_type" },
    });
  });
});

interface Delta {
  readonly tool_calls?: readonly { readonly function: { readonly name: string; readonly arguments: string } }[];
}

interface Completion {
  readonly text: string;
  readonly logprobs: {
    readonly tokens: string[];
    readonly token_logprobs: (number | null)[];
    readonly top_logprobs: (Record<string, number> | null)[];
    readonly text_offset: number[];
  };
}

describe("the prompt's log-probabilities of /completions (echo)", () => {
  const request = { prompt: "", max_tokens: 1, temperature: 0, echo: true, logprobs: 2 };

  it("come from its scores, as lm-evaluation-harness reads them", async () => {
    const encode = (text: string) => model.tokenizer.encode(text, { addSpecialTokens: false });
    const prompt = encode("Your current total is 14. The dealer shows 6. hit or");
    const candidate = encode(" stay?");
    const response = await send("/completions", { ...request, prompt: [[...prompt, ...candidate]] });
    const { choices } = (await response.json()) as { choices: [Completion] };
    const { tokens, token_logprobs: logProbs, top_logprobs: top, text_offset: offsets } = choices[0].logprobs;
    expect([tokens.length, logProbs.length, top.length, offsets.length]).toEqual(
      Array(4).fill(prompt.length + candidate.length + 1),
    );
    expect([logProbs[0], top[0], offsets[0]]).toEqual([null, null, 0]);
    const [expected] = await model.score(prompt, [candidate]);
    const scored = logProbs.slice(prompt.length, -1) as number[];
    scored.forEach((logProb, i) => expect(logProb).toBeCloseTo(expected.tokenLogProbs[i], 4));
    const positions = top.slice(1) as Record<string, number>[];
    for (const [i, alternatives] of positions.entries()) {
      expect(Object.keys(alternatives).length).toBeGreaterThan(0);
      expect(Math.max(...Object.values(alternatives))).toBeGreaterThanOrEqual(logProbs[i + 1]! - 1e-5);
    }
    expect(choices[0].text.slice(0, offsets.at(-1))).toBe(model.tokenizer.decode([...prompt, ...candidate]));
  });

  it("are the same in streams, and without a completion", async () => {
    const body = { ...request, prompt: "hit or stay?" };
    const whole = ((await (await send("/completions", body)).json()) as { choices: [Completion] }).choices[0];
    const streamed = eventsOf(await (await send("/completions", { ...body, stream: true })).text());
    expect(streamed.map(({ choices }) => (choices as [Completion])[0].text).join("")).toBe(whole.text);
    const { logprobs } = (streamed.at(-1)!.choices as [Completion])[0];
    expect(logprobs.tokens).toEqual(whole.logprobs.tokens);
    expect(logprobs.text_offset).toEqual(whole.logprobs.text_offset);
    const rounded = ({ token_logprobs: values }: Completion["logprobs"]) => values.map((value) => value?.toFixed(4));
    expect(rounded(logprobs)).toEqual(rounded(whole.logprobs));
    const without = (await (await send("/completions", { ...body, max_tokens: 0 })).json()) as {
      choices: [Completion];
      usage: object;
    };
    expect(without.choices[0].text).toBe("hit or stay?");
    expect(without.choices[0].logprobs.tokens).toEqual(whole.logprobs.tokens.slice(0, -1));
    expect(without.usage).toMatchObject({ completion_tokens: 0 });
  });
});
